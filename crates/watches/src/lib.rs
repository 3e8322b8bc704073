//! Watches of objects, and snapshots of what they saw: now, and after each change. A *monitor* is the watch that a
//! kubernetes binding of a hook asks for.
//!
//! Monitors with the same selection share one watch, and each object is kept once. A change is in the snapshot before
//! it is reported, so that a snapshot is never older than a reported change. Must never lose a change of an object that
//! still exists, nor report one twice, whatever happens to the connection.
//!
//! ```text
//!   Monitors::start --> selection --> feed <--- list, watch, check --- stream <--> API server
//!   OwnWatches::begin                  |
//!   Monitors::read                     v  through the lens of each target
//!                                   ledger   all targets and their snapshots, behind one lock
//!                                      |
//!                 +--------------------+---------------------+
//!                 v gate               v                     v
//!           Event to the core   channel of an own watch   reader of the ConfigMap
//! ```
//!
//! Begin with `Monitors`, then read `feed.rs`: one watch from its first list to its end.

mod feed;
pub mod gate;
mod heard;
mod ledger;
pub mod lens;
mod namespaces;
pub mod observation;
pub mod own;
pub mod reader;
pub mod selection;
mod shared;
pub mod still;
mod stream;
pub mod trouble;
pub mod unwatched;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::KubernetesBinding;
use addon_core::object::ObjectView;
use addon_core::object::snapshot::{Operations, Snapshot};
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::Event;
use futures::future::try_join_all;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use names::{HookId, MonitorId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::gate::Gate;
use self::ledger::outlet::Outlet;
use self::ledger::{Key, Target};
use self::lens::{Compile, Lens};
use self::namespaces::{Namespaces, join_all};
use self::observation::{Labels, Observe};
use self::reader::Reader;
use self::selection::Selection;
use self::shared::Shared;

/// The settings of watches.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A watch counts as stale if nothing has shown for this long that it works.
    pub bound: Duration,
    /// The timeout for the beginning of an answer of the API server.
    pub patience: Duration,
    /// Compiles the text of a filter.
    pub compile: Compile,
}

impl Settings {
    /// The default bound. Servers send a bookmark about once a minute, so a watch without changes needs no further
    /// request.
    pub const BOUND: Duration = Duration::from_secs(90);
    /// The default timeout.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// The time without an event after which a watch is checked. The rest of the bound is for the check.
    fn silence(&self) -> Duration {
        self.bound * 5 / 6
    }

    /// The time that the check of a silent watch may take.
    fn doubt(&self) -> Duration {
        self.bound / 6
    }
}

/// All monitors. Clones share everything.
#[derive(Clone)]
pub struct Monitors(Arc<Shared>);

/// A snapshot of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The objects in the order that the contract defines.
    pub objects: Vec<ObjectView>,
    /// The number of the last change in the snapshot.
    pub seq: u64,
}

/// The state of a monitor for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The snapshot.
    pub reading: Reading,
    /// Whether the objects are Secrets.
    pub of_secrets: bool,
    /// The counts of changes since the monitor's start.
    pub since_start: Operations,
    /// The counts of changes since the monitor's snapshot was last read for a run.
    pub since_run: Operations,
}

/// A stale watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleWatch {
    /// The kind of the watched objects.
    pub kind: String,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The time since the last sign that the watch works.
    pub since: Duration,
    /// The last error of the watch, if there was one.
    pub error: Option<String>,
}

impl Monitors {
    /// Starts without a monitor. Changes go to the loop through `door`, in the order in which they entered snapshots.
    /// While the channel is full, the watch that brought a change waits.
    pub fn new(
        cluster: &Cluster,
        kinds: &Kinds,
        door: mpsc::Sender<Event>,
        settings: Settings,
        observe: Observe,
    ) -> Self {
        Self(Arc::new(Shared::new(
            cluster.clone(),
            kinds.clone(),
            door,
            settings,
            observe,
        )))
    }

    /// Starts all monitors of a hook, or none. When this returns, their snapshots are complete. Earlier changes are in
    /// the snapshots and are not reported; later ones are reported. Dropping the future before leaves nothing behind.
    pub async fn start(&self, hook: &HookId, monitors: Vec<MonitorStart>) -> Result<(), Failure> {
        let mut begun = Begun {
            shared: Arc::clone(&self.0),
            ids: Vec::new(),
        };
        for MonitorStart { id, binding } in &monitors {
            let target = self.target(hook, binding)?;
            if !self.0.ledger().enter(Key::Monitor(*id), target) {
                return Err(Failure::defect(format!("monitor {} runs already", id.0)));
            }
            begun.ids.push(*id);
        }
        let starts = monitors.iter().map(|monitor| self.begin(monitor));
        let sets = try_join_all(starts).await?;
        let mut ledger = self.0.ledger();
        let ids = std::mem::take(&mut begun.ids);
        for target in ids.into_iter().map(Key::Monitor) {
            if let Some(target) = ledger.target_mut(target) {
                target.live = true;
            }
        }
        drop(ledger);
        for (set, end) in sets.into_iter().flatten() {
            set.follow(end);
        }
        Ok(())
    }

    /// Stops monitors; unknown ones are ignored. After that, the loop receives only changes that were already sent.
    pub fn stop(&self, ids: &[MonitorId]) {
        for id in ids {
            strike(&self.0, *id);
        }
    }

    /// The snapshots of these monitors at the same moment; none for one that does not run.
    pub fn snapshot(&self, ids: &[MonitorId]) -> Vec<Option<Reading>> {
        let ledger = self.0.ledger();
        let readings = ids
            .iter()
            .map(|id| Some(read(&ledger.target(Key::Monitor(*id))?.snapshot)));
        readings.collect()
    }

