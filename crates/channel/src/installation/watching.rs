//! Watches the operator's installation: its Deployment with the pods, and the `ReplicaSet` of a trial.
//!
//! An object that could not be read must never count as absent: it is unknown.

use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use channel_core::platform::Platform;
use channel_core::trial::sight::{self, Known, PodState};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube_access::Cluster;
use kube_access::error::RequestError;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::kept::Kept;
use super::nodes::{Nodes, own_platform};
use super::{DEPLOYMENTS, Installation, PODS, REPLICA_SETS, reading};
use crate::installation::raw_deployments;

/// The time without an event after which everything is read anew. Bookmarks do not count as events, because the client
/// does not report them.
const SILENCE: Duration = Duration::from_secs(75);
/// The value of `SILENCE` during a trial. Judges must know how old their observations are.
const SILENCE_ON_TRIAL: Duration = Duration::from_secs(15);
/// The interval of complete reads, because changes of a trial's `ReplicaSet` are not watched.
const LOOK: Duration = Duration::from_secs(75);
const LOOK_ON_TRIAL: Duration = Duration::from_secs(5);
/// The pause after a complete read that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The timeout of a complete read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The operator's installation as it was observed.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub deployment: Known<sight::Deployment>,
    /// The pods of the Deployment by name; none while they are unknown.
    pub replicas: Option<Vec<sight::Replica>>,
    /// The `ReplicaSet` of a trial and its pod.
    pub trial: Known<sight::TrialSet>,
    /// The time of the last complete read that the API server answered.
    pub heard: Option<Instant>,
}

impl Seen {
    /// Whether both observations show the same state, regardless of their times.
    fn shows(&self, other: &Self) -> bool {
        let Self {
            deployment,
            replicas,
            trial,
            heard: _,
        } = self;
        *deployment == other.deployment && *replicas == other.replicas && *trial == other.trial
    }
}

/// Keeps the observation of one installation up to date while `run` runs.
#[derive(Debug)]
pub struct Observer {
    cluster: Cluster,
    installation: Installation,
    deployment: Kept<DynamicObject>,
    pods: Kept<Pod>,
    nodes: Nodes,
    set: Known<ReplicaSet>,
    /// Why the node of the trial's pod is not ready.
    unheard: Option<String>,
    /// The time of the next complete read.
    look: Instant,
    heard: Option<Instant>,
    asked: Arc<Notify>,
    told: Option<String>,
    seen: watch::Sender<Seen>,
}

/// A handle that makes an [`Observer`] read the installation again, for use after a change.
#[derive(Debug, Clone)]
pub struct Asking(Arc<Notify>);

impl Asking {
    /// Asks for a complete read of the installation without delay.
    pub fn look_again(&self) {
        self.0.notify_one();
    }
}

impl Observer {
    /// An observer that has made no request yet.
    pub fn new(cluster: &Cluster, installation: &Installation) -> Self {
        let cluster = cluster.within(PATIENCE);
        let named = watcher::Config::default().fields(&format!("metadata.name={}", installation.deployment));
        let selected = watcher::Config::default().labels(&installation.selector);
        let pods: Api<Pod> = Api::namespaced(cluster.open(), cluster.namespace());
        let attempt = cluster.attempt("watch", DEPLOYMENTS, &installation.deployment);
        Self {
            deployment: Kept::new(raw_deployments(&cluster), named, attempt, SILENCE),
            pods: Kept::new(pods, selected, cluster.attempt("watch", PODS, ""), SILENCE),
            nodes: Nodes::new(&cluster),
            cluster,
            installation: installation.clone(),
            set: Known::Unknown,
            unheard: None,
            look: Instant::now(),
            heard: None,
            asked: Arc::default(),
            told: None,
            seen: watch::Sender::default(),
        }
    }

    /// The observations, as a watch.
    pub fn sights(&self) -> watch::Receiver<Seen> {
        self.seen.subscribe()
    }

    /// A handle to request another read.
    pub fn asking(&self) -> Asking {
        Asking(Arc::clone(&self.asked))
    }

