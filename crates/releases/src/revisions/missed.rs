//! Objects that helm would leave behind, because it removes a release by its newest record alone. After upgrades that
//! failed, that record lacks objects of the deployed revision and of the failed ones.
//!
//! Must never name an object that is not the release's own, or that stays when its release is removed.

use std::collections::BTreeSet;

use addon_core::release::Status;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;
use serde_json::{Value, json};

use super::super::adoption::{is_kept, is_kept_by, is_of};
use super::Revision;
use super::records::Stored;
use super::unserved::{self, served};
use crate::revisions::records::remade;
use objects::key::{self, ObjectKey, key_of};

/// The objects of the release that the last good revision or a later one names, and that the newest revision does not
/// name. `acting` reads the objects with the rights of the release's account. An object that the account may not read
/// is left out.
pub async fn missed(
    cluster: &Cluster,
    newest: &Revision,
    acting: &Cluster,
    apis: &Apis,
) -> Result<Vec<Value>, RequestError> {
    if newest.newest.status == Status::Deployed {
        return Ok(Vec::new());
    }
    let release = newest.release.as_str();
    let records = crate::revisions::records::records(cluster, release).await?;
    let is_newest = |stored: &&Stored| stored.record.tag.revision(release) == Some(newest.newest.revision);
    let (last, earlier): (Vec<_>, Vec<_>) = since_last_good(release, &records).into_iter().partition(is_newest);
    let manifests = |records: &[&Stored]| records.iter().filter_map(|stored| stored.manifest()).collect();
    let (last, earlier): (Vec<String>, Vec<String>) = (manifests(&last), manifests(&earlier));
    let fates = unserved::fates(cluster, earlier.iter().map(String::as_str), apis).await;
    let objects = last.iter().flat_map(|manifest| served(manifest, &fates));
    let mut known: BTreeSet<_> = objects
        .filter_map(|object| Some(key::identity(cluster, &key_of(&object)?, apis)))
        .collect();
    let mut missed = Vec::new();
    // If several records name an object, the latest record counts.
    for object in earlier.iter().rev().flat_map(|manifest| served(manifest, &fates)) {
        let Some(key) = key_of(&object) else { continue };
        let is_new = known.insert(key::identity(cluster, &key, apis));
        if is_new && !is_kept_by(&object["metadata"]) && has(acting, release, &key, apis).await? {
            missed.push(bare(&key));
        }
    }
    Ok(missed)
}

/// Whether the object exists, belongs to the release, and is deleted when the release is removed.
async fn has(cluster: &Cluster, release: &str, key: &ObjectKey, apis: &Apis) -> Result<bool, RequestError> {
    match remade::metadata_of(cluster, key, apis).await {
        Ok(live) => Ok(live.is_some_and(|live| is_of(&live, release, cluster.namespace()) && !is_kept(&live))),
        Err(error) if error.is_forbidden() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The object with nothing but its name, which is enough for helm to delete it. The whole objects of several records
/// may not fit into one record.
fn bare(key: &ObjectKey) -> Value {
    let mut metadata = json!({"name": key.name});
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata})
}

/// The last record whose revision was ever deployed, and all later records, in order. All records if there is no such
/// record.
fn since_last_good<'a>(release: &str, records: &'a [Stored]) -> Vec<&'a Stored> {
    let is_good = |stored: &Stored| {
        let payload = stored.record.payload.as_ref().ok();
        payload.is_some_and(|payload| [Status::Deployed, Status::Superseded].contains(&payload.status))
    };
    let of_release: Vec<&Stored> = records
        .iter()
        .filter(|stored| stored.record.tag.revision(release).is_some())
        .collect();
    let begin = of_release.iter().rposition(|stored| is_good(stored)).unwrap_or(0);
    of_release[begin..].to_vec()
}
