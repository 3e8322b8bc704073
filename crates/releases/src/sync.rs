//! Brings one release up to date, or removes it. The core decides the steps; this file carries them out.
//!
//! Never runs two helm children on one release, never starts a child without a stored intent, and never uninstalls
//! except in an explicit removal.

mod adoption;
mod alterations;
mod brake;
mod conversions;
pub mod foresight;
pub mod holds;
mod inputs;
mod marks;
mod observed;
mod oversize;
mod ownership;
mod records;
mod remarks;
mod removal;
pub mod render;
mod replacement;
mod returning;
mod source;
mod wanted;
mod withdrawal;
mod withheld;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::module::health::OnFailure;
use addon_core::operator::event::{SyncAction, Synced};
use addon_core::release::brake::Asked;
use addon_core::release::records::Records;
use addon_core::release::{self, ApplyMethod, ConfigTrace, Facts, Intent, IntentKind, Reason, ReleaseStep};
use addon_core::values::section::Maintenance;
use addon_core::values::vetted::Vetting;
use helm::claims::Claims;
use helm::immutable::Immutable;
use helm::{HelmError, Verbosity};
use jobs::acting::Acting;
use jobs::unless;
use kube_access::apis::Apis;
use names::ModuleName;
use names::replaceable::Replaceable;
use objects::key::ObjectKey;
use tokio::sync::{OnceCell, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::Tools;
use crate::revisions::Revision;
use holds::Past;
use observed::{forget_unless_unfinished, now};
use source::Source;
use withheld::Withheld;

pub use conversions::ensure as ensure_conversions;
pub use ownership::list;
pub use removal::delete;
pub use wanted::Wanted;
use wanted::vet_for_helm;

/// Brings the release up to date with these values, in as few steps as possible.
pub async fn sync(
    tools: &Tools,
    module: &ModuleName,
    wanted: Wanted<'_>,
    vetting: Option<Box<Vetting>>,
    cancel: &CancellationToken,
) -> Result<Synced, Failure> {
    vet_for_helm(vetting).await?;
    let asked = brake::asked(module, wanted.asked);
    let catalogue = tools.ground.catalogue.borrow().clone();
    let (files, values) = (catalogue.module(module)?, wanted.values.to_value());
    let Some(chart) = files.chart else {
        return Ok(Synced::plain(SyncAction::Unchanged, 0));
    };
    let source = Source::new(chart, &files.dir, &values);
    let mut sync = Sync::begin(tools, module, source, asked, wanted.maintenance, wanted.config, cancel).await?;
    sync.facts.unhealthy = wanted.unhealthy;
    sync.returns = files.health.on_failure == OnFailure::Return;
    let outcome = tools.ground.explained(Box::pin(sync.run()).await, cancel).await;
    if outcome.is_err() {
        // The cause may be an outdated list of kinds or an account's old token.
        tools.ground.cluster.forget_apis();
        if let Some(acting) = sync.acting.get() {
            acting.forget();
        }
    }
    outcome
}

/// The outcome of helm's call for an upgrade.
enum Outcome {
    Upgraded(Synced),
    /// The API server lets nobody change a field that the upgrade would have to change.
    Blocked(Box<Immutable>),
    /// Helm failed before its work, because of damaged records. The records have been repaired.
    Repaired,
}

struct Sync<'a> {
    tools: &'a Tools,
    hold: OwnedMutexGuard<Past>,
    cancel: &'a CancellationToken,
    chart: Source<'a>,
    labels: BTreeMap<String, String>,
    /// The ConfigMap's values for the module.
    config: ConfigTrace,
    /// Whether the module returns from revisions whose objects do not do their work.
    returns: bool,
    acting: OnceCell<Acting<'a>>,
    /// The claims that a rendering makes on objects; none if nothing is to be installed.
    claims: Option<&'a Claims>,
    apis: Arc<Apis>,
    revision: Option<Revision>,
    /// The objects of the deployed revision, once they are read.
    objects: Option<BTreeSet<ObjectKey>>,
    /// The manifest that helm rendered from the chart; empty until then.
    manifest: String,
    repairs: usize,
    /// The API versions and kinds of the records that can be read, if the newest record is lost.
    lost: Option<BTreeSet<(String, String)>>,
    /// The objects that stood in the way of the upgrade, each with its field.
    in_the_way: BTreeSet<String>,
    /// The webhook configurations that the upgrade leaves out.
    withheld: Vec<Withheld>,
    /// The objects that this upgrade may replace, because a person permits it.
    allowed: Vec<Replaceable>,
    facts: Facts,
}

