//! Finds out which objects of a release exist.
//!
//! It reads only metadata and never changes anything. An object counts as existing if it has its name and the
//! operator's labels, as in the original. Its contents are compared only if a setting asks for it.

pub mod alteration;
pub mod lookout;
pub mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use addon_core::module::description::Restoring;
use addon_core::release::Objects;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Up to this number, objects of one kind and namespace are read one by one, because a list would contain the objects
/// of all modules.
const ONE_BY_ONE: usize = 4;
/// The limit of concurrent requests for one release.
const AT_ONCE: usize = 5;
const PAGE: u32 = 500;

/// The settings which drift of releases is reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The setting for modules that have no setting of their own.
    pub all: Restoring,
    /// The settings of single modules, by name.
    pub of_modules: BTreeMap<String, Restoring>,
}

impl Restored {
    /// The setting for a release.
    pub fn of(&self, release: &str) -> Restoring {
        self.of_modules.get(release).copied().unwrap_or(self.all)
    }

    /// Whether any drift is reverted, for any release.
    pub fn is_any(&self) -> bool {
        self.each().any(|restoring| restoring != Restoring::Off)
    }

    /// Whether objects of any release are compared with their manifests.
    fn compares_any(&self) -> bool {
        self.each().any(|restoring| restoring == Restoring::Changed)
    }

    fn each(&self) -> impl Iterator<Item = Restoring> {
        self.of_modules.values().copied().chain([self.all])
    }
}

/// The identity of an object in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    /// `v1`, `apps/v1`, …
    #[serde(rename = "a")]
    pub api_version: String,
    /// The kind, as in `ConfigMap`.
    #[serde(rename = "k")]
    pub kind: String,
    /// The namespace that the manifest names; none if the manifest names none.
    #[serde(rename = "ns", default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    #[serde(rename = "n")]
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The objects in a manifest that must keep existing. Documents without a kind or a name are left out; helm reports
/// them.
pub fn keys_of(documents: &[Value]) -> BTreeSet<ObjectKey> {
    let mut keys = BTreeSet::new();
    let mut take = |object: &Value| keys.extend(key_of(object).filter(|_| !is_passing(object)));
    for document in documents {
        match document.get("items").and_then(Value::as_array) {
            Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                items.iter().for_each(&mut take);
            }
            _ => take(document),
        }
    }
    keys
}

/// The objects of a document, which may be a list.
pub fn flat(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items,
        _ => vec![document],
    }
}

/// Whether the object is a Job that its author wants to be deleted after its end. Then its absence is no drift.
pub fn is_passing(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    api_version.starts_with("batch/") && object["kind"] == "Job" && object["spec"]["ttlSecondsAfterFinished"].is_u64()
}

/// The identity of an object; none if it has no name yet.
pub fn key_of(object: &Value) -> Option<ObjectKey> {
    let metadata = object.get("metadata")?;
    Some(ObjectKey {
        api_version: object.get("apiVersion")?.as_str()?.to_owned(),
        kind: object.get("kind")?.as_str()?.to_owned(),
        namespace: metadata
            .get("namespace")
            .and_then(Value::as_str)
            .filter(|ns| !ns.is_empty())
            .map(str::to_owned),
        name: metadata.get("name")?.as_str()?.to_owned(),
    })
}

/// Group, kind, namespace and name of an object: the same in all versions of its kind, and for all manifests.
pub type Identity = (String, String, String, String);

/// The objects of one kind in one namespace.
struct Batch {
    resource: ApiResource,
    namespace: Option<String>,
    keys: Vec<ObjectKey>,
}

/// The identity of an object in a manifest or in the cluster.
pub fn identity(cluster: &Cluster, key: &ObjectKey, apis: &Apis) -> Identity {
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    let is_everywhere = apis
        .kind(&key.api_version, &key.kind)
        .is_some_and(|kind| !kind.namespaced);
    let namespace = key.namespace.as_deref().unwrap_or(cluster.namespace());
    let namespace = if is_everywhere { "" } else { namespace };
    (
        group.to_owned(),
        key.kind.clone(),
        namespace.to_owned(),
        key.name.clone(),
    )
}

