//! Foresight: what bringing a release to its wanted state would change.
//!
//! The steps are those of a run in earnest, up to the first that would change anything. Objects that the chart renders otherwise than
//! the deployed revision are changed in a dry run. Must never write, neither to the cluster nor to helm's records.

pub mod chart_hook;

use std::collections::BTreeMap;
use std::mem;

use addon_core::failure::{Class, Failure};
use addon_core::release::refusal::Way;
use addon_core::release::{self, ReleaseStep, Status};
use addon_core::values::vetted::Vetting;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use helm::Verbosity;
use helm::labels::HELM_HOOK;
use jobs::unless;
use names::ModuleName;
use objects::key::{self, Identity, ObjectKey, identity};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::chart_hook::{ChartHook, INSTALL, REMOVAL, UPGRADE};
use super::brake::{goes_with_its_rendering, objects_of};
use super::source::Source;
use super::wanted::{Wanted, vet_for_helm};
use super::{Sync, brake};
use crate::Tools;
use crate::crd::foresight::Brought;
use crate::difference::{Tried, try_to_upgrade};
use crate::revisions::{self, upgrades};

/// The number of objects that are changed in dry runs at the same time.
const AT_ONCE: usize = 5;

/// The foreseen end of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Foreseen {
    /// Nothing changes.
    Nothing,
    /// The objects stay, and the newest revision is marked with the new inputs.
    Marks,
    /// People maintain the objects, so these stay as they are.
    LeftAlone,
    /// Helm makes a new revision.
    Upgrade {
        /// The reason for which helm works.
        reason: String,
        /// The changes of objects, in the order of the manifest; objects that only the deployed revision has come last.
        objects: Vec<Change>,
        /// The hooks of the chart that helm runs.
        hooks: Vec<ChartHook>,
        /// The kinds of the CRDs that the chart renders.
        brought: Vec<Brought>,
    },
    /// The records of helm are repaired first. Only then it is known what follows.
    Repair,
    /// The revision whose objects do not do their work is taken back to this one.
    Return(u32),
    /// The run fails, or waits for a person.
    Fails(Failure),
}

/// The change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub object: ObjectKey,
    pub act: Act,
}

/// The removal of a release.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// The objects that helm deletes, and those that it keeps.
    pub objects: Vec<Change>,
    /// The hooks of the chart that helm runs.
    pub hooks: Vec<ChartHook>,
}

/// The act of helm or of the operator on an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// The object is made.
    Create,
    /// The object changes from one form to the other, as the API server would store it.
    Change {
        /// The present object.
        live: Value,
        /// The object after the change.
        applied: Value,
    },
    /// The object is deleted.
    Delete,
    /// The chart does not render the object any more, and helm keeps it.
    Leave,
    /// The API server lets nobody change a field, so the object is deleted and made anew.
    Replace(String),
    /// The API server refuses the object.
    Refused(Failure),
    /// The API server does not serve the kind.
    Unserved,
    /// The object's namespace does not exist.
    NoNamespace,
}

/// Foresees the run that brings the release up to date with these values.
pub async fn foresee(
    tools: &Tools,
    module: &ModuleName,
    wanted: Wanted<'_>,
    vetting: Option<Box<Vetting>>,
    cancel: &CancellationToken,
) -> Result<Foreseen, Failure> {
    if let Err(failure) = vet_for_helm(vetting).await {
        return Ok(Foreseen::Fails(failure));
    }
    let asked = brake::asked(module, wanted.asked);
    let catalogue = tools.ground.catalogue.borrow().clone();
    let (files, values) = (catalogue.module(module)?, wanted.values.to_value());
    let Some(chart) = files.chart else {
        return Ok(Foreseen::Nothing);
    };
    let source = Source::new(chart, &files.dir, &values);
    let mut sync = Sync::begin(tools, module, source, asked, wanted.maintenance, wanted.config, cancel).await?;
    sync.facts.unhealthy = wanted.unhealthy;
    // A chart that is not installed must not keep another release from the objects.
    sync.claims = None;
    unless(cancel, sync.see()).await?;
    Box::pin(sync.foresee()).await
}