impl<'a> Sync<'a> {
    /// Waits until no other job works on the release, and begins.
    async fn begin(
        tools: &'a Tools,
        module: &ModuleName,
        chart: Source<'a>,
        asked: Asked,
        maintenance: Maintenance,
        config: ConfigTrace,
        cancel: &'a CancellationToken,
    ) -> Result<Self, Failure> {
        let name = module.as_str();
        let hold = unless(cancel, async { Ok(tools.holds.hold(name).await) }).await?;
        let apis = unless(cancel, tools.ground.cluster.apis()).await?;
        let labels = inputs::object_labels(tools.helm.options(), maintenance);
        // A disk that hangs must not block a cancelled job.
        let inputs = unless(cancel, inputs::digest(tools, &chart, &labels, &apis)).await?;
        Ok(Self {
            tools,
            cancel,
            chart,
            labels,
            config,
            returns: false,
            acting: OnceCell::new(),
            claims: Some(tools.helm.claims()),
            apis,
            revision: None,
            objects: None,
            manifest: String::new(),
            repairs: 0,
            lost: None,
            in_the_way: BTreeSet::new(),
            withheld: Vec::new(),
            allowed: Vec::new(),
            facts: Facts {
                torn: hold.torn,
                inputs: inputs.to_string(),
                asked,
                unmanaged: maintenance == Maintenance::NoResourceReconciliation,
                ..removal::facts(name, tools.helm.options().timeout)
            },
            hold,
        })
    }

