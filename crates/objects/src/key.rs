//! The identity of objects, in manifests and in the cluster. Must never make a request.

use std::collections::BTreeSet;
use std::fmt;

use kube_access::Cluster;
use kube_access::apis::Apis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