/// Foresees the removal of a release; none if there is no release, or one that the operator does not remove.
pub async fn foresee_removal(
    tools: &Tools,
    release: &str,
    cancel: &CancellationToken,
) -> Result<Option<Removal>, Failure> {
    let cluster = &tools.ground.cluster;
    let apis = unless(cancel, cluster.apis()).await?;
    let base = async {
        let newest = revisions::newest_revision(cluster, release).await?;
        let Some(newest) = newest.filter(|revision| revision.newest.ours && !revision.is_handed_over) else {
            return Ok(None);
        };
        let hooks = upgrades::hooks_of(cluster, &newest).await?;
        Ok(Some((
            Box::pin(upgrades::base_of(cluster, &newest, &apis)).await?,
            hooks,
        )))
    };
    let Some((base, hooks)) = unless(cancel, base).await? else {
        return Ok(None);
    };
    let objects = objects_of(release, &base.manifest)?.into_iter();
    let gone = objects.filter_map(|object| {
        Some(Change {
            object: key::key_of(&object)?,
            act: if goes_with_its_rendering(&object) {
                Act::Delete
            } else {
                Act::Leave
            },
        })
    });
    let hooks = objects_of(release, &hooks.join("\n---\n"))?;
    Ok(Some(Removal {
        objects: gone.collect(),
        hooks: chart_hook::among(&hooks, REMOVAL),
    }))
}

