//! The life of one pod: its network, its volumes, its containers, its status, and its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, PodSpec};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use super::board::Board;
use super::environment::namespace;
use super::network::{self, PodNetwork};
use super::status::{Restart, status};
use super::volumes::Volumes;
use super::{Agent, container, say};
use crate::report;
use crate::space::SpaceError;

/// The news about a pod's object.
#[derive(Clone, Debug)]
pub(super) enum Orders {
    Is(Arc<Pod>),
    Gone,
}

/// The state that all containers of one pod share.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) agent: Arc<Agent>,
    pub(super) pod: Arc<Pod>,
    pub(super) spec: PodSpec,
    pub(super) folder: PathBuf,
    pub(super) place: PodNetwork,
    pub(super) volumes: tokio::sync::Mutex<Volumes>,
    pub(super) board: Board,
    /// Set to the grace period when the pod has to end.
    pub(super) end: watch::Receiver<Option<Duration>>,
}

impl Sandbox {
    /// Waits until the pod has to end, and returns the grace period.
    pub(super) async fn asked_to_end(&self) -> Duration {
        let mut end = self.end.clone();
        let grace = end.wait_for(Option::is_some).await.ok().and_then(|grace| *grace);
        grace.unwrap_or_default()
    }
}

#[derive(Debug, Error)]
enum LifeError {
    #[error("cannot give the pod a place in the network")]
    Network(#[from] SpaceError),
    #[error("cannot make the folder of the pod")]
    Folder(#[from] std::io::Error),
    #[error("the pod asks for {0}, which is not known here")]
    Wish(&'static str),
    #[error("the work on the pod panicked")]
    Panic(#[from] JoinError),
}

/// The interval at which volumes are updated from the objects of the cluster.
const REFRESH: Duration = Duration::from_secs(3);

/// Runs a pod until its object can be removed.
pub(super) async fn live(agent: Arc<Agent>, pod: Arc<Pod>, mut orders: watch::Receiver<Orders>) {
    let spec = pod.spec.clone().unwrap_or_default();
    let board = Board::new(&spec);
    let (end, asked) = watch::channel(None);
    let mut teller = Teller::new(&agent, &pod, &board);
    let name = format!("{}/{}", namespace(&pod), pod.name_any());
    let done = matches!(
        pod.status.as_ref().and_then(|status| status.phase.as_deref()),
        Some("Succeeded" | "Failed")
    );
    let mut work = JoinSet::new();
    if !done {
        work.spawn(run(Arc::clone(&agent), Arc::clone(&pod), spec, board.clone(), asked));
    }
    let mut views = board.read();
    views.mark_changed();
    let mut is_there = true;
    loop {
        tokio::select! {
            Ok(()) = views.changed(), if !done => {
                let now = views.borrow_and_update().clone();
                teller.tell(&now).await;
            }
            changed = orders.changed(), if is_there => {
                is_there = changed.is_ok() && follow(&mut orders, &mut teller, &end);
            }
            Some(ended) = work.join_next() => {
                if let Ok(Err(error)) | Err(error) = ended.map_err(LifeError::from) {
                    say(&format!("{name}: {}", report::chain(&error)));
                    board.wait("CreateContainerError", &report::chain(&error));
                }
            }
            else => break,
        }
        if work.is_empty() && (!is_there || end.borrow().is_some()) {
            break;
        }
    }
    if is_there {
        let last = views.borrow_and_update().clone();
        teller.tell(&last).await;
        teller.remove().await;
    }
    let _ = fs::remove_dir_all(folder(&agent, &pod));
}

/// Passes changes of the object on; returns whether the object still exists.
fn follow(orders: &mut watch::Receiver<Orders>, teller: &mut Teller, end: &watch::Sender<Option<Duration>>) -> bool {
    match orders.borrow_and_update().clone() {
        Orders::Gone => {
            end.send_replace(Some(Duration::ZERO));
            false
        }
        Orders::Is(pod) => {
            if pod.metadata.deletion_timestamp.is_some() {
                let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
                end.send_replace(Some(Duration::from_secs(u64::try_from(grace).unwrap_or(0))));
            }
            teller.pod = pod;
            true
        }
    }
}

fn folder(agent: &Agent, pod: &Pod) -> PathBuf {
    agent.folder.join("pods").join(pod.uid().unwrap_or_default())
}

/// Runs all containers until none of them will run again.
async fn run(
    agent: Arc<Agent>,
    pod: Arc<Pod>,
    spec: PodSpec,
    board: Board,
    end: watch::Receiver<Option<Duration>>,
) -> Result<(), LifeError> {
    if spec.host_network == Some(true) || spec.host_pid == Some(true) || spec.host_ipc == Some(true) {
        return Err(LifeError::Wish("a namespace of the machine"));
    }
    let folder = folder(&agent, &pod);
    fs::create_dir_all(&folder)?;
    let taker = Arc::clone(&agent);
    let place = tokio::task::spawn_blocking(move || taker.addresses.take()).await??;
    let hosts = format!(
        "127.0.0.1\tlocalhost\n::1\tlocalhost\n{}\t{}\n{}\tkubernetes.default.svc kubernetes.default kubernetes\n",
        place.address(),
        pod.name_any(),
        network::SERVER
    );
    fs::write(folder.join("hosts"), hosts)?;
    fs::write(folder.join("hostname"), format!("{}\n", hostname(&pod)))?;
    fs::write(
        folder.join("resolv.conf"),
        "# Nobody answers questions about names here.\n",
    )?;
    let sandbox = Arc::new(Sandbox {
        volumes: tokio::sync::Mutex::new(Volumes::new(folder.join("volumes"))),
        agent,
        pod,
        spec,
        folder,
        place,
        board,
        end,
    });
    // The address is reported together with the next change of the board.
    sandbox.board.place(sandbox.place.address());
    tokio::select! {
        () = volumes(&sandbox) => {}
        _ = sandbox.asked_to_end() => return Ok(()),
    }
    containers(&sandbox).await
}

pub(super) fn hostname(pod: &Pod) -> String {
    let asked = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    asked.unwrap_or_else(|| pod.name_any())
}

/// Fills the volumes. Retries while an object is missing, because it may be created later.
async fn volumes(sandbox: &Sandbox) {
    loop {
        let client = sandbox.agent.client();
        let filled = sandbox.volumes.lock().await.fill(&client, &sandbox.pod).await;
        let Err(error) = filled else { return };
        sandbox.board.wait("ContainerCreating", &report::chain(&error));
        sleep(Duration::from_millis(500)).await;
    }
}

async fn containers(sandbox: &Arc<Sandbox>) -> Result<(), LifeError> {
    let restart = Restart::of(&sandbox.pod);
    let first: Vec<Container> = sandbox.spec.init_containers.clone().unwrap_or_default();
    if first.iter().any(|container| container.restart_policy.is_some()) {
        return Err(LifeError::Wish("an init container that goes on running"));
    }
    let count = first.len();
    for (index, container) in first.into_iter().enumerate() {
        let code = container::keep(Arc::clone(sandbox), index, container, restart).await;
        if code != Some(0) {
            return Ok(());
        }
    }
    let mut running = JoinSet::new();
    for (index, container) in sandbox.spec.containers.iter().enumerate() {
        let life = container::keep(Arc::clone(sandbox), count + index, container.clone(), restart);
        running.spawn(life);
    }
    let refresh = async {
        loop {
            sleep(REFRESH).await;
            let client = sandbox.agent.client();
            // If an object cannot be read now, the volume stays as it is.
            let _ = sandbox.volumes.lock().await.fill(&client, &sandbox.pod).await;
        }
    };
    let all = async {
        while let Some(ended) = running.join_next().await {
            ended?;
        }
        Ok(())
    };
    tokio::select! {
        ended = all => ended,
        () = refresh => Ok(()),
    }
}

/// Writes the status of a pod if it has changed.
struct Teller {
    api: Api<Pod>,
    pod: Arc<Pod>,
    board: Board,
    conditions: Vec<PodCondition>,
}

impl Teller {
    fn new(agent: &Agent, pod: &Arc<Pod>, board: &Board) -> Self {
        Self {
            api: Api::namespaced(agent.client(), &namespace(pod)),
            pod: Arc::clone(pod),
            board: board.clone(),
            conditions: Vec::new(),
        }
    }

    async fn tell(&mut self, views: &[super::board::View]) {
        let address = self.board.address().map(|address| address.to_string());
        let status = status(&self.pod, views, address, &self.conditions);
        self.conditions = status.conditions.clone().unwrap_or_default();
        let mut patch = json!({ "metadata": { "uid": self.pod.uid() }, "status": status });
        // The API server merges conditions one by one. So a condition has to be removed explicitly.
        let conditions = patch["status"]["conditions"].as_array_mut().into_iter().flatten();
        for condition in conditions.filter_map(Value::as_object_mut) {
            for field in ["reason", "message"] {
                condition.entry(field).or_insert(Value::Null);
            }
        }
        for _ in 0..TRIES {
            let told = self
                .api
                .patch_status(&self.pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch))
                .await;
            match told {
                Ok(_) => return,
                // The object is gone, or another one has its name.
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
                Err(error) => say(&format!(
                    "cannot tell how {} is: {}",
                    self.pod.name_any(),
                    report::chain(&error)
                )),
            }
            sleep(AGAIN).await;
        }
    }

    /// Removes the object of a pod that has ended on request.
    async fn remove(&self) {
        let now = DeleteParams::default().grace_period(0).preconditions(Preconditions {
            uid: self.pod.uid(),
            resource_version: None,
        });
        for _ in 0..TRIES {
            match self.api.delete(&self.pod.name_any(), &now).await {
                Ok(_) => return,
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
                Err(error) => say(&format!(
                    "cannot remove {}: {}",
                    self.pod.name_any(),
                    report::chain(&error)
                )),
            }
            sleep(AGAIN).await;
        }
    }
}

const TRIES: u32 = 30;
const AGAIN: Duration = Duration::from_secs(1);
