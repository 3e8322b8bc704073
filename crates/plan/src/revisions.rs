//! Revisions of a release, compared object by object: which objects came and went, and which fields changed.
//!
//! Must never show the data of a Secret, nor a secret among the values of then, and never write.

use std::collections::{BTreeMap, BTreeSet};

use kube_access::Cluster;
use kube_access::error::RequestError;
use objects::key::{ObjectKey, flat, key_of};
use releases::revisions::{Revision, history};
use serde_json::Value;
use thiserror::Error;

use crate::document::{ObjectAct, ObjectPlan};
use crate::objects::fields_of;

/// The objects in which two revisions of a release differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The number of the first revision.
    pub from: u32,
    /// The number of the second revision.
    pub to: u32,
    pub objects: Vec<ObjectPlan>,
}

/// Why two revisions cannot be compared.
#[derive(Debug, Error)]
pub enum NotCompared {
    /// Helm keeps no record of the release.
    #[error("module '{module}' has no release")]
    NoRelease { module: String },
    /// Helm keeps records of others.
    #[error("the release of module '{module}' has no record of revision {revision}")]
    NoRevision { module: String, revision: u32 },
    /// The records could not be read.
    #[error(transparent)]
    Request(Box<RequestError>),
}

impl From<RequestError> for NotCompared {
    fn from(error: RequestError) -> Self {
        Self::Request(error.into())
    }
}

/// Compares two revisions of a module's release; without a second one, with the newest.
pub async fn between(cluster: &Cluster, module: &str, from: u32, to: Option<u32>) -> Result<Comparison, NotCompared> {
    let all = history::all(cluster, module).await?;
    let (from, to) = chosen(&all, module, from, to)?;
    let (before, after) = (
        history::contents(cluster, from).await?,
        history::contents(cluster, to).await?,
    );
    let mut objects = compared(before.documents, after.documents, cluster.namespace());
    // Secrets of then may be others than those of now.
    for field in objects.iter_mut().flat_map(|object| &mut object.fields) {
        for value in [&mut field.before, &mut field.after].into_iter().flatten() {
            before.secrets.mask(value);
            after.secrets.mask(value);
        }
    }
    Ok(Comparison {
        from: from.newest.revision,
        to: to.newest.revision,
        objects,
    })
}

/// The records of both revisions. `all` has the newest one first.
fn chosen<'a>(
    all: &'a [Revision],
    module: &str,
    from: u32,
    to: Option<u32>,
) -> Result<(&'a Revision, &'a Revision), NotCompared> {
    let module = || module.to_owned();
    let newest = all.first().ok_or_else(|| NotCompared::NoRelease { module: module() })?;
    let find = |revision: u32| {
        let found = all.iter().find(|one| one.newest.revision == revision);
        found.ok_or_else(|| NotCompared::NoRevision {
            module: module(),
            revision,
        })
    };
    Ok((find(from)?, to.map_or(Ok(newest), find)?))
}

/// Group, kind, namespace and name: the same in all versions of a kind.
type Identity = (String, String, Option<String>, String);

/// The objects in which two manifests differ: in the order of the second one, then those that are gone. An object that
/// names the release's namespace is the same as one that names none.
fn compared(before: Vec<Value>, after: Vec<Value>, namespace: &str) -> Vec<ObjectPlan> {
    let (before, after) = (objects(before, namespace), objects(after, namespace));
    let old: BTreeMap<&Identity, &Value> = before.iter().map(|(own, _, object)| (own, object)).collect();
    let new: BTreeSet<&Identity> = after.iter().map(|(own, ..)| own).collect();
    let mut changes = Vec::new();
    for (own, key, object) in &after {
        match old.get(own) {
            None => changes.push(change(key, ObjectAct::Create)),
            Some(old) => {
                let fields = fields_of(old, object);
                if !fields.is_empty() {
                    changes.push(ObjectPlan {
                        fields,
                        ..change(key, ObjectAct::Change)
                    });
                }
            }
        }
    }
    let gone = before.iter().filter(|(own, ..)| !new.contains(own));
    changes.extend(gone.map(|(_, key, _)| change(key, ObjectAct::Delete)));
    changes
}

fn objects(documents: Vec<Value>, namespace: &str) -> Vec<(Identity, ObjectKey, Value)> {
    let objects = documents.into_iter().flat_map(flat).filter_map(|mut object| {
        if object
            .pointer("/metadata/namespace")
            .is_some_and(|own| own == namespace)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("namespace");
        }
        let key = key_of(&object)?;
        let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
        let own = (
            group.to_owned(),
            key.kind.clone(),
            key.namespace.clone(),
            key.name.clone(),
        );
        Some((own, key, object))
    });
    objects.collect()
}

fn change(key: &ObjectKey, act: ObjectAct) -> ObjectPlan {
    let key = key.clone();
    ObjectPlan {
        api_version: key.api_version,
        kind: key.kind,
        namespace: key.namespace,
        name: key.name,
        act,
        fields: Vec::new(),
        reason: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use masking::secret::MASK;
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, rest: &Value) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        for (key, value) in rest.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    }

    #[test]
    fn objects_come_go_and_change_and_a_secret_shows_the_names_of_its_keys() {
        let before = vec![
            object("ConfigMap", "gone", &json!({})),
            object("ConfigMap", "same", &json!({"data": {"a": "1"}})),
            object("Secret", "key", &json!({"data": {"user": "b25l"}})),
        ];
        let mut placed = object("ConfigMap", "same", &json!({"data": {"a": "1"}}));
        placed["metadata"]["namespace"] = "ns".into();
        let after = vec![
            placed,
            json!({"apiVersion": "v1", "kind": "List", "items": [object("Secret", "key", &json!({"data": {"user": "dHdv"}}))]}),
            object("ConfigMap", "new", &json!({})),
            json!(null),
        ];
        let changes = compared(before, after, "ns");
        let told: Vec<_> = changes.iter().map(|one| (one.act, one.name.as_str())).collect();
        let expected = [
            (ObjectAct::Change, "key"),
            (ObjectAct::Create, "new"),
            (ObjectAct::Delete, "gone"),
        ];
        assert_eq!(told, expected);
        let field = &changes[0].fields[0];
        assert_eq!((field.path.as_str(), &field.after), ("data.user", &Some(MASK.into())));
    }

    #[test]
    fn an_object_in_a_new_version_of_its_kind_is_the_same() {
        let at = |version: &str| vec![json!({"apiVersion": version, "kind": "Job", "metadata": {"name": "a"}})];
        let changes = compared(at("batch/v1beta1"), at("batch/v1"), "ns");
        assert_eq!(changes[0].fields[0].path, "apiVersion");
    }
}