impl Sync<'_> {
    async fn foresee(&mut self) -> Result<Foreseen, Failure> {
        loop {
            let step = match release::decide(&self.facts) {
                // Both read alone.
                ReleaseStep::Read
                | ReleaseStep::LookAtObjects
                | ReleaseStep::Render
                | ReleaseStep::Compare
                | ReleaseStep::LookAtBase => self.step().await,
                ReleaseStep::Examine | ReleaseStep::Repair { .. } | ReleaseStep::Amend => return Ok(Foreseen::Repair),
                ReleaseStep::Keep { .. } => return Ok(Foreseen::Nothing),
                ReleaseStep::Record { .. } => return Ok(Foreseen::Marks),
                ReleaseStep::LeaveAlone { .. } => return Ok(Foreseen::LeftAlone),
                ReleaseStep::Upgrade(reason) => return self.upgraded(reason.to_string()).await,
                ReleaseStep::Return { to, .. } => return Ok(Foreseen::Return(to)),
                ReleaseStep::StayBack(note) => Err(note.failure(&self.facts.release)),
                ReleaseStep::Hold(held) => Err(held.failure(&self.facts.release)),
                ReleaseStep::Refuse(failure) => Err(failure),
            };
            match step {
                Err(failure) if failure.class == Class::Cancelled => return Err(failure),
                Err(failure) if failure.class == Class::Damaged => return Ok(Foreseen::Repair),
                Err(failure) => return Ok(Foreseen::Fails(failure)),
                Ok(_) => {}
            }
        }
    }

    async fn upgraded(&mut self, reason: String) -> Result<Foreseen, Failure> {
        let is_first = self
            .revision
            .as_ref()
            .is_none_or(|revision| revision.newest.status == Status::Uninstalled);
        let (verbosity, events) = if is_first {
            (Verbosity::First, INSTALL)
        } else {
            (Verbosity::Whole, UPGRADE)
        };
        // An annotation may come from the values.
        let has_hooks = self.chart.mentions(&[HELM_HOOK]).await || self.chart.values.to_string().contains(HELM_HOOK);
        let is_whole = is_first || self.manifest.is_empty() || has_hooks;
        let manifest = if is_whole {
            match self.rendered(verbosity).await {
                Ok(whole) => whole,
                Err(failure) if failure.class == Class::Cancelled => return Err(failure),
                Err(failure) => return Ok(Foreseen::Fails(failure)),
            }
        } else {
            mem::take(&mut self.manifest)
        };
        let release = self.facts.release.as_str();
        let (of_hooks, rendered): (Vec<_>, Vec<_>) = objects_of(release, &manifest)?
            .into_iter()
            .partition(chart_hook::is_one);
        let deployed = match &self.revision {
            // The objects of an uninstalled revision are gone already.
            Some(revision) if !is_first => {
                self.allowed.extend(revision.allowed.iter().cloned());
                let base = Box::pin(upgrades::base_of(&self.tools.ground.cluster, revision, &self.apis));
                let base = unless(self.cancel, async { Ok(base.await?) }).await?;
                objects_of(release, &base.manifest)?
            }
            Some(_) | None => Vec::new(),
        };
        let brought: Vec<_> = rendered
            .iter()
            .map(|object| (key::key_of(object), Brought::by(object)))
            .collect();
        let objects = unless(self.cancel, self.changes(rendered, deployed)).await?;
        let is_refused = |crd: &Option<ObjectKey>| {
            let mut refused = objects.iter().filter(|change| matches!(change.act, Act::Refused(_)));
            refused.any(|change| Some(&change.object) == crd.as_ref())
        };
        let brought = brought.into_iter().filter(|(crd, _)| !is_refused(crd));
        Ok(Foreseen::Upgrade {
            reason,
            brought: brought.flat_map(|(_, brought)| brought).collect(),
            objects,
            hooks: chart_hook::among(&of_hooks, events),
        })
    }

    async fn changes(&self, rendered: Vec<Value>, deployed: Vec<Value>) -> Result<Vec<Change>, Failure> {
        let cluster = &self.tools.ground.cluster;
        let who = |object: &Value| key::key_of(object).map(|key| (identity(cluster, &key, &self.apis), key));
        let mut before: BTreeMap<Identity, (ObjectKey, Value)> = BTreeMap::new();
        for object in deployed {
            if let Some((identity, key)) = who(&object) {
                before.insert(identity, (key, object));
            }
        }
        let mut tries = Vec::new();
        for object in rendered {
            let Some((identity, key)) = who(&object) else { continue };
            let was = before.remove(&identity).map(|(_, object)| object);
            tries.push((key, was, object));
        }
        let changed = stream::iter(tries)
            .map(|(key, was, object)| async move { self.change_of(key, was, object).await })
            .buffered(AT_ONCE)
            .try_collect::<Vec<_>>();
        let mut changes: Vec<Change> = changed.await?.into_iter().flatten().collect();
        changes.extend(before.into_values().map(|(object, was)| Change {
            object,
            act: if goes_with_its_rendering(&was) {
                Act::Delete
            } else {
                Act::Leave
            },
        }));
        Ok(changes)
    }

    /// The change of an object that the chart renders; none if it stays as it is.
    async fn change_of(&self, key: ObjectKey, was: Option<Value>, object: Value) -> Result<Option<Change>, Failure> {
        // With the rights that helm will have.
        let cluster = unless(self.cancel, self.acting()).await?.cluster();
        if self.apis.kind(&key.api_version, &key.kind).is_none() {
            return Ok(Some(Change {
                object: key,
                act: Act::Unserved,
            }));
        }
        let was = was.unwrap_or_default();
        let act = match try_to_upgrade(cluster, &was, &object, &self.apis).await {
            Ok(None) => return Ok(None),
            Ok(Some(Tried { live: None, .. })) => Act::Create,
            Ok(Some(Tried {
                live: Some(live),
                applied,
                ..
            })) => {
                if is_same(&live, &applied) {
                    return Ok(None);
                }
                Act::Change { live, applied }
            }
            Err(failure) if failure.class == Class::Refused || failure.class == Class::Invalid => {
                self.refused(&key, &object, failure)
            }
            Err(failure) => return Err(failure),
        };
        Ok(Some(Change { object: key, act }))
    }

    fn refused(&self, key: &ObjectKey, object: &Value, failure: Failure) -> Act {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if failure.report.contains(&format!("namespaces {namespace:?} not found")) {
            return Act::NoNamespace;
        }
        match helm::immutable::read(&failure.report) {
            Some(immutable) => match self.way(&immutable, object) {
                Way::Replace | Way::ReplaceAlone => Act::Replace(immutable.field),
                Way::Ask | Way::Never => Act::Refused(failure),
            },
            None => Act::Refused(failure),
        }
    }
}

/// Whether two forms of an object differ in nothing but the API server's own notes.
fn is_same(live: &Value, applied: &Value) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("generation");
            metadata.remove("resourceVersion");
        }
        object
    };
    plain(live) == plain(applied)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_notes_of_the_api_server_are_no_change() {
        let at =
            |version: &str, data: &str| json!({"metadata": {"name": "a", "resourceVersion": version}, "data": data});
        assert!(is_same(&at("1", "x"), &at("2", "x")));
        assert!(!is_same(&at("1", "x"), &at("1", "y")));
    }
}
