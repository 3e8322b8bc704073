//! The nodes of a control plane, and the ways to their pods.
//!
//! With real nodes all programs run in a network namespace of their own, so that two control planes have the same
//! addresses and do not meet. The namespace ends with the last process. The ports for outside users lead into it from
//! the machine's loopback, under the same numbers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;

use super::component::{Component, wait_for};
use super::launch::StartError;
use super::outage::OutageError;
use super::setup::{self, Inmate, KWOK, Ports};
use super::{ControlPlane, Pods};
use crate::find::Tools;
use crate::forward::Door;
use crate::node::{self, Node, Provided};
use crate::part::Part;
use crate::registry::guard::{self, Guard, GuardError};
use crate::space::Network;

/// The name of the first node.
pub(super) const NODE: &str = "testbed";

/// The longest wait for a pod to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The network namespace of a control plane, and the forwarded ports.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) network: Network,
    _door: Door,
}

impl Home {
    pub(super) fn make(ports: &Ports) -> Result<Self, StartError> {
        let network = Network::create()?;
        network.furnish("link set lo up\n")?;
        let door = Door::open(&network, &[ports.server.number(), ports.registry.number()]).map_err(StartError::Door)?;
        Ok(Self { network, _door: door })
    }
}

/// Waits until no process of a node has a mount of the folder. The caller has made sure that the first process of each
/// node is dead; the kernel then kills all others, which takes a moment.
pub(super) fn wait_until_gone(folder: &Path) {
    const PATIENCE: Duration = Duration::from_secs(20);
    const PAUSE: Duration = Duration::from_millis(10);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && is_inhabited(folder) {
        thread::sleep(PAUSE);
    }
}

/// Whether a process still has a mount of this folder in a mount namespace of its own.
fn is_inhabited(folder: &Path) -> bool {
    let Some(folder) = folder.to_str() else { return false };
    let ours = std::fs::read_link("/proc/self/ns/mnt").ok();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut processes = entries.map(|entry| entry.path());
    processes.any(|process| {
        let is_apart = std::fs::read_link(process.join("ns/mnt")).is_ok_and(|its| Some(its) != ours);
        is_apart && fs::read_to_string(process.join("mountinfo")).is_ok_and(|table| table.contains(folder))
    })
}

impl ControlPlane {
    /// Connects to an address of a pod from the namespace of the nodes. The stream can be used from any namespace. A pod that
    /// goes takes its network along, so neither an attempt nor a read gets an answer then: both end with an error after 5 s.
    pub fn connect(&self, pod: SocketAddr) -> io::Result<TcpStream> {
        let Some(home) = &self.home else {
            return Err(io::Error::other(
                "no pods of this control plane can be reached from here",
            ));
        };
        let connected = home.network.within(|| Ok(TcpStream::connect_timeout(&pod, ANSWER)));
        let stream = connected.map_err(io::Error::other)??;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(stream)
    }

    /// A plain HTTP guard before the registry. Pods and their nodes find it at its own address.
    pub fn guard_for_pods(&self) -> Result<Guard, GuardError> {
        let (socket, registry) = self.before_pods()?;
        node::allow_plain(&self.path, &socket.local_addr()?.to_string())?;
        Guard::start_plain_on(socket, registry)
    }

    /// A guard with TLS before the registry, for pods. Nodes cannot pull from it, because they know neither the
    /// authority nor a login.
    pub fn mirror_for_pods(&self) -> Result<Guard, GuardError> {
        let (socket, registry) = self.before_pods()?;
        Guard::start_on(socket, registry)
    }

    /// A listener in the network of pods, and the address of the registry behind it.
    fn before_pods(&self) -> Result<(TcpListener, &str), GuardError> {
        let nowhere = || GuardError::Address("of a control plane without pods and registry".to_owned());
        let (home, registry) = self.home.as_ref().zip(self.registry()).ok_or_else(nowhere)?;
        let socket = home.network.within(|| guard::bound(node::FIRST));
        Ok((socket.map_err(io::Error::other)?, registry))
    }

