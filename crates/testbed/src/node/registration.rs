//! The node in the cluster: its object, and the lease by which it shows that it is alive.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{Agent, network, say, serve};
use crate::report;

/// Far below the time after which the controllers consider a node dead.
const BEAT: Duration = Duration::from_secs(5);

/// The number of pods for which there are addresses, with some to spare.
const PODS: &str = "200";

/// Registers the node, as ready.
pub(super) async fn register(agent: &Agent) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(agent.client());
    let name = &agent.name;
    let labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": ARCHITECTURE,
    });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } });
    nodes.patch(name, &ours(), &Patch::Apply(node)).await?;
    let status = json!({ "apiVersion": "v1", "kind": "Node", "status": status(agent) });
    nodes.patch_status(name, &ours(), &Patch::Apply(status)).await?;
    Ok(())
}

fn ours() -> PatchParams {
    PatchParams::apply("testbed-node").force()
}

const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "amd64"
};

fn status(agent: &Agent) -> Value {
    let now = Timestamp::now().to_string();
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "AgentLives", "message": "the agent of the node lives",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let room = json!({ "cpu": "8", "memory": "16Gi", "ephemeral-storage": "50Gi", "pods": PODS });
    json!({
        "capacity": room,
        "allocatable": room,
        "addresses": [
            { "type": "InternalIP", "address": network::NODE },
            { "type": "Hostname", "address": agent.name },
        ],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": serve::PORT } },
        // Commands arrive over a WebSocket. Without this declaration the API server would translate it to SPDY.
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        "conditions": [
            condition("MemoryPressure", "False"),
            condition("DiskPressure", "False"),
            condition("PIDPressure", "False"),
            condition("Ready", "True"),
        ],
        "nodeInfo": {
            "architecture": ARCHITECTURE, "operatingSystem": "linux", "osImage": "the machine of the testbed",
            "kernelVersion": rustix::system::uname().release().to_string_lossy(),
            "containerRuntimeVersion": concat!("testbed://", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": crate::part::Part::KubeApiserver.version(), "kubeProxyVersion": "",
            "machineID": agent.name, "systemUUID": agent.name, "bootID": agent.name,
        },
    })
}

async fn beat(agent: &Agent) -> Result<(), kube::Error> {
    let leases: Api<Lease> = Api::namespaced(agent.client(), "kube-node-lease");
    let spec = json!({
        "holderIdentity": agent.name,
        "leaseDurationSeconds": 40,
        "renewTime": format!("{:.6}", Timestamp::now()),
    });
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": agent.name }, "spec": spec,
    });
    leases.patch(&agent.name, &ours(), &Patch::Apply(lease)).await.map(drop)
}

/// Renews the lease for ever.
pub(super) async fn stay_registered(agent: Arc<Agent>) {
    let mut clock = tokio::time::interval(BEAT);
    loop {
        clock.tick().await;
        if let Err(error) = beat(&agent).await {
            say(&format!(
                "cannot renew the lease of the node: {}",
                report::chain(&error)
            ));
        }
    }
}
