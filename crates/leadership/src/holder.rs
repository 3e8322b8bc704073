//! Whether the holder of a lease has ended, by the status of its pod.
//!
//! A pod has ended if its kubelet has reported the end of all its containers. A pod that is not found must never count
//! as ended: a pod that was deleted by force, or whose node is lost, may still run.

use std::net::IpAddr;
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube_access::Cluster;
use kube_access::error::RequestError;
use tokio::time::sleep;
use tracing::debug;

/// The pause between a watch that has ended and the next one.
const PAUSE: Duration = Duration::from_secs(15);
/// The resource version for a list from the API server's cache, whatever its age.
const FROM_CACHE: &str = "0";

/// The state of one holder's pod.
#[derive(Debug)]
pub(crate) struct HolderPod {
    name: String,
    address: Option<IpAddr>,
    /// The UID of the pod that had the holder's address, because another pod may get its name.
    uid: Option<String>,
    /// Whether the last observation showed that the pod has ended.
    has_ended: bool,
}

impl HolderPod {
    /// A pod with this name and address, which has not been observed yet.
    pub(crate) fn new(name: &str, address: Option<IpAddr>) -> Self {
        Self {
            name: name.to_owned(),
            address,
            uid: None,
            has_ended: false,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Takes over an observation; none if the pod does not exist. Returns whether it has certainly ended.
    pub(crate) fn see(&mut self, pod: Option<&Pod>) -> bool {
        let Some(pod) = pod else {
            return self.has_ended;
        };
        let is_it = self.address.is_some_and(|address| has(pod, address));
        if is_it {
            self.uid.clone_from(&pod.metadata.uid);
        }
        if !is_it && (self.uid.is_none() || self.uid != pod.metadata.uid) {
            return false;
        }
        self.has_ended = has_ended(pod);
        self.has_ended
    }
}

fn has(pod: &Pod, address: IpAddr) -> bool {
    let status = pod.status.as_ref();
    let one = status.and_then(|status| status.pod_ip.as_deref());
    let all = status.and_then(|status| status.pod_ips.as_deref()).unwrap_or_default();
    let mut texts = one.into_iter().chain(all.iter().map(|ip| ip.ip.as_str()));
    texts.any(|text| text.parse() == Ok(address))
}

/// Whether all containers have ended. A phase alone proves nothing: a controller also writes it when it has lost a
/// node.
fn has_ended(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    statuses.is_some_and(|statuses| !statuses.is_empty() && statuses.iter().all(is_over))
}

/// Whether the container has ended and was not started again. A waiting container has run before if its status has a
/// last end.
fn is_over(container: &ContainerStatus) -> bool {
    let state = container.state.clone().unwrap_or_default();
    let last = container.last_state.clone().unwrap_or_default();
    state.terminated.is_some() || state.waiting.is_some() && last.terminated.is_some()
}

/// Reads the pod; none if it does not exist.
pub(crate) async fn pod(cluster: &Cluster, name: &str, within: Duration) -> Result<Option<Pod>, RequestError> {
    let api: Api<Pod> = Api::namespaced(cluster.open(), cluster.namespace());
    let attempt = cluster.attempt("get", "pods", name);
    cluster.within(within).ask(attempt, api.get_opt(name)).await
}

/// The pod after each change, the last time when it is deleted. Changes may come late or get lost.
pub(crate) fn pod_news(cluster: &Cluster, name: &str) -> impl Stream<Item = Pod> + Send + use<> {
    let api: Api<Pod> = Api::namespaced(cluster.open(), cluster.namespace());
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let watches = stream::unfold(None, move |last| {
        let (api, params) = (api.clone(), params.clone());
        async move {
            if last.is_some() {
                sleep(PAUSE).await;
            }
            let watch = api.watch(&params, FROM_CACHE).await;
            let events = match watch {
                Ok(events) => events.filter_map(|event| async move { event.ok() }).boxed(),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    debug!(
                        error,
                        "cannot watch the pod of the leader, its failure shows by the lease alone"
                    );
                    stream::empty().boxed()
                }
            };
            Some((events, Some(())))
        }
    });
    watches.flatten().filter_map(|event| async move {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => Some(pod),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(uid: &str, ip: &str, containers: &Value) -> Pod {
        let status = json!({"phase": "Failed", "podIP": ip, "containerStatuses": containers});
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": uid}, "status": status})).unwrap()
    }

    fn container(state: Value, last: Value) -> Value {
        let rest = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0});
        let mut status = rest.as_object().unwrap().clone();
        status.extend([("state".to_owned(), state), ("lastState".to_owned(), last)]);
        Value::Object(status)
    }

    #[test]
    fn a_pod_has_ended_when_all_of_its_containers_have() {
        let (ended, runs) = (json!({"terminated": {"exitCode": 137}}), json!({"running": {}}));
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let (over, again) = (
            container(ended.clone(), json!({})),
            container(waits.clone(), ended.clone()),
        );
        for (containers, expected) in [
            (json!([over]), true),
            (json!([over, again]), true),
            (json!([over, container(runs.clone(), ended)]), false),
            (json!([container(waits, json!({}))]), false),
            (json!([container(runs, json!({}))]), false),
            (json!([]), false),
        ] {
            let mut holder = HolderPod::new("a", "10.0.0.7".parse().ok());
            assert_eq!(
                holder.see(Some(&pod("u", "10.0.0.7", &containers))),
                expected,
                "{containers}"
            );
            assert_eq!(
                holder.see(None),
                expected,
                "it is gone, and this is how it was seen last"
            );
        }
    }

    #[test]
    fn a_pod_that_is_gone_or_another_tells_nothing() {
        let over = json!([container(json!({"terminated": {"exitCode": 0}}), json!({}))]);
        let mut holder = HolderPod::new("a", "10.0.0.7".parse().ok());
        assert!(!holder.see(None), "it may have been deleted by force");
        assert!(
            !holder.see(Some(&pod("other", "10.0.0.8", &over))),
            "it only has the name"
        );
        assert!(!holder.see(Some(&pod("u", "10.0.0.7", &json!([])))));
        assert!(!holder.see(None));
        assert!(
            holder.see(Some(&pod("u", "", &over))),
            "it is the one that had the address"
        );
    }
}