    async fn run(&mut self) -> Result<Synced, Failure> {
        // A request may take half a minute while the API server is unreachable; a stop does not wait for it.
        let cancel = self.cancel;
        unless(cancel, self.see()).await?;
        loop {
            match self.step().await {
                Ok(Some(synced)) => return Ok(synced),
                Ok(None) => {}
                Err(failure) if failure.class == Class::Damaged && self.facts.records == Records::Unread => {
                    self.facts.records = Records::Doubtful;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Does the next step. Returns the result after the last one.
    async fn step(&mut self) -> Result<Option<Synced>, Failure> {
        let cancel = self.cancel;
        match release::decide(&self.facts) {
            ReleaseStep::Examine => drop(self.examine().await?),
            ReleaseStep::Read => unless(cancel, self.observe()).await?,
            ReleaseStep::LookAtObjects => unless(cancel, self.look_at_objects()).await?,
            ReleaseStep::Render => self.facts.rendered = Some(self.rendering().await?),
            ReleaseStep::Compare => unless(cancel, self.compare()).await?,
            ReleaseStep::LookAtBase => unless(cancel, self.look_at_base()).await?,
            ReleaseStep::Repair { revision, left } => {
                self.count_repair()?;
                unless(cancel, self.repair(revision, left)).await?;
            }
            ReleaseStep::Amend => {
                self.count_repair()?;
                unless(cancel, self.amend()).await?;
            }
            ReleaseStep::Keep { revision } => {
                unless(cancel, self.note_config()).await?;
                unless(cancel, self.settle()).await?;
                self.put_right().await?;
                return Ok(Some(self.done(SyncAction::Unchanged, revision)));
            }
            ReleaseStep::LeaveAlone { revision } => {
                let release = self.facts.release.as_str();
                info!(release, "helm release is Unmanaged, skip helm upgrade");
                return Ok(Some(self.done(SyncAction::Unchanged, revision)));
            }
            ReleaseStep::Record { revision, checksum } => {
                unless(cancel, self.record(checksum)).await?;
                self.put_right().await?;
                return Ok(Some(self.done(SyncAction::Recorded, revision)));
            }
            ReleaseStep::Upgrade(reason) => {
                self.fail_as_before().await?;
                self.tell_left().await?;
                self.withhold().await?;
                match self.upgrade(&reason).await? {
                    Outcome::Upgraded(synced) => return self.wait_for_servers().map(|()| Some(synced)),
                    Outcome::Repaired => {}
                    Outcome::Blocked(immutable) => self.make_way(&immutable).await?,
                }
            }
            ReleaseStep::Return { note, to } => self.take_back(note, to).await?,
            ReleaseStep::StayBack(note) => return Err(note.failure(&self.facts.release)),
            ReleaseStep::Hold(held) => return Err(unless(cancel, self.hold(&held)).await?),
            ReleaseStep::Refuse(failure) => return Err(failure),
        }
        Ok(None)
    }

    /// The result, with everything that was done on the way and not reported yet.
    fn done(&mut self, action: SyncAction, revision: u32) -> Synced {
        Synced {
            amended: mem::take(&mut self.hold.amended),
            replaced: mem::take(&mut self.hold.replaced),
            repaired: mem::take(&mut self.hold.repaired),
            remarks: self.remarks(action),
            ..Synced::plain(action, revision)
        }
    }

    /// The account for all work on the release, except the operator's own notes.
    async fn acting(&self) -> Result<&Acting<'a>, Failure> {
        let acting = || {
            self.tools
                .ground
                .acting_for(&self.facts.release, self.tools.helm.deadline())
        };
        self.acting.get_or_try_init(acting).await
    }

    fn deployed(&self) -> Result<&Revision, Failure> {
        self.revision.as_ref().ok_or_else(|| {
            Failure::new(
                Class::Defect,
                format!("release '{}' was decided on without being there", self.facts.release),
            )
        })
    }

    async fn render(&mut self) -> Result<String, Failure> {
        self.rendered(Verbosity::Plain).await
    }

    async fn rendered(&mut self, verbosity: Verbosity) -> Result<String, Failure> {
        unless(self.cancel, self.acting()).await?;
        let ready = self.chart.ready(self.tools, &self.facts.release);
        let (chart, values) = unless(self.cancel, ready).await?;
        let chart = helm::Chart {
            release: &self.facts.release,
            dir: chart,
            values,
            labels: &self.labels,
            kubeconfig: self.acting.get().and_then(Acting::kubeconfig),
            // Kept objects are not marked here, so that the mark does not count as a difference.
            kept: &BTreeSet::new(),
            withheld: &BTreeSet::new(),
            claims: self.claims,
            env: self.acting.get().map(Acting::env).unwrap_or_default(),
        };
        let names = self.apis.names.iter().map(String::as_str);
        let manifest = self
            .tools
            .helm
            .template(chart, &self.apis.version, names, verbosity, self.cancel)
            .await;
        match manifest {
            Ok(manifest) => Ok(manifest),
            Err(error) if self.claims.is_none() => Err(error.into()),
            Err(error) => Err(ownership::explain(self.tools, &self.facts.release, error).await),
        }
    }

    /// The method by which the newest revision was applied. Helm 3 knows only one.
    async fn apply_method(&self) -> Result<ApplyMethod, Failure> {
        match &self.revision {
            Some(revision) if self.tools.helm.version().await?.is_4() => {
                Ok(crate::revisions::apply_method(&self.tools.ground.cluster, revision).await?)
            }
            Some(_) | None => Ok(ApplyMethod::Client),
        }
    }

    fn intent(&self, kind: IntentKind, revision_before: u32, started: u64) -> Intent {
        Intent {
            kind,
            revision_before,
            digest: self.facts.inputs.clone(),
            started,
            marks: true,
            holder: self.facts.tenure.as_ref().map(|tenure| tenure.holder.clone()),
        }
    }

    async fn upgrade(&mut self, reason: &Reason) -> Result<Outcome, Failure> {
        // Helm itself asks the API server for its APIs, and has no earlier list to fall back on.
        let doubts = inputs::refuse_doubtful(&self.chart, &self.apis.uncertain);
        unless(self.cancel, doubts).await?;
        let adopted = self.adopted().await?;
        let (kept, withheld) = (self.kept(&adopted), self.left_out());
        let (tools, release) = (self.tools, self.facts.release.as_str());
        let method = unless(self.cancel, self.apply_method()).await?;
        let revision_before = self.facts.newest.as_ref().map_or(0, |newest| newest.revision);
        unless(self.cancel, self.acting()).await?;
        let started = now();
        let intent = self.intent(IntentKind::Upgrade, revision_before, started);
        let good = self.good().await;
        let labels = self.labels_of_new(started);
        let ready = self.chart.ready_for_upgrade(tools, release, &self.apis);
        let (chart, values) = unless(self.cancel, ready).await?;
        let chart = helm::Chart {
            release,
            dir: chart,
            values,
            labels: &self.labels,
            kubeconfig: self.acting.get().and_then(Acting::kubeconfig),
            kept: &kept,
            withheld: &withheld,
            claims: Some(tools.helm.claims()),
            env: self.acting.get().map(Acting::env).unwrap_or_default(),
        };
        tools.helm.version().await?;
        info!(release, %reason, "upgrading the release");
        let adopted: Vec<String> = adopted.iter().map(ToString::to_string).collect();
        let recorded = saved_state::record_intent(&tools.ground.cluster, release, &intent).await?;
        let upgraded = tools.helm.upgrade(chart, &labels, method, self.cancel).await;
        let upgraded = match upgraded {
            Ok(upgraded) => upgraded,
            Err(error) => {
                let newest = forget_unless_unfinished(tools, release).await;
                self.hold.torn = intent.left_nothing(newest);
                if let HelmError::Failed {
                    immutable: Some(immutable),
                    ..
                } = error
                {
                    return Ok(Outcome::Blocked(immutable));
                }
                if self.is_repaired_after(&error).await? {
                    return Ok(Outcome::Repaired);
                }
                let failure = ownership::explain(tools, &self.facts.release, error).await;
                return Err(self.explain_size(failure).await);
            }
        };
        self.hold.torn = false;
        self.mark_upgraded(&upgraded, good).await?;
        self.manifest = upgraded.manifest;
        saved_state::note_end(&tools.ground.cluster, recorded);
        Ok(Outcome::Upgraded(Synced {
            adopted,
            ..self.done(SyncAction::Upgraded, upgraded.revision)
        }))
    }
}
