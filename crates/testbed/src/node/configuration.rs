//! The configuration files of a node's programs. Each setting that is not a program's own default has its reason here.

use std::io;
use std::path::Path;

use fs_err as fs;
use serde_json::json;

use super::{Node, PODS};

const CONTAINERD: &str = "containerd.toml";
const KUBELET: &str = "kubelet.json";
const PROXY: &str = "kube-proxy.json";
const NETWORKS: &str = "networks";

/// The port on which the kubelet listens, at the address of its node.
const KUBELET_PORT: u16 = 10250;

impl Node {
    pub(super) fn containerd_arguments(&self) -> Vec<String> {
        vec!["--config".to_owned(), self.place(CONTAINERD)]
    }

    /// The arguments of the kubelet.
    pub(super) fn kubelet_arguments(&self) -> Vec<String> {
        vec![
            format!("--config={}", self.place(KUBELET)),
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--root-dir={}", self.place("kubelet")),
            format!("--cert-dir={}", self.place("kubelet-certificates")),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={}", self.address()),
            "--v=1".to_owned(),
        ]
    }

    /// The arguments of kube-proxy.
    pub(super) fn proxy_arguments(&self) -> Vec<String> {
        vec![format!("--config={}", self.place(PROXY))]
    }

    fn place(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// Writes all files. `registries` is the folder that tells how to reach registries.
pub(super) fn write(node: &Node, registries: &Path) -> io::Result<()> {
    let networks = node.folder.join(NETWORKS);
    fs::create_dir_all(&networks)?;
    fs::write(node.folder.join(CONTAINERD), containerd(node, registries))?;
    fs::write(networks.join("10-pods.conflist"), network(node).to_string())?;
    fs::write(node.folder.join(KUBELET), kubelet(node).to_string())?;
    fs::write(node.folder.join(PROXY), proxy(node).to_string())
}

/// Containerd's settings, in the version that containerd 1 and 2 read.
fn containerd(node: &Node, registries: &Path) -> String {
    let place = |name: &str| node.place(name);
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
# It makes folders below /opt.
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE the score of a container cannot be lower than our own.
  restrict_oom_score_adj = true
  # The profile would have to be loaded into the kernel of the machine.
  disable_apparmor = true
  # As containerd 2 has it: most programs that listen on a low port are not root.
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{registries}"
"#,
        root = place("containerd"),
        state = place("containerd-state"),
        socket = node.socket().display(),
        pause = node.pause,
        plugins = super::needs::plugins().display(),
        networks = place(NETWORKS),
        registries = registries.display(),
    )
}

/// The network of the node's pods.
fn network(node: &Node) -> serde_json::Value {
    let [a, b, c, _] = node.address().octets();
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": node.bridge_name(), "isGateway": true,
                // A pod may reach itself through a Service.
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local", "dataDir": node.place("addresses"),
                    "ranges": [[{ "subnet": format!("{a}.{b}.{c}.0/24"), "gateway": node.address() }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

fn kubelet(node: &Node) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{}", node.socket().display()),
        "address": node.address(),
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        // No other machine reaches the network of the node.
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        // The machine decides which version of control groups it has.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.group,
        "failSwapOn": false,
        "resolvConf": "",
        "podLogsDir": node.place("logs"),
        "imagePullCredentialsVerificationPolicy": "NeverVerify",
        "serializeImagePulls": false,
        // The node must not clean up the disk and the memory of the machine.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%",
        },
        // A full volume is noticed within seconds, not within a minute.
        "volumeStatsAggPeriod": "5s",
    })
}

fn proxy(node: &Node) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": { "kubeconfig": node.kubeconfig },
        "hostnameOverride": node.name,
        "mode": "iptables",
        "clusterCIDR": PODS,
        // An answer between two pods of one bridge passes the rules only if the request came from the node.
        "iptables": { "masqueradeAll": true, "minSyncPeriod": "0s" },
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    })
}