    pub(super) fn enliven_with(&self, tools: &Tools) -> Result<(), StartError> {
        setup::link(&self.path, tools)?;
        match self.pods() {
            Pods::Pending => return Ok(()),
            Pods::Alive => {
                self.add(Part::KubeScheduler, &self.scheduler_flags())?;
                self.add(Part::Kwok, &self.kwok_flags())?;
                self.add_node(NODE)?;
                let admin = self.admin();
                self.wait_for("the node to be ready", || {
                    admin.run(["wait", "node", NODE, "--for=condition=Ready", "--timeout=5s"])
                })?;
            }
            Pods::Running => {
                self.add(Part::KubeScheduler, &self.scheduler_flags())?;
                self.prepare_pulls()?;
                self.add_real_node(NODE)?;
            }
        }
        self.admin()
            .run(["label", "node", NODE, "node-role.kubernetes.io/control-plane="])?;
        Ok(())
    }

    /// Lets nodes pull from the registry, and pushes the image that each pod needs.
    fn prepare_pulls(&self) -> Result<(), StartError> {
        if let (Some(registry), Some(of_pods)) = (self.registry(), self.registry_of_pods()) {
            node::allow_plain(&self.path, &of_pods)?;
            node::push_pause(&self.path, registry)?;
        }
        Ok(())
    }

    /// Starts one more real node, and returns when it is ready. All nodes of a control plane share its network, so that
    /// their pods reach each other.
    pub fn add_real_node(&self, name: &str) -> Result<(), StartError> {
        let home = self.home.as_ref().ok_or_else(|| {
            StartError::Needs("the control plane was started without real nodes, or by another process".to_owned())
        })?;
        let mut running = self.running();
        let there = running.iter().filter(|component| component.name() == COMPONENT).count();
        let number = u8::try_from(there + 1).map_err(|_| StartError::Needs("it has 255 nodes".to_owned()))?;
        let provided = Provided {
            plane: &self.path,
            kubeconfig: Inmate::Node.kubeconfig(&self.path),
            kubelet: self.program(Part::Kubelet),
            proxy: self.program(Part::KubeProxy),
            pause: node::pause_image(&self.registry_of_pods().unwrap_or_default()),
        };
        let node = Node::write(name, number, provided)?;
        home.network.furnish(&node.bridge())?;
        let flags = ["node".to_owned(), node.file().display().to_string()];
        let program = own().map_err(StartError::Own)?;
        let node = Component::start(COMPONENT, &program, &flags, node.folder(), Some(&home.network))?;
        running.push(node);
        let admin = self.admin();
        wait_for(&mut running, "the node to be ready", || {
            admin.run(["wait", "node", name, "--for=condition=Ready", "--timeout=5s"])
        })?;
        Ok(())
    }

    /// Cuts the power of the first node: all its processes are killed at once, and its programs start again with the
    /// files that they left.
    pub fn reboot(&self) -> Result<(), OutageError> {
        let mut running = self.running();
        let node = running.iter_mut().find(|component| component.name() == COMPONENT);
        let node = node.ok_or(OutageError::NotOurs(COMPONENT))?;
        node.kill()?;
        wait_until_gone(&self.path);
        Ok(node.again()?)
    }

    /// The process id of the first process of a container, for a test that kills or stops it from outside. `container`
    /// is the id in the status of its pod. None if no such process runs.
    pub fn process_of(&self, container: &str) -> Option<u32> {
        node::process_of(container)
    }

    /// The process id of a program of the first node: `containerd`, `kubelet` or `kube-proxy`. None if it does not run.
    pub fn program_of_node(&self, program: &str) -> Option<u32> {
        node::program_of(&self.path, NODE, program)
    }

    fn scheduler_flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", Inmate::Scheduler.kubeconfig(&self.path).display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ]
    }

    fn kwok_flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", Inmate::Kwok.kubeconfig(&self.path).display()),
            format!("--config={}", self.path.join(KWOK).display()),
            "--manage-all-nodes=true".to_owned(),
            // Next to the address range of the services.
            "--cidr=10.0.1.0/24".to_owned(),
        ]
    }
}

/// The name of the component that is the first process of a node.
const COMPONENT: &str = "node";

/// The path of the program `testbed`: this one, or, in a test, the one built beside it.
fn own() -> io::Result<PathBuf> {
    const NAME: &str = "testbed";
    let own = std::env::current_exe()?;
    let places = own.ancestors().skip(1).take(2).map(|folder| folder.join(NAME));
    let found = std::iter::once(own.clone())
        .filter(|own| own.file_name().is_some_and(|name| name == NAME))
        .chain(places)
        .find(|file| file.is_file());
    found.ok_or_else(|| {
        let text = format!(
            "there is none beside {}; `cargo build --package testbed` makes it",
            own.display()
        );
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}
