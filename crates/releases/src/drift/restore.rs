//! Restores the altered fields of one object of a release. Fields that other writers have added stay, and there is no new
//! revision.

use addon_core::failure::Failure;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::Attempt;
use serde_json::Value;

use super::alteration::{Alteration, alterations_of, remedy};
use objects::key::{ObjectKey, key_of};

/// The field manager of restores: helm's own, so that helm owns the field again.
const MANAGER: &str = "helm";
/// The number of attempts when another writer changes the object at the same time.
const TRIES: usize = 3;

/// The API resource and the place of an object.
struct ObjectPlace {
    api: Api<DynamicObject>,
    key: ObjectKey,
    attempt: Attempt,
}

/// The outcome of restoring an object.
#[derive(Debug, Default)]
pub struct PutRight {
    /// The alterations that were restored.
    pub tried: Vec<Alteration>,
    /// The alterations that remain after the restore.
    pub left: Vec<Alteration>,
}

/// The alterations in the live object of a manifest; none if the object does not exist.
pub async fn alterations(cluster: &Cluster, manifest: &Value, apis: &Apis) -> Result<Vec<Alteration>, Failure> {
    let Some(place) = place_of(cluster, manifest, apis) else {
        return Ok(Vec::new());
    };
    let live = live(cluster, &place).await?;
    Ok(live.map_or_else(Vec::new, |live| alterations_of(manifest, &live)))
}

/// Restores the altered fields of an object, except those that are left to other writers.
pub async fn put_right(
    cluster: &Cluster,
    manifest: &Value,
    apis: &Apis,
    is_left: impl Fn(&Alteration) -> bool,
) -> Result<PutRight, Failure> {
    let Some(place) = place_of(cluster, manifest, apis) else {
        return Ok(PutRight::default());
    };
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for tried in 1.. {
        let Some(live) = live(cluster, &place).await? else {
            break;
        };
        let mut altered = alterations_of(manifest, &live);
        altered.retain(|one| !is_left(one));
        if altered.is_empty() {
            break;
        }
        let patch = Patch::Merge(remedy(&live, &altered));
        let attempt = Attempt {
            verb: "patch",
            ..place.attempt.clone()
        };
        match cluster
            .ask(attempt, place.api.patch(&place.key.name, &params, &patch))
            .await
        {
            Ok(patched) => {
                let mut left = alterations_of(manifest, &plain(patched));
                left.retain(|one| !is_left(one));
                return Ok(PutRight { tried: altered, left });
            }
            Err(error) if error.is_conflict() && tried < TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(PutRight::default())
}

/// The place of a manifest's object. None for a document without an object, and for a kind that is not served: the runs
/// of modules notice that the object is absent.
fn place_of(cluster: &Cluster, manifest: &Value, apis: &Apis) -> Option<ObjectPlace> {
    let key = key_of(manifest)?;
    let kind = apis.kind(&key.api_version, &key.kind)?;
    let namespace = kind
        .namespaced
        .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &kind.resource),
        None => Api::all_with(cluster.client(), &kind.resource),
    };
    let attempt = cluster.attempt_in(namespace, "get", &kind.resource.plural, &key.name);
    Some(ObjectPlace { api, key, attempt })
}

async fn live(cluster: &Cluster, ObjectPlace { api, key, attempt }: &ObjectPlace) -> Result<Option<Value>, Failure> {
    let found = cluster.ask(attempt.clone(), api.get_opt(&key.name)).await?;
    Ok(found.map(plain))
}

fn plain(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object from the API server is plain data with text keys")
}
