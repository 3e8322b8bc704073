//! Takes one object away so that another one can be created under its name. Must never delete any other object than the
//! one with the given UID.

use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::core::DynamicObject;
use kube_access::Cluster;
use kube_access::apis::Kind;
use kube_access::error::{Attempt, RequestError};
use tokio::time::{Instant, sleep};

/// The longest wait until an object is gone. Finalizers may hold it.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// An object by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub kind: Kind,
    /// The object's namespace; `None` for an object of the whole cluster.
    pub namespace: Option<String>,
    pub name: String,
}

/// The UID of an object; `None` if it does not exist.
pub async fn uid_at(cluster: &Cluster, place: &Place) -> Result<Option<String>, RequestError> {
    let api = at(cluster, place);
    let found = api.get_metadata_opt(&place.name);
    let found = cluster.ask(attempt_at(cluster, "get", place), found).await?;
    Ok(found.and_then(|found| found.metadata.uid))
}

/// Deletes the object with this UID, and waits until it is gone. Its dependents go with it, or stay without an owner.
/// Returns whether it is gone.
pub async fn take_away(
    cluster: &Cluster,
    place: &Place,
    uid: &str,
    dependents_stay: bool,
) -> Result<bool, RequestError> {
    let policy = if dependents_stay {
        PropagationPolicy::Orphan
    } else {
        PropagationPolicy::Background
    };
    let params = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            ..Preconditions::default()
        }),
        ..DeleteParams::default()
    };
    let api = at(cluster, place);
    let deleted = api.delete(&place.name, &params);
    match cluster.ask(attempt_at(cluster, "delete", place), deleted).await {
        Err(error) if error.is_not_found() => return Ok(true),
        deleted => deleted.map(drop)?,
    }
    let deadline = Instant::now() + PATIENCE;
    while uid_at(cluster, place).await?.as_deref() == Some(uid) {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
    Ok(true)
}

fn at(cluster: &Cluster, place: &Place) -> Api<DynamicObject> {
    let (client, resource) = (cluster.client(), &place.kind.resource);
    match &place.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    }
}

fn attempt_at(cluster: &Cluster, verb: &'static str, place: &Place) -> Attempt {
    Attempt {
        resource: place.kind.resource.plural.clone(),
        namespace: place.namespace.clone(),
        ..cluster.attempt(verb, "", &place.name)
    }
}
