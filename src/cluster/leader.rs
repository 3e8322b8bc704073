//! The label by which a Service finds the pod of the leader.
//!
//! Writes nothing when the label is where it should be. Never decides who leads.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::Cluster;
use super::error::RequestError;

/// Says no more than the key.
const VALUE: &str = "true";

/// Whether a pod carries the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Carried,
    Absent,
}

impl Cluster {
    /// Brings the label to where it belongs: on this pod alone, if it is the leader's, and otherwise just not on it.
    /// Returns the pods from which it was taken and to which it was given.
    pub async fn mark_leader(&self, key: &str, pod: &str, wanted: Mark) -> Result<Vec<(String, Mark)>, RequestError> {
        let api: Api<Pod> = Api::namespaced(self.open.clone(), &self.namespace);
        let params = ListParams::default().labels(&format!("{key}={VALUE}"));
        let found = self
            .ask(self.attempt("list", "pods", ""), api.list_metadata(&params))
            .await?;
        let carriers: Vec<String> = found.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
        let mut changes = Vec::new();
        match wanted {
            Mark::Absent if carriers.iter().any(|name| name == pod) => changes.push((pod.to_owned(), Mark::Absent)),
            Mark::Absent => {}
            Mark::Carried => {
                // First ours: a review in between then reaches us, too.
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
            match self.ask(self.attempt("patch", "pods", &name), request).await {
                Ok(_) => done.push((name, mark)),
                // A pod that is gone carries nothing.
                Err(error) if error.is_not_found() && mark == Mark::Absent => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}