    /// The snapshots for a run of a hook, after which the counts of its monitors begin anew.
    pub fn snapshot_for_run(&self, hook: &HookId, ids: &[MonitorId]) -> Vec<Option<Reading>> {
        let mut ledger = self.0.ledger();
        ledger.begin_run(hook);
        let readings = ids
            .iter()
            .map(|id| Some(read(&ledger.target(Key::Monitor(*id))?.snapshot)));
        readings.collect()
    }

    /// The snapshot and the counts of a monitor for people. Reading them resets nothing.
    pub fn describe(&self, id: MonitorId) -> Option<Description> {
        let ledger = self.0.ledger();
        let target = ledger.target(Key::Monitor(id))?;
        let (snapshot, labels) = (&target.snapshot, target.labels.as_deref());
        let [since_start, since_run] = snapshot.operations();
        Some(Description {
            reading: read(snapshot),
            of_secrets: labels.is_none_or(Labels::are_of_secrets),
            since_start,
            since_run,
        })
    }

    /// All stale watches.
    pub fn stale(&self) -> Vec<StaleWatch> {
        self.0.ledger().stale(self.0.settings.bound)
    }

    /// Kinds that hooks watch and the API server no longer serves, each with its group and version.
    pub fn awaited_kinds(&self) -> BTreeSet<(String, String)> {
        self.0.ledger().awaited_kinds()
    }

    /// The number of running watches.
    pub fn watches(&self) -> usize {
        self.0.ledger().watches()
    }

    /// Returns when a watch has panicked, after which changes may be lost.
    pub async fn broken(&self) -> Failure {
        self.0.broken().await
    }

    /// Returns when every watch has ended because of `stop`. Fails if one has panicked before.
    pub async fn guard(&self, stop: &CancellationToken) -> Result<(), Failure> {
        tokio::select! {
            failure = self.broken() => Err(failure),
            () = stop.cancelled() => {
                self.shutdown().await;
                Ok(())
            }
        }
    }

    /// Stops all watches and waits for their end.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }

    /// Watches a selection for a reader, until all watches end. There is one reader at most; a later one is ignored.
    pub fn read(&self, reader: Arc<dyn Reader>, selection: &Selection) {
        self.0.attach(Key::Reader, reader, selection);
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    fn target(&self, hook: &HookId, binding: &KubernetesBinding) -> Result<Target, Failure> {
        let lens = Lens::of(binding, self.0.settings.compile)
            .map_err(|failure| failure.within(format_args!("binding '{}'", binding.name)))?;
        let gate = Gate::of(hook, binding, self.0.settings.compile)?;
        Ok(Target {
            snapshot: Snapshot::new(lens.order()),
            lens: Arc::new(lens),
            labels: Some(Arc::new(Labels {
                hook: hook.clone(),
                binding: binding.name.to_string(),
                queue: binding.queue.to_string(),
                kind: binding.kind.clone(),
            })),
            outlet: Outlet::Core(binding.events.clone(), gate),
            live: false,
            end: self.0.token(),
        })
    }

    /// Starts one monitor and waits for its first complete snapshot.
    async fn begin(
        &self,
        MonitorStart { id, binding }: &MonitorStart,
    ) -> Result<Option<(Namespaces, CancellationToken)>, Failure> {
        let told = |failure: Failure| failure.within(format_args!("binding '{}'", binding.name));
        let found = self
            .0
            .kinds
            .resolve(binding.api_version.as_deref(), &binding.kind)
            .await;
        let kind = found.map_err(|error| told(error.into()))?;
        let of_labels = binding
            .namespaces
            .as_ref()
            .and_then(|selector| selector.labels.as_ref());
        let names = binding.namespaces.as_ref().map_or(&[][..], |selector| &selector.names);
        if !kind.namespaced && (of_labels.is_some() || !names.is_empty()) {
            let report = format!("objects of kind '{}' live in no namespace", kind.resource.kind);
            let failure = Failure::new(Class::Invalid, report);
            return Err(told(failure.hint("leave out the binding's 'namespace'")));
        }
        let key = Key::Monitor(*id);
        if let Some(selector) = of_labels {
            let (labels, end) = {
                let ledger = self.0.ledger();
                let target = ledger.target(key);
                let watching = target.and_then(|target| Some((target.labels.clone()?, target.end.clone())));
                watching.ok_or_else(|| told(Failure::new(Class::Cancelled, "it was stopped")))?
            };
            let set = Namespaces::start(&self.0, *id, binding, selector, kind.resource, labels).await;
            return set.map(|set| Some((set, end))).map_err(told);
        }
        let distinct: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let namespaces: Vec<Option<&str>> = if distinct.is_empty() {
            vec![None]
        } else {
            distinct.into_iter().map(Some).collect()
        };
        let selections: Vec<_> = namespaces
            .into_iter()
            .flat_map(|namespace| selection::of_binding(binding, &kind.resource, namespace))
            .collect();
        join_all(&self.0, *id, &selections).await.map_err(told)?;
        Ok(None)
    }
}

impl std::fmt::Debug for Monitors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitors")
            .field("watches", &self.watches())
            .finish_non_exhaustive()
    }
}

/// The monitors of a start that is not complete. Dropping it stops them.
struct Begun {
    shared: Arc<Shared>,
    ids: Vec<MonitorId>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        for id in &self.ids {
            strike(&self.shared, *id);
        }
    }
}

fn strike(shared: &Shared, id: MonitorId) {
    shared.strike(Key::Monitor(id));
    shared.strike(Key::Namespaces(id));
}

fn read(snapshot: &Snapshot) -> Reading {
    Reading {
        objects: snapshot.objects(),
        seq: snapshot.seq(),
    }
}
