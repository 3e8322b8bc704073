//! Finds out whether an object that a chart renders existed before the release. Reads metadata only.

use addon_core::release::brake::ADOPTED;
use addon_core::release::{KEEP, POLICY, RELEASE_NAME, RELEASE_NAMESPACE};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use serde_json::Value;

/// The kinds whose objects contain other objects or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Namespace,
    Claim,
    Crd,
}

/// Whether the object exists and was not created by the release.
pub async fn is_not_of(
    cluster: &Cluster,
    release: &str,
    kind: Kind,
    namespace: Option<&str>,
    name: &str,
) -> Result<bool, RequestError> {
    let resource = match kind {
        Kind::Namespace => ApiResource::erase::<Namespace>(&()),
        Kind::Claim => ApiResource::erase::<PersistentVolumeClaim>(&()),
        Kind::Crd => ApiResource::erase::<CustomResourceDefinition>(&()),
    };
    let client = cluster.client();
    let namespace = (kind == Kind::Claim).then(|| namespace.unwrap_or(cluster.namespace()));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let attempt = Attempt {
        resource: resource.plural.clone(),
        namespace: namespace.map(str::to_owned),
        ..cluster.attempt("get", "", name)
    };
    let found = cluster.ask(attempt, api.get_metadata_opt(name)).await?;
    Ok(found.is_some_and(|found| !is_of(&found.metadata, release, cluster.namespace())))
}

/// Whether helm created the object for this release. An object that helm took over additionally has the operator's mark.
pub(super) fn is_of(found: &ObjectMeta, release: &str, namespace: &str) -> bool {
    let says = |key: &str| {
        found
            .annotations
            .as_ref()
            .and_then(|all| all.get(key))
            .map(String::as_str)
    };
    says(RELEASE_NAME) == Some(release) && says(RELEASE_NAMESPACE) == Some(namespace) && says(ADOPTED).is_none()
}

/// Whether helm leaves the object in the cluster.
pub(super) fn is_kept(found: &ObjectMeta) -> bool {
    let annotations = found.annotations.as_ref();
    keeps(annotations.and_then(|all| all.get(POLICY)).map(String::as_str))
}

/// Whether a manifest with this metadata tells helm to leave the object in the cluster.
pub(super) fn is_kept_by(metadata: &Value) -> bool {
    keeps(metadata["annotations"][POLICY].as_str())
}

fn keeps(policy: Option<&str>) -> bool {
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case(KEEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_of_the_release_that_made_it() {
        let meta = |annotations: &[(&str, &str)]| ObjectMeta {
            annotations: Some(
                annotations
                    .iter()
                    .map(|(key, value)| ((*key).into(), (*value).into()))
                    .collect(),
            ),
            ..ObjectMeta::default()
        };
        let ours = [(RELEASE_NAME, "one"), (RELEASE_NAMESPACE, "ns")];
        assert!(is_of(&meta(&ours), "one", "ns"));
        assert!(!is_of(&meta(&ours), "two", "ns"));
        assert!(!is_of(&meta(&ours), "one", "other"));
        assert!(!is_of(&meta(&[ours[0], ours[1], (ADOPTED, "true")]), "one", "ns"));
        assert!(!is_of(&ObjectMeta::default(), "one", "ns"));
    }
}
