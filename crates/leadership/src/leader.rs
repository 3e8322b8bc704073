//! The label by which a Service selects the leader's pod.
//!
//! Writes nothing if the label is right. Never decides who leads.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::json;

/// The label's value has no meaning.
const VALUE: &str = "true";

/// Whether a pod carries the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Carried,
    Absent,
}

/// Sets the label on this pod alone if it leads, and otherwise only removes it from this pod. Returns the changed
/// pods.
pub(crate) async fn mark_leader(
    cluster: &Cluster,
    key: &str,
    pod: &str,
    wanted: Mark,
) -> Result<Vec<(String, Mark)>, RequestError> {
    let api: Api<Pod> = Api::namespaced(cluster.open(), cluster.namespace());
    let params = ListParams::default().labels(&format!("{key}={VALUE}"));
    let found = cluster
        .ask(cluster.attempt("list", "pods", ""), api.list_metadata(&params))
        .await?;
    let carriers: Vec<String> = found.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
    let mut changes = Vec::new();
    match wanted {
        Mark::Absent if carriers.iter().any(|name| name == pod) => changes.push((pod.to_owned(), Mark::Absent)),
        Mark::Absent => {}
        Mark::Carried => {
            // This pod gets the label first, so that the Service is never without a pod. Until the others lose it,
            // a review may reach any of them.
            if !carriers.iter().any(|name| name == pod) {
                changes.push((pod.to_owned(), Mark::Carried));
            }
            let others = carriers.into_iter().filter(|name| name != pod);
            changes.extend(others.map(|name| (name, Mark::Absent)));
        }
    }
    let mut done = Vec::new();
    for (name, mark) in changes {
        let value = match mark {
            Mark::Carried => json!(VALUE),
            Mark::Absent => json!(null),
        };
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let params = PatchParams::default();
        let request = api.patch_metadata(&name, &params, &patch);
        match cluster.ask(cluster.attempt("patch", "pods", &name), request).await {
            Ok(_) => done.push((name, mark)),
            // A pod that does not exist has no label.
            Err(error) if error.is_not_found() && mark == Mark::Absent => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
