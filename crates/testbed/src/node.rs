//! A node whose pods are real processes of this machine.
//!
//! The agent registers the node, takes the pods that the scheduler binds to it, and runs each container from the
//! unpacked layers of its image, in namespaces of its own. It runs in the network namespace of its control plane, from
//! which no route leads out, and knows nothing of the purpose of the pods. Everything it makes ends with it: processes
//! by parent-death signals, mounts and interfaces with their namespaces, files with the folder of the control plane.
//!
//! Deliberately absent: names of services (there is no DNS), services that are not TCP, enforcement of resource limits
//! and seccomp profiles (both are accepted and ignored), terminals and port-forwarding, volumes other than `ConfigMap`,
//! Secret, projected, downward API and `emptyDir`, namespaces of the machine in pods, and init containers that keep
//! running (sidecars). A pod that needs one of these says so in its status.

pub mod init;

mod board;

mod child;

mod container;

mod environment;

mod identity;

mod images;

mod layer;

mod life;

pub(crate) mod network;

mod probe;

mod reference;

mod registration;

mod serve;

mod services;

mod spec;

mod status;

mod tls;

mod volumes;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::report;
use crate::space::SpaceError;
use images::Images;
use life::Orders;
use network::Addresses;

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The kubeconfig for the API server.
    pub kubeconfig: PathBuf,
    /// The folder for images, logs and volumes.
    pub folder: PathBuf,
    /// The name of the node.
    pub name: String,
    /// The port of the registry on loopback. Pods and the node find the registry at the same port of the node's
    /// address.
    pub registry: Option<u16>,
}

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("cannot start the agent")]
    Runtime(#[source] io::Error),
    #[error("cannot make the network of the pods")]
    Network(#[from] SpaceError),
    #[error("cannot read how to reach the API server")]
    Config(#[from] kube::config::KubeconfigError),
    #[error("cannot talk to the API server")]
    Api(#[from] kube::Error),
    #[error("cannot listen where pods and the API server look for the node")]
    Listen(#[source] io::Error),
}

/// The state that all pods of a node share.
#[derive(Debug)]
pub(crate) struct Agent {
    client: ClientOf,
    name: String,
    folder: PathBuf,
    images: Images,
    addresses: Addresses,
}

/// A client that has a `Debug` form, which errors need.
struct ClientOf(Client);

impl std::fmt::Debug for ClientOf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Client")
    }
}

impl Agent {
    pub(crate) fn client(&self) -> Client {
        self.client.0.clone()
    }
}

/// Runs an agent until the process ends. The caller is in the network namespace of the control plane.
pub fn run(settings: &Settings) -> Result<(), NodeError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(NodeError::Runtime)?;
    runtime.block_on(work(settings))
}

async fn work(settings: &Settings) -> Result<(), NodeError> {
    let read = Kubeconfig::read_from(&settings.kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    network::prepare()?;
    let mut tasks = JoinSet::new();
    let server = network::server(&config.cluster_url);
    tasks.spawn(network::lead_to_server(server).await.map_err(NodeError::Listen)?);
    if let Some(port) = settings.registry {
        tasks.spawn(network::lead_to_registry(port).await.map_err(NodeError::Listen)?);
    }
    let agent = Arc::new(Agent {
        client: ClientOf(Client::try_from(config)?),
        name: settings.name.clone(),
        folder: settings.folder.clone(),
        images: Images::new(settings.folder.join("images")),
        addresses: Addresses::default(),
    });
    let listener = serve::listen().await.map_err(NodeError::Listen)?;
    tasks.spawn(serve::serve(Arc::clone(&agent), listener));
    registration::register(&agent).await?;
    tasks.spawn(services::play(agent.client()));
    tasks.spawn(registration::stay_registered(Arc::clone(&agent)));
    follow(agent, tasks).await;
    Ok(())
}

/// Starts a task for each pod, and passes changes of the pod's object on to the task.
async fn follow(agent: Arc<Agent>, mut tasks: JoinSet<()>) {
    let ours = watcher::Config::default().fields(&format!("spec.nodeName={}", agent.name));
    let mut events = watcher(Api::<Pod>::all(agent.client()), ours).default_backoff().boxed();
    let mut lives: HashMap<String, watch::Sender<Orders>> = HashMap::new();
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                listed.push(identifier(&pod));
                applied(&agent, &mut lives, &mut tasks, pod);
            }
            Ok(Event::InitDone) => lives.retain(|id, life| {
                let there = listed.contains(id);
                if !there {
                    life.send_replace(Orders::Gone);
                }
                there
            }),
            Ok(Event::Apply(pod)) => applied(&agent, &mut lives, &mut tasks, pod),
            Ok(Event::Delete(pod)) => {
                if let Some(life) = lives.remove(&identifier(&pod)) {
                    life.send_replace(Orders::Gone);
                }
            }
            Err(error) => say(&format!("cannot watch pods: {}", report::chain(&error))),
        }
        while tasks.try_join_next().is_some() {}
    }
}

fn applied(agent: &Arc<Agent>, lives: &mut HashMap<String, watch::Sender<Orders>>, tasks: &mut JoinSet<()>, pod: Pod) {
    let pod = Arc::new(pod);
    if let Some(life) = lives.get(&identifier(&pod)) {
        life.send_replace(Orders::Is(pod));
        return;
    }
    let (life, orders) = watch::channel(Orders::Is(Arc::clone(&pod)));
    lives.insert(identifier(&pod), life);
    tasks.spawn(life::live(Arc::clone(agent), pod, orders));
}

fn identifier(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

/// The id of a container's first process on this machine, while it runs. `folder` is the agent's.
pub(crate) fn process_of(folder: &Path, pod: &str, container: &str) -> Option<u32> {
    let (_, run) = serve::runs(&folder.join("pods").join(pod).join("containers").join(container)).pop()?;
    fs::read_to_string(run.join(spec::PROCESS)).ok()?.trim().parse().ok()
}

/// Writes a line of the agent's own log.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "node: {line}");
}
