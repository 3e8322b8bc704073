//! The objects that an upgrade would delete, and whether people have asked for that: collects the facts, and writes the
//! note of the decision. The core decides whether the upgrade is held.

use std::collections::BTreeSet;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::release::brake::{Asked, Base, Held, Part};
use addon_core::values::HookDocument;
use disk::Chart;
use helm::labels::{KEEP, RESOURCE_POLICY};
use helm_yaml::yaml;
use names::ModuleName;
use serde_json::Value;
use tracing::info;

use super::Sync;
use crate::revisions::upgrades::{self, Template};
use crate::revisions::vanishing::refuse_vanishing;
use objects::key::{self, ObjectKey};

/// The digest of an absent section.
const NONE: &str = "none";

impl Sync<'_> {
    pub(super) async fn look_at_base(&mut self) -> Result<(), Failure> {
        let base = upgrades::base_of(&self.tools.ground.cluster, self.deployed()?, &self.apis).await?;
        let objects = objects_of(&self.facts.release, &base.manifest)?;
        if objects.iter().any(is_of_a_crd) {
            // The list of served APIs is a few seconds old, and a version may be gone since.
            self.tools.ground.cluster.forget_apis();
            let apis = self.tools.ground.cluster.apis().await?;
            refuse_vanishing(&self.facts.release, &objects, &apis)?;
        }
        let namespace = self.tools.ground.cluster.namespace();
        let goes = objects.iter().filter(|object| goes_with_its_rendering(object));
        self.facts.version = match self.chart.kind {
            Chart::Whole => disk::chart_version(self.chart.dir),
            Chart::Made => Some(helm::chart::VERSION.to_owned()),
        };
        let parts = goes.filter_map(|object| part_of(object, namespace)).collect();
        self.facts.base = Some(Base {
            asked: base.asked,
            confirmed: base.confirmed,
            version: base.version,
            parts,
            altered: self.altered(base.templates).await,
            is_outdated: !base.unserved.is_empty(),
        });
        Ok(())
    }

    /// The templates that the module's directory lacks or has with other contents.
    async fn altered(&self, templates: Vec<Template>) -> Vec<String> {
        let dir = self.chart.dir.to_owned();
        let is_altered = move |template: &Template| {
            !fs_err::read(dir.join(&template.name)).is_ok_and(|bytes| template.holds(&bytes))
        };
        let compare = move || {
            let altered = templates.into_iter().filter(is_altered);
            altered.map(|template| template.name).collect()
        };
        blocking::run(compare).await
    }

    /// Every object that the chart renders.
    pub(super) fn parts_of(&self, manifest: &str) -> Result<BTreeSet<Part>, Failure> {
        let namespace = self.tools.ground.cluster.namespace();
        let objects = objects_of(&self.facts.release, manifest)?;
        Ok(objects.iter().filter_map(|object| part_of(object, namespace)).collect())
    }

    /// Notes that the upgrade waits for a person, with the objects that it would delete.
    pub(super) async fn hold(&self, held: &Held) -> Result<Failure, Failure> {
        let revision = self.deployed()?;
        if revision.newest.held.as_ref() != Some(held) {
            upgrades::note_held(&self.tools.ground.cluster, revision, Some(held)).await?;
        }
        Ok(held.failure(&self.facts.release))
    }

    /// Notes that the release is up to date with the present sections, and no upgrade is held.
    pub(super) async fn settle(&self) -> Result<(), Failure> {
        let revision = self.deployed()?;
        if revision.asked.as_ref() != Some(&self.facts.asked) {
            upgrades::note_asked(&self.tools.ground.cluster, revision, &self.facts.asked).await?;
        }
        if revision.is_held() {
            let release = self.facts.release.as_str();
            info!(release, "a held upgrade is no longer needed");
            upgrades::note_held(&self.tools.ground.cluster, revision, None).await?;
        }
        Ok(())
    }
}

/// Whether the kind of an object may come and go while the API server runs.
fn is_of_a_crd(object: &Value) -> bool {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    group.is_some_and(|(group, _)| group.contains('.') && !group.ends_with(".k8s.io"))
}

/// The digests of the `ConfigMap`'s sections.
pub(super) fn asked(module: &ModuleName, config: &HookDocument) -> Asked {
    let config = config.to_value();
    let digest = |section: &Value| match section {
        Value::Null => NONE.to_owned(),
        section => Digest::of(section).to_string(),
    };
    Asked {
        section: digest(&config[module.values_key()]),
        global: digest(&config["global"]),
    }
}

pub(super) fn objects_of(release: &str, manifest: &str) -> Result<Vec<Value>, Failure> {
    let documents = yaml::documents_v2(manifest).map_err(|error| {
        let report = format!("the manifest of release '{release}' is not YAML: {error}");
        Failure::new(Class::Invalid, report)
    })?;
    Ok(documents.into_iter().flat_map(key::flat).collect())
}

/// Whether helm deletes the object when it is no longer rendered.
pub(super) fn goes_with_its_rendering(object: &Value) -> bool {
    let policy = object["metadata"]["annotations"][RESOURCE_POLICY].as_str();
    !policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case(KEEP)) && !key::is_passing(object)
}

fn part_of(object: &Value, of_release: &str) -> Option<Part> {
    key::key_of(object).map(|key| part_with(key, of_release))
}

/// The object with this key.
pub(super) fn part_with(key: ObjectKey, of_release: &str) -> Part {
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    Part {
        group: group.to_owned(),
        kind: key.kind,
        namespace: key.namespace.filter(|namespace| namespace != of_release),
        name: key.name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_helm_keeps_and_what_ends_by_itself_is_missed_by_nobody() {
        let object = |annotations: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a", "annotations": annotations}});
        assert!(goes_with_its_rendering(&object(json!(null))));
        assert!(goes_with_its_rendering(&object(
            json!({"helm.sh/resource-policy": "delete"})
        )));
        assert!(!goes_with_its_rendering(&object(
            json!({"helm.sh/resource-policy": " Keep"})
        )));
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"ttlSecondsAfterFinished": 5}});
        assert!(!goes_with_its_rendering(&job));
    }

    #[test]
    fn an_object_is_the_same_with_its_namespace_said_or_not_and_in_every_version() {
        let part = |version: &str, namespace: Value| {
            let object = json!({"apiVersion": version, "kind": "X", "metadata": {"name": "a", "namespace": namespace}});
            part_of(&object, "ns").unwrap()
        };
        assert_eq!(part("g/v1", json!(null)), part("g/v2", json!("ns")));
        assert_ne!(part("g/v1", json!(null)), part("g/v1", json!("other")));
        assert_ne!(part("g/v1", json!(null)), part("v1", json!(null)));
    }

    #[test]
    fn a_section_that_is_not_there_has_a_word_of_its_own() {
        use addon_core::values::Store;
        use names::Owner;

        let module = ModuleName::parse("one").unwrap();
        let mut store = Store::new();
        let owner = Owner::Module(module.clone());
        let none = asked(&module, &store.config_values(&owner));
        assert_eq!((none.section.as_str(), none.global.as_str()), ("none", "none"));
        store.set_config(&owner, Some(json!({"size": 1}))).unwrap();
        let some = asked(&module, &store.config_values(&owner));
        assert_ne!(some.section, none.section);
        assert_eq!(some.global, none.global);
    }
}
