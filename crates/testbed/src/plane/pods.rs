//! The programs that make pods run: a scheduler, and a simulated or a real node.
//!
//! With a real node the whole control plane is in a network namespace of its own, together with the pods. So the API
//! server reaches the pods by their addresses, pods reach nothing else, and the interfaces end with the last process.
//! The ports for outside users lead into the namespace from the machine's loopback, under the same numbers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;

use super::launch::StartError;
use super::setup::{Inmate, KWOK, Ports};
use super::{ControlPlane, Pods, component::Component, component::wait_for};
use crate::forward::Door;
use crate::node;
use crate::part::Part;
use crate::registry::guard::{self, Guard, GuardError};
use crate::space::Network;

pub(super) const NODE: &str = "testbed";

/// The longest wait for a pod to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The folder of the node's agent.
const AGENT: &str = "node";

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

/// Waits until the processes of all pods of the folder have ended. The caller has made sure that their agent is dead;
/// the kernel then kills them, which takes a moment.
pub(super) fn wait_until_gone(folder: &Path) {
    const PATIENCE: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(10);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && is_inhabited(folder) {
        thread::sleep(PAUSE);
    }
}

/// Whether an init of this folder runs, or a process that still has a mount of the folder in its namespace.
fn is_inhabited(folder: &Path) -> bool {
    let Some(folder) = folder.to_str() else { return false };
    let ours = std::fs::read_link("/proc/self/ns/mnt").ok();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut processes = entries.map(|entry| entry.path());
    processes.any(|process| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let mounted = || {
            fs::read_to_string(process.join("mountinfo"))
                .unwrap_or_default()
                .contains(folder)
        };
        let apart = std::fs::read_link(process.join("ns/mnt")).is_ok_and(|its| Some(its) != ours);
        (line.contains("\0pod-") && line.contains(folder)) || (apart && mounted())
    })
}

impl ControlPlane {
    /// Connects to an address of a pod from the namespace of the API server. The stream can be used from any namespace. A pod that
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

    /// A plain HTTP guard before the registry. Pods and their node find it at its own address.
    pub fn guard_for_pods(&self) -> Result<Guard, GuardError> {
        let (socket, registry) = self.before_pods()?;
        Guard::start_plain_on(socket, registry)
    }

    /// A guard with TLS before the registry, for pods. The node cannot pull from it, because it knows neither the
    /// authority nor a login.
    pub fn mirror_for_pods(&self) -> Result<Guard, GuardError> {
        let (socket, registry) = self.before_pods()?;
        Guard::start_on(socket, registry)
    }

    /// A listener in the network of pods, and the address of the registry behind it.
    fn before_pods(&self) -> Result<(TcpListener, &str), GuardError> {
        let nowhere = || GuardError::Address("of a control plane without pods and registry".to_owned());
        let (home, registry) = self.home.as_ref().zip(self.registry()).ok_or_else(nowhere)?;
        let socket = home.network.within(|| guard::bound(node::network::NODE));
        Ok((socket.map_err(io::Error::other)?, registry))
    }

    pub(super) fn add_pods(&mut self) -> Result<(), StartError> {
        match self.pods() {
            Pods::Pending => return Ok(()),
            Pods::Alive => {
                self.add(Part::KubeScheduler, &self.scheduler_flags())?;
                self.add(Part::Kwok, &self.kwok_flags())?;
                self.add_node(NODE)?;
            }
            Pods::Running => {
                self.add(Part::KubeScheduler, &self.scheduler_flags())?;
                self.add_agent()?;
            }
        }
        let admin = self.admin();
        wait_for(self.components(), "the node to be ready", || {
            admin.run(["wait", "node", NODE, "--for=condition=Ready", "--timeout=5s"])
        })?;
        admin.run(["label", "node", NODE, "node-role.kubernetes.io/control-plane="])?;
        Ok(())
    }

    /// The process id of the first process of a container, for a test that kills or stops it from outside. `pod` is the
    /// uid of the pod. None if no such process runs.
    pub fn process_of(&self, pod: &str, container: &str) -> Option<u32> {
        node::process_of(&self.path.join(AGENT), pod, container)
    }

    fn add_agent(&mut self) -> Result<(), StartError> {
        let kubeconfig = Inmate::Node.kubeconfig(&self.path);
        let registry = self.registry().and_then(|address| address.rsplit_once(':'));
        let registry = registry.map(|(_, port)| format!("--registry={port}"));
        let flags = [
            "node".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--folder={}", self.path.join(AGENT).display()),
            format!("--name={NODE}"),
        ];
        let flags: Vec<String> = flags.into_iter().chain(registry).collect();
        let network = self.home.as_ref().map(|home| &home.network);
        let agent = Component::start("node", &agent().map_err(StartError::Own)?, &flags, &self.path, network)?;
        self.components().push(agent);
        Ok(())
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

/// The path of the program `testbed`: this one, or, in a test, the one built beside it.
fn agent() -> io::Result<PathBuf> {
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