    /// Observes until the future is dropped.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.deployment.step() => {}
                () = self.pods.step() => self.look_soon(),
                () = self.asked.notified() => self.look = Instant::now(),
                () = sleep_until(self.look) => Box::pin(self.look_around()).await,
            }
            self.learn_nodes().await;
            self.show();
        }
    }

    /// Reads soon, because a trial's pod may have changed.
    fn look_soon(&mut self) {
        let Some(pods) = self.pods.known() else { return };
        let on_trial = pods.values().filter(|pod| is_on_trial(pod)).count();
        let is_set = match &self.set {
            Known::There(_) => true,
            Known::Absent | Known::Unknown => false,
        };
        if is_set || on_trial > 0 {
            self.look = Instant::now();
        }
    }

    async fn look_around(&mut self) {
        let name = self.installation.trial_set();
        let api: Api<ReplicaSet> = Api::namespaced(self.cluster.open(), self.cluster.namespace());
        let attempt = self.cluster.attempt("get", REPLICA_SETS, &name);
        let ((deployment, deployments), (pod, pods)) = (self.deployment.listing(), self.pods.listing());
        let asked = Instant::now();
        let (set, deployments, pods) = tokio::join!(
            self.cluster.ask(attempt, api.get_opt(&name)),
            self.cluster.ask(deployment, deployments),
            self.cluster.ask(pod, pods),
        );
        let is_heard = set.is_ok() && deployments.is_ok() && pods.is_ok();
        if is_heard {
            self.heard = Some(asked);
            self.told = None;
        }
        // The watches log why the objects could not be read.
        if let Ok(list) = deployments {
            self.deployment.confirm(list);
        }
        if let Ok(list) = pods {
            self.pods.confirm(list);
        }
        self.take_set(set);
        self.look_at_node().await;
    }

    fn take_set(&mut self, found: Result<Option<ReplicaSet>, RequestError>) {
        let (set, silence, pause) = match found {
            Ok(Some(set)) => (Known::There(set), SILENCE_ON_TRIAL, LOOK_ON_TRIAL),
            Ok(None) => (Known::Absent, SILENCE, LOOK),
            Err(error) => {
                let pause = if error.is_forbidden() { LOOK } else { LOOK_AGAIN };
                let Failure { report, hints, .. } = error.into();
                self.tell(report, &hints.join("; "));
                (Known::Unknown, SILENCE, pause)
            }
        };
        (self.deployment.silence, self.pods.silence) = (silence, silence);
        self.look = Instant::now() + pause;
        self.set = set;
    }

    /// Reads the node of a pod that is not ready, because the pod's own status does not show that its node is down.
    async fn look_at_node(&mut self) {
        self.unheard = None;
        let Known::There(sight) = self.trial() else { return };
        let starting = sight.pod.filter(|pod| pod.state == PodState::Starting);
        let pod = starting.and_then(|pod| self.pods.known()?.get(&pod.name));
        if let Some(node) = pod.and_then(node_of) {
            self.unheard = self.nodes.unheard(&node).await;
        }
    }

    async fn learn_nodes(&mut self) {
        let pods = self.pods.known().into_iter().flat_map(|pods| pods.values());
        let nodes: Vec<String> = pods.filter(|pod| reading::is_wanted(pod)).filter_map(node_of).collect();
        self.nodes.learn(nodes.into_iter()).await;
    }

    fn show(&mut self) {
        let seen = Seen {
            deployment: self.seen_deployment(),
            replicas: self.replicas(),
            trial: self.trial(),
            heard: self.heard,
        };
        self.seen.send_if_modified(|shown| {
            let is_news = !seen.shows(shown);
            *shown = seen;
            is_news
        });
    }

    fn seen_deployment(&mut self) -> Known<sight::Deployment> {
        let Installation {
            deployment, container, ..
        } = &self.installation;
        let Some(known) = self.deployment.known() else {
            return Known::Unknown;
        };
        let Some(object) = known.get(deployment) else {
            return Known::Absent;
        };
        if object.metadata.uid.as_ref() != Some(&self.installation.deployment_uid) {
            return Known::Absent;
        }
        match reading::deployment(object, container) {
            Ok(sight) => Known::There(sight),
            Err(problem) => {
                self.tell(problem, "");
                Known::Unknown
            }
        }
    }

    fn replicas(&self) -> Option<Vec<sight::Replica>> {
        let wanted = self.pods.known()?.values().filter(|pod| reading::is_wanted(pod));
        let container = &self.installation.container;
        let replicas = wanted.map(|pod| reading::replica(pod, container, self.platform(pod)));
        Some(replicas.collect())
    }

    /// The platform of a pod: the platform of its node. If that is unknown, the operator's own pod has the platform of
    /// this program.
    fn platform(&self, pod: &Pod) -> Option<Platform> {
        let of_node = node_of(pod).and_then(|node| self.nodes.platform(&node).cloned());
        let is_ours = pod.metadata.name.as_ref() == Some(&self.installation.pod);
        of_node.or_else(|| is_ours.then(own_platform)?)
    }

    /// The ReplicaSet and the pod of the trial; unknown as long as the ReplicaSet or the pods are unknown.
    fn trial(&mut self) -> Known<sight::TrialSet> {
        let set = match (&self.set, self.pods.known()) {
            (Known::Absent, _) => return Known::Absent,
            (Known::Unknown, _) | (Known::There(_), None) => return Known::Unknown,
            (Known::There(set), Some(pods)) => {
                let on_trial = pods.values().filter(|pod| is_on_trial(pod));
                reading::trial_set(set, &self.installation.container, on_trial)
            }
        };
        match set {
            Ok(mut set) => {
                let starting = set.pod.as_mut().filter(|pod| pod.state == PodState::Starting);
                if let (Some(pod), Some(why)) = (starting, &self.unheard) {
                    pod.state = PodState::Lost(why.clone());
                }
                Known::There(set)
            }
            Err(problem) => {
                self.tell(problem, "delete it, or rename it");
                Known::Unknown
            }
        }
    }

    /// Logs once why something cannot be observed.
    fn tell(&mut self, error: String, hint: &str) {
        if self.told.as_ref() == Some(&error) {
            return;
        }
        let hint = Some(hint).filter(|hint| !hint.is_empty());
        warn!(
            error,
            hint, "cannot read all of our own installation; no version is tried until it can be read"
        );
        self.told = Some(error);
    }
}

fn is_on_trial(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(super::TRIAL_LABEL))
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}
