//! The platforms of nodes and whether they are ready, as far as the operator may read them.
//!
//! Nodes are read by name, and seldom. A node that the operator has no right to read must never count as lost.

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::failure::Failure;
use channel_core::platform::Platform;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use tokio::time::Instant;
use tracing::{debug, info};

const RESOURCE: &str = "nodes";
/// The timeout of a read of a node, because other observations wait for the read.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failed read of a node. The operator may lack the right and get it later.
const PAUSE: Duration = Duration::from_mins(5);

/// The known platforms of nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    cluster: Cluster,
    /// The platform of each node; none if the node names no platform or was deleted.
    platforms: BTreeMap<String, Option<Platform>>,
    /// The time until which no platform is read.
    rests_until: Option<Instant>,
    is_told: bool,
}

impl Nodes {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.within(PATIENCE),
            platforms: BTreeMap::new(),
            rests_until: None,
            is_told: false,
        }
    }

    /// The platform of a node, if it is known.
    pub(super) fn platform(&self, node: &str) -> Option<&Platform> {
        self.platforms.get(node)?.as_ref()
    }

    /// Reads the platforms of those nodes that are not known.
    pub(super) async fn learn(&mut self, nodes: impl Iterator<Item = String>) {
        for node in nodes {
            if self.platforms.contains_key(&node) || self.rests_until.is_some_and(|until| Instant::now() < until) {
                continue;
            }
            match self.get(&node).await {
                Ok(found) => {
                    self.platforms.insert(node, found.as_ref().and_then(platform_of));
                }
                Err(error) => {
                    self.rests_until = Some(Instant::now() + PAUSE);
                    self.tell(error);
                }
            }
        }
    }

    /// Reads why a node is not ready; none if this is not certain.
    pub(super) async fn unheard(&self, node: &str) -> Option<String> {
        match self.get(node).await {
            Ok(Some(found)) => unheard(&found).map(|why| format!("its node '{node}' is not ready: {why}")),
            Ok(None) => Some(format!("its node '{node}' is gone")),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                debug!(node, error, "cannot read the node of a trial");
                None
            }
        }
    }

    async fn get(&self, node: &str) -> Result<Option<Node>, RequestError> {
        let api: Api<Node> = Api::all(self.cluster.open());
        let attempt = Attempt {
            namespace: None,
            ..self.cluster.attempt("get", RESOURCE, node)
        };
        self.cluster.ask(attempt, api.get_opt(node)).await
    }

    fn tell(&mut self, error: RequestError) {
        let Failure { report, hints, .. } = error.into();
        if std::mem::replace(&mut self.is_told, true) {
            debug!(error = report, "cannot read the platforms of nodes");
            return;
        }
        info!(
            error = report,
            hint = hints.join("; "),
            "cannot read the platforms of nodes: only the platform of our own pod is known"
        );
    }
}

fn platform_of(node: &Node) -> Option<Platform> {
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned();
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let os = label("kubernetes.io/os").or_else(|| info.map(|info| info.operating_system.clone()))?;
    let architecture = label("kubernetes.io/arch").or_else(|| info.map(|info| info.architecture.clone()))?;
    Platform::parse(&format!("{os}/{architecture}")).ok()
}

/// Why the node is not ready.
fn unheard(node: &Node) -> Option<String> {
    let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    let why = ready.message.as_ref().or(ready.reason.as_ref());
    (ready.status != "True").then(|| why.cloned().unwrap_or_else(|| "no reason is given".to_owned()))
}

/// The platform of this program, in the terms of OCI images.
pub(super) fn own_platform() -> Option<Platform> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    Platform::parse(&format!("{}/{architecture}", std::env::consts::OS)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_platform_is_told_by_labels_or_by_the_kubelet() {
        let labelled = json!({"metadata": {"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}}});
        assert_eq!(platform_of(&node(labelled)).unwrap().to_string(), "linux/arm64");
        let info = json!({
            "operatingSystem": "linux", "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
        });
        let told = node(json!({"metadata": {}, "status": {"nodeInfo": info}}));
        assert_eq!(platform_of(&told).unwrap().to_string(), "linux/amd64");
        assert_eq!(platform_of(&node(json!({"metadata": {}}))), None);
        assert!(own_platform().is_some());
    }

    #[test]
    fn a_node_is_unheard_only_if_it_says_so() {
        let with = |status: &str| {
            node(json!({"metadata": {}, "status": {"conditions": [
                {"type": "Ready", "status": status, "message": "Kubelet stopped posting node status."},
            ]}}))
        };
        assert_eq!(unheard(&with("True")), None);
        assert_eq!(unheard(&node(json!({"metadata": {}}))), None);
        let why = unheard(&with("Unknown"));
        assert_eq!(why.as_deref(), Some("Kubelet stopped posting node status."));
    }
}