/// Looks for all objects; returns the first missing one. Objects of kinds that are not served are skipped: helm
/// could not create them either, and they are looked for when the kind is served again.
pub async fn look_for(
    cluster: &Cluster,
    keys: &BTreeSet<ObjectKey>,
    labels: &BTreeMap<String, String>,
    apis: &Apis,
) -> Result<Objects, RequestError> {
    let batches = batches(cluster, keys, apis);
    let missing = stream::iter(batches)
        .map(|batch| missing_of(cluster, batch, labels))
        .buffer_unordered(AT_ONCE)
        .try_filter_map(|missing| async move { Ok(missing) })
        .boxed()
        .try_next()
        .await?;
    Ok(missing.map_or(Objects::Present, |key| Objects::Missing(key.to_string())))
}

/// Objects grouped by kind and namespace, without those of kinds that are not served.
fn batches(cluster: &Cluster, keys: &BTreeSet<ObjectKey>, apis: &Apis) -> Vec<Batch> {
    let mut batches: BTreeMap<(&str, &str, Option<&str>), Batch> = BTreeMap::new();
    for key in keys {
        let Some(kind) = apis.kind(&key.api_version, &key.kind) else {
            continue;
        };
        let namespace = kind
            .namespaced
            .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
        batches
            .entry((&key.api_version, &key.kind, namespace))
            .or_insert_with(|| Batch {
                resource: kind.resource.clone(),
                namespace: namespace.map(str::to_owned),
                keys: Vec::new(),
            })
            .keys
            .push(key.clone());
    }
    let mut parts = Vec::new();
    for batch in batches.into_values() {
        if batch.keys.len() > ONE_BY_ONE {
            parts.push(batch);
            continue;
        }
        let Batch {
            resource,
            namespace,
            keys,
        } = batch;
        parts.extend(keys.into_iter().map(|key| Batch {
            resource: resource.clone(),
            namespace: namespace.clone(),
            keys: vec![key],
        }));
    }
    parts
}

async fn missing_of(
    cluster: &Cluster,
    batch: Batch,
    labels: &BTreeMap<String, String>,
) -> Result<Option<ObjectKey>, RequestError> {
    let Batch {
        resource,
        namespace,
        keys,
    } = batch;
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    let attempt = |verb, name: &str| cluster.attempt_in(namespace.as_deref(), verb, &resource.plural, name);
    if let [key] = keys.as_slice() {
        let found = cluster
            .ask(attempt("get", &key.name), api.get_metadata_opt(&key.name))
            .await?;
        let there = found.is_some_and(|found| carries(&found.metadata, labels));
        return Ok((!there).then(|| key.clone()));
    }
    let selector: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut params = ListParams::default().labels(&selector.join(",")).limit(PAGE);
    let mut found = BTreeSet::new();
    loop {
        let page = cluster.ask(attempt("list", ""), api.list_metadata(&params)).await?;
        found.extend(page.items.into_iter().filter_map(|object| object.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(keys.into_iter().find(|key| !found.contains(&key.name))),
        }
    }
}

fn carries(metadata: &ObjectMeta, labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(key, value)| metadata.labels.as_ref().and_then(|all| all.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_those_of_all_objects_also_in_lists() {
        let documents = [
            json!(null),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "List", "items": [
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "n"}}]}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "d"}, "spec": {"ttlSecondsAfterFinished": 0}}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "e"}, "spec": {}}),
        ];
        let keys: Vec<_> = keys_of(&documents).iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["Job/e", "ConfigMap/a", "n/Secret/b"]);
    }

    #[test]
    fn keys_survive_the_annotation() {
        let documents = [json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}})];
        let keys = keys_of(&documents);
        let text = serde_json::to_string(&keys).unwrap();
        assert_eq!(text, r#"[{"a":"v1","k":"ConfigMap","ns":"n","n":"a"}]"#);
        assert_eq!(serde_json::from_str::<BTreeSet<ObjectKey>>(&text).unwrap(), keys);
    }
}
