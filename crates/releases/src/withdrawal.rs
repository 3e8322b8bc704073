//! The webhook configurations of a release, deleted before all of its other objects.
//!
//! Must never delete a configuration of another release, or one that its chart keeps.

use std::time::Duration;

use addon_core::release::interception::failed_webhook;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use report::Chain;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::adoption::{is_kept, is_of};
use crate::interception::configuration;
use crate::replacement;
use crate::revisions::Revision;

/// The longest wait until the API server no longer calls a deleted webhook. It learns of the deletion by a watch.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// Deletes a webhook configuration that helm made for the release and does not keep. Returns whether it was deleted.
pub async fn withdraw(cluster: &Cluster, release: &str, kind: &str, name: &str) -> Result<bool, RequestError> {
    let Some(place) = configuration(kind, name) else {
        return Ok(false);
    };
    let api: Api<DynamicObject> = Api::all_with(cluster.client(), &place.kind.resource);
    let attempt = Attempt {
        resource: place.kind.resource.plural.clone(),
        namespace: None,
        ..cluster.attempt("get", "", name)
    };
    let Some(found) = cluster.ask(attempt, api.get_metadata_opt(name)).await? else {
        return Ok(false);
    };
    match &found.metadata.uid {
        Some(uid) if !is_kept(&found.metadata) && is_of(&found.metadata, release, cluster.namespace()) => {
            replacement::take_away(cluster, &place, uid, false).await
        }
        Some(_) | None => Ok(false),
    }
}

/// Waits for a short time until the API server no longer calls a deleted webhook for a write of the revision's Secret.
/// The writes are dry runs.
pub async fn outlast(cluster: &Cluster, revision: &Revision) {
    let (name, api) = (revision.secret(), cluster.secrets());
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let nothing = json!({"metadata": {}});
    let nothing = Patch::Merge(&nothing);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let patched = api.patch_metadata(name, &params, &nothing);
        match cluster.ask(cluster.attempt("patch", "secrets", name), patched).await {
            Err(error) if failed_webhook(&Chain(&error).to_string()).is_some() => sleep(PAUSE).await,
            Ok(_) | Err(_) => return,
        }
    }
}
