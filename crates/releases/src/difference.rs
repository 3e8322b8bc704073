//! The changes that applying an object would make. The API server applies it in a dry run, so defaults and admission
//! webhooks are included. Must never change anything.

use addon_core::failure::{Class, Failure};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube_access::Cluster;
use kube_access::apis::{Apis, Kind};
use kube_access::error::RequestError;
use serde_json::Value;

use objects::key::{self, ObjectKey};

use crate::three_way;

/// The field manager of the dry run, as with kubectl and the original.
const MANAGER: &str = "kubectl-client-side-apply";

/// An object as it is and as it would be.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// Version, kind, namespace and name, joined by dots as in the output of `kubectl diff`.
    pub name: String,
    /// The present object; none if it does not exist.
    pub live: Option<Value>,
    /// The object after the change.
    pub applied: Value,
}

/// Why an object is not applied in a dry run.
#[derive(Debug)]
pub enum NotTried {
    /// The API server does not serve its kind.
    Unserved(Failure),
    /// The API server refuses the request, or cannot be reached.
    Request(RequestError),
}

impl From<RequestError> for NotTried {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl From<NotTried> for Failure {
    fn from(error: NotTried) -> Self {
        match error {
            NotTried::Unserved(failure) => failure,
            NotTried::Request(error) => error.into(),
        }
    }
}

/// Changes an object as helm would, in a dry run: from its form in the deployed revision, which is null if the revision does not have
/// it, to the rendered form. `None` for an object without a name.
pub async fn try_to_upgrade(
    cluster: &Cluster,
    was: &Value,
    wanted: &Value,
    apis: &Apis,
) -> Result<Option<Tried>, Failure> {
    let Some(key) = key::key_of(wanted) else {
        return Ok(None);
    };
    let kind = apis
        .kind(&key.api_version, &key.kind)
        .ok_or_else(|| unknown(&key, cluster.server()))?;
    let namespace = kind
        .namespaced
        .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
    let api = api(cluster, kind, namespace);
    let attempt = |verb| cluster.attempt_in(namespace, verb, &kind.resource.plural, &key.name);
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let live = cluster.ask(attempt("get"), api.get_opt(&key.name)).await?;
    let live = live
        .map(|live| serde_json::to_value(live).expect("an object from the API server is plain data with text keys"));
    let applied = if let Some(live) = &live {
        let merged = object(three_way::merged(live.clone(), was, wanted), &key)?;
        let tried = api.replace(&key.name, &params, &merged);
        cluster.ask(attempt("update"), tried).await?
    } else {
        let wanted = object(wanted.clone(), &key)?;
        cluster.ask(attempt("create"), api.create(&params, &wanted)).await?
    };
    Ok(Some(Tried {
        name: name_of(&key, namespace),
        live: live.map(without_managers),
        applied: plain(applied),
    }))
}

fn object(value: Value, key: &ObjectKey) -> Result<DynamicObject, Failure> {
    serde_json::from_value(value).map_err(|error| {
        let report = format!("cannot compare {key}: its manifest is no object: {error}");
        Failure::new(Class::Invalid, report)
    })
}

fn api(cluster: &Cluster, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &kind.resource),
        None => Api::all_with(cluster.client(), &kind.resource),
    }
}

/// Applies an object in a dry run; `None` for an object without a name. An object without a namespace belongs to
/// that of the releases.
pub async fn try_to_apply(cluster: &Cluster, object: &Value, apis: &Apis) -> Result<Option<Tried>, NotTried> {
    let Some(key) = key::key_of(object) else {
        return Ok(None);
    };
    let Some(kind) = apis.kind(&key.api_version, &key.kind) else {
        return Err(NotTried::Unserved(unknown(&key, cluster.server())));
    };
    let namespace = kind
        .namespaced
        .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
    let (live, applied) = tried(cluster, &key, kind, namespace, object).await?;
    Ok(Some(Tried {
        name: name_of(&key, namespace),
        live: live.map(plain),
        applied: plain(applied),
    }))
}

async fn tried(
    cluster: &Cluster,
    key: &ObjectKey,
    kind: &Kind,
    namespace: Option<&str>,
    object: &Value,
) -> Result<(Option<DynamicObject>, DynamicObject), RequestError> {
    let api = api(cluster, kind, namespace);
    let attempt = |verb| cluster.attempt_in(namespace, verb, &kind.resource.plural, &key.name);
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::apply(MANAGER).force()
    };
    let live = cluster.ask(attempt("get"), api.get_opt(&key.name)).await?;
    let wanted = Patch::Apply(object);
    let trial = api.patch(&key.name, &params, &wanted);
    let applied = cluster.ask(attempt("patch"), trial).await?;
    Ok((live, applied))
}

fn unknown(key: &ObjectKey, server: &str) -> Failure {
    let ObjectKey { api_version, kind, .. } = key;
    Failure::new(
        Class::Invalid,
        format!("cannot compare {key}: the API server at {server} has no kind {kind} of {api_version}"),
    )
    .hint("does a module bring the CRD that is not installed yet?")
}

fn name_of(key: &ObjectKey, namespace: Option<&str>) -> String {
    let version = key.api_version.replace('/', ".");
    let parts = [Some(version.as_str()), Some(&key.kind), namespace, Some(&key.name)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// The object without `managedFields`.
fn plain(object: DynamicObject) -> Value {
    let object = serde_json::to_value(object).expect("an object from the API server is plain data with text keys");
    without_managers(object)
}

fn without_managers(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_called_as_kubectl_calls_them() {
        let key = |api_version: &str, kind: &str| ObjectKey {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        assert_eq!(
            name_of(&key("apps/v1", "Deployment"), Some("ns")),
            "apps.v1.Deployment.ns.a"
        );
        assert_eq!(name_of(&key("v1", "Namespace"), None), "v1.Namespace.a");
    }
}
