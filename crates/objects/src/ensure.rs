//! Objects of charts that must exist before their release.
//!
//! Fields that are not in the manifest stay as they are: owners, finalizers, helm's annotations.

use addon_core::failure::{Class, Failure};
use hyper::Method;
use kube_access::Cluster;
use kube_access::substitutes;
use serde_json::Value;

use super::address::{Address, Ask};
use super::change::MERGE_PATCH;
use super::key::key_of;
use super::race::{self, Lost, is_missing, is_taken};
use super::tally::Tally;

/// The outcome for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ensured {
    /// The object was created.
    Created,
    /// The object was changed.
    Updated,
    /// The object had no difference, so it was not written.
    Unchanged,
}

/// Changes the object to its manifest; writes nothing if there is no difference. An object without a namespace
/// belongs to that of the releases.
pub async fn ensure_object(cluster: &Cluster, manifest: &Value) -> Result<Ensured, Failure> {
    let Some(key) = key_of(manifest) else {
        let report = "an object of the chart has no kind, no version or no name";
        return Err(Failure::new(Class::Invalid, report));
    };
    let mut apis = cluster.apis().await?;
    if apis.kind(&key.api_version, &key.kind).is_none() {
        // The CRD of the kind may have been created a moment ago.
        cluster.forget_apis();
        apis = cluster.apis().await?;
    }
    let kind = apis.kind(&key.api_version, &key.kind).ok_or_else(|| {
        let (kind, version, server) = (&key.kind, &key.api_version, cluster.server());
        let report = format!("cannot create {key}: the API server at {server} has no kind {kind} of {version}");
        Failure::new(Class::Refused, report).hint("is its CRD there? a module can bring it in its folder 'crds'")
    })?;
    let namespace = kind
        .namespaced
        .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
    let address = Address::new(cluster.clone(), kind.clone(), namespace, Tally::default());
    Ok(race::run(|| ensure(&address, &key.name, manifest)).await?)
}

async fn ensure(address: &Address, name: &str, manifest: &Value) -> Result<Ensured, Lost> {
    let found = match address.get(name).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => {
            return match address.create(name, manifest).await {
                Ok(_) => Ok(Ensured::Created),
                Err(error) if is_taken(&error) => Err(Lost::Race(error)),
                Err(error) => Err(error.into()),
            };
        }
        Err(error) => return Err(error.into()),
    };
    if is_contained(manifest, &found) {
        return Ok(Ensured::Unchanged);
    }
    let ask = Ask {
        content_type: MERGE_PATCH,
        body: Some(manifest),
        ..Ask::new("patch", Method::PATCH)
    };
    let patched = match address.ask(name, ask).await {
        Err(refusal) if refusal.is_forbidden() => {
            let mut wanted = found.clone();
            substitutes::lay(&mut wanted, manifest);
            let replaced = address.replace(name, None, &wanted).await?;
            address.tell_lacking(refusal, "update");
            replaced
        }
        Err(error) if is_missing(&error) => return Err(Lost::Race(error)),
        patched => patched?,
    };
    // Fields that the API server drops or fills in are no change.
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    Ok(if version(&patched) == version(&found) {
        Ensured::Unchanged
    } else {
        Ensured::Updated
    })
}

/// Whether the object has everything that is wanted. An absent value equals null and an empty map.
fn is_contained(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), found) => wanted
            .iter()
            .all(|(key, value)| is_contained(value, found.get(key).unwrap_or(&Value::Null))),
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(one, other)| is_contained(one, other))
        }
        (wanted, found) => wanted == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_added_is_no_difference_and_what_they_changed_is() {
        let wanted = json!({"metadata": {"name": "a", "annotations": {}}, "spec": {"list": [{"x": 1}], "gone": null}});
        let with = |list: Value| json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"list": list, "more": 1}});
        assert!(is_contained(&wanted, &with(json!([{"x": 1, "default": true}]))));
        for list in [json!([{"x": 2}]), json!([]), json!([{"x": 1}, {"x": 1}]), json!("text")] {
            assert!(!is_contained(&wanted, &with(list.clone())), "{list}");
        }
    }
}
