//! A real node beside a control plane: containerd, kubelet and kube-proxy, as people run them.
//!
//! The programs of a node run in namespaces of their own: processes and mounts end with the first process of the
//! node, and the first process ends with the owner of the control plane. Nodes use the network namespace of their
//! control plane, from which no route leads out. This module writes files and starts nothing; [`init`] starts the
//! programs. It must never change a file of the machine outside of the node's folder and its control groups.

pub mod init;

mod configuration;

mod groups;

pub mod needs;

mod pause;

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

pub(crate) use groups::sweep;
pub(crate) use pause::{PauseError, push as push_pause, reference as pause_image};

/// The network of the nodes' pods: each node has its own 256 addresses of it.
pub(crate) const PODS: &str = "10.0.0.0/16";

/// The addresses of Services.
pub(crate) const SERVICES: &str = "10.0.0.0/24";

/// The address of the first node. At this address pods reach the API server and the registry.
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

/// One node. The init reads it from a file in the node's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    /// The name of the node in the cluster.
    pub(crate) name: String,
    /// The number of the node, from 1.
    number: u8,
    /// The folder for images, volumes, logs and configuration.
    folder: PathBuf,
    /// The kubeconfig for the API server.
    kubeconfig: PathBuf,
    /// The kubelet and kube-proxy.
    kubelet: PathBuf,
    proxy: PathBuf,
    /// The image of the process that keeps the namespaces of a pod.
    pause: String,
    /// The cgroup of the node's pods, as a path below the root of each hierarchy.
    group: String,
}

/// The parts of a node that its control plane provides.
pub(crate) struct Provided<'a> {
    /// The folder of the control plane.
    pub(crate) plane: &'a Path,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) kubelet: PathBuf,
    pub(crate) proxy: PathBuf,
    pub(crate) pause: String,
}

impl Node {
    /// Writes the files of a node, and makes its control group.
    pub(crate) fn write(name: &str, number: u8, provided: Provided<'_>) -> io::Result<Self> {
        let node = Self {
            name: name.to_owned(),
            number,
            folder: folder_of(provided.plane, name),
            kubeconfig: provided.kubeconfig,
            kubelet: provided.kubelet,
            proxy: provided.proxy,
            pause: provided.pause,
            group: groups::name(provided.plane, name),
        };
        fs::create_dir_all(&node.folder)?;
        fs::create_dir_all(registries_of(provided.plane))?;
        groups::make(&node.group)?;
        configuration::write(&node, &registries_of(provided.plane))?;
        fs::write(node.file(), serde_json::to_string(&node)?)?;
        Ok(node)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that describes the node to its init.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("node.json")
    }

    fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(file)?)?)
    }

    /// The commands of `ip` that make the bridge of the node's pods. The bridge's own address is that of the node. The
    /// hardware address is fixed. Otherwise a bridge takes the lowest hardware address of its ports. A pod that comes
    /// or goes would then change that address, and cut off all other pods until they have asked for it again.
    pub(crate) fn bridge(&self) -> String {
        let (bridge, address, number) = (self.bridge_name(), self.address(), self.number);
        // The rules of kube-proxy replace the address of a Service, but only in a packet that has a route.
        let services = if self.is_first() {
            format!("route add {SERVICES} dev {bridge}\n")
        } else {
            String::new()
        };
        format!(
            "link add name {bridge} address 02:00:0a:00:{number:02x}:01 type bridge\n\
             addr add {address}/24 dev {bridge}\n\
             link set {bridge} up\n{services}"
        )
    }

    fn bridge_name(&self) -> String {
        format!("pods{}", self.number)
    }

    /// The address of the node, which is also the gateway of its pods.
    pub(crate) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, self.number, 1)
    }

    fn is_first(&self) -> bool {
        self.number == 1
    }

    fn log(&self, program: &str) -> PathBuf {
        self.folder.join(format!("{program}.log"))
    }

    /// The socket of containerd.
    fn socket(&self) -> PathBuf {
        self.folder.join("containerd.sock")
    }
}

fn folder_of(plane: &Path, name: &str) -> PathBuf {
    plane.join("nodes").join(name)
}

/// The folder that tells containerd how to reach registries.
fn registries_of(plane: &Path) -> PathBuf {
    plane.join("nodes/registries")
}

/// Lets the nodes of a control plane pull from the registry at this host and port without TLS.
pub(crate) fn allow_plain(plane: &Path, registry: &str) -> io::Result<()> {
    let folder = registries_of(plane).join(registry);
    fs::create_dir_all(&folder)?;
    let text = format!(
        "server = \"http://{registry}\"\n[host.\"http://{registry}\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
    );
    fs::write(folder.join("hosts.toml"), text)
}

/// The id, on this machine, of the first process of a container; none if no such process runs. `container` is the id
/// as the status of a pod has it, as in `containerd://1b2c`.
pub(crate) fn process_of(container: &str) -> Option<u32> {
    let id = container.rsplit("://").next().filter(|id| !id.is_empty())?;
    find(|process| {
        let groups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        groups.contains(id) && is_first_of_its_namespace(process)
    })
}

/// The id, on this machine, of a program of a node; none if it does not run. `program` is its file name.
pub(crate) fn program_of(plane: &Path, node: &str, program: &str) -> Option<u32> {
    let folder = folder_of(plane, node).display().to_string();
    find(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        let is_program = words.next().is_some_and(|first| Path::new(first).ends_with(program));
        is_program && words.any(|word| word.contains(&folder))
    })
}

fn find(is_wanted: impl Fn(&Path) -> bool) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let processes = entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        is_wanted(&entry.path()).then_some(id)
    });
    processes.min()
}

fn is_first_of_its_namespace(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.is_some_and(|line| line.split_whitespace().next_back() == Some("1"))
}
