//! Rewrites the objects of a CRD without a change, so that the API server stores them in the present storage version
//! and the CRD can lose older ones. Changes nothing else, and never deletes.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use serde_json::Value;

const PAGE: u32 = 500;
/// The number of objects that are rewritten at the same time.
const AT_ONCE: usize = 5;
/// The number of attempts for an object when another writer is faster.
const TRIES: usize = 5;

/// Rewrites every object of the CRD.
pub(super) async fn rewrite_objects(cluster: &Cluster, crd: &DynamicObject) -> Result<(), RequestError> {
    let resource = resource_of(crd);
    let all: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let attempt = about_object(cluster, "list", &resource, "", None);
        let page = cluster.ask(attempt, all.list(&params)).await?;
        stream::iter(page.items)
            .map(|object| rewrite(cluster, &resource, object))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

async fn rewrite(cluster: &Cluster, resource: &ApiResource, mut object: DynamicObject) -> Result<(), RequestError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let namespace = object.metadata.namespace.clone();
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, resource),
        None => Api::all_with(cluster.client(), resource),
    };
    let params = PostParams::default();
    let about = |verb| about_object(cluster, verb, resource, &name, namespace.clone());
    for tried in 1.. {
        // Items of a list may lack their kind and version.
        object.types = Some(TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        match cluster.ask(about("update"), api.replace(&name, &params, &object)).await {
            Err(error) if error.is_conflict() && tried < TRIES => {}
            Err(error) if error.is_not_found() => break,
            written => return written.map(drop),
        }
        // The faster writer has rewritten the object, but perhaps through an API server that did not know the new
        // storage version yet.
        match cluster.ask(about("get"), api.get_opt(&name)).await? {
            Some(found) => object = found,
            None => break,
        }
    }
    Ok(())
}

fn about_object(
    cluster: &Cluster,
    verb: &'static str,
    of: &ApiResource,
    name: &str,
    namespace: Option<String>,
) -> Attempt {
    Attempt {
        resource: of.plural.clone(),
        namespace,
        ..cluster.attempt(verb, "", name)
    }
}

/// The API resource of the CRD's objects: in the storage version if that is served, else in any served version.
fn resource_of(crd: &DynamicObject) -> ApiResource {
    let spec = &crd.data["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = || versions.iter().filter(|version| version["served"] == true);
    let stored = served().find(|version| version["storage"] == true);
    let version = stored.or_else(|| served().next()).unwrap_or(&Value::Null);
    let kind = GroupVersionKind::gvk(
        &text(&spec["group"]),
        &text(&version["name"]),
        &text(&spec["names"]["kind"]),
    );
    ApiResource::from_gvk_with_plural(&kind, &text(&spec["names"]["plural"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_addressed_by_a_version_that_is_served() {
        for (served, expected) in [([true, true], "g/v2"), ([true, false], "g/v1")] {
            let crd: DynamicObject = serde_json::from_value(json!({
                "metadata": {"name": "things.g"},
                "spec": {"group": "g", "names": {"kind": "Thing", "plural": "things"}, "versions": [
                    {"name": "v1", "served": served[0], "storage": false},
                    {"name": "v2", "served": served[1], "storage": true}]}
            }))
            .unwrap();
            let resource = resource_of(&crd);
            assert_eq!(
                (resource.api_version.as_str(), resource.plural.as_str()),
                (expected, "things")
            );
        }
    }
}
