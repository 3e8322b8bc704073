//! Monitors: for each kubernetes binding of a hook the objects that it selects, now and as they change.
//!
//! Monitors that select the same share one watch, and objects are kept once. A change is in the snapshot before it is
//! reported, so that a snapshot is never older than any reported change. Must never lose a change of an object that
//! still exists, nor report one twice, whatever happens to the connection.

mod feed;
mod heard;
pub(super) mod ledger;
pub mod lens;
pub mod observation;
pub(super) mod reader;
pub(super) mod selection;
pub(super) mod shared;
mod stream;
pub mod trouble;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::hook::config::KubernetesBinding;
use addon_core::name::{HookId, MonitorId};
use addon_core::object::snapshot::{Operations, Order, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::Event;
use futures::future::try_join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::ledger::outlet::Outlet;
use self::ledger::{Key, Target};
use self::lens::{Compile, Lens};
use self::observation::{Labels, Observe};
use self::reader::Reader;
use self::shared::Shared;
use super::Cluster;
use super::kinds::Kinds;
use super::namespaces::{Namespaces, join_all};

/// The settings of watches.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A watch of which nothing was known for longer is stale.
    pub bound: Duration,
    /// How long an answer of the API server may take to begin.
    pub patience: Duration,
    /// Makes a filter of the text in a binding.
    pub compile: Compile,
}

impl Settings {
    /// The usual bound. Marks come about once a minute from a server that lets them through, so that a watch on which
    /// nothing happens costs no request of its own.
    pub const BOUND: Duration = Duration::from_secs(90);
    /// The usual patience.
    pub const PATIENCE: Duration = Duration::from_secs(30);

    /// How long a watch may bring nothing before it is doubted: the rest of the bound is for finding out.
    fn silence(&self) -> Duration {
        self.bound * 5 / 6
    }

    /// How long finding out may take.
    fn doubt(&self) -> Duration {
        self.bound / 6
    }
}

/// All monitors. Clones share everything.
#[derive(Clone)]
pub struct Monitors(Arc<Shared>);

/// The snapshot of a monitor, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The objects in the order of the contract.
    pub objects: Vec<ObjectView>,
    /// The number of the last change that is in there.
    pub seq: u64,
}

/// A monitor as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its objects.
    pub reading: Reading,
    /// Its objects are Secrets.
    pub of_secrets: bool,
    /// The changes since its start.
    pub since_start: Operations,
    /// The changes since its snapshot was last read for a run.
    pub since_run: Operations,
}

/// A watch of which nothing was known for longer than the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleWatch {
    /// The kind of its objects.
    pub kind: String,
    /// Their namespace, empty for all.
    pub namespace: String,
    /// For how long.
    pub since: Duration,
    /// The trouble of the watch, if known.
    pub error: Option<String>,
}

impl Monitors {
    /// No monitor yet. Changes go through the door in the order in which they stand in snapshots; while there is no room for one, the
    /// watch that brought it waits.
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

    /// Starts all monitors of a hook, or none: when this returns, their snapshots are complete. Dropped before, it
    /// leaves nothing behind. Changes before it returns are in the snapshots and are not reported; later changes are.
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

    /// Stops monitors; an unknown one is stopped already. From now on only changes that are already sent arrive.
    pub fn stop(&self, ids: &[MonitorId]) {
        for id in ids {
            strike(&self.0, *id);
        }
    }

    /// The snapshots of these monitors; nothing for one that does not run. All are of one moment.
    pub fn snapshot(&self, ids: &[MonitorId]) -> Vec<Option<Reading>> {
        let ledger = self.0.ledger();
        let readings = ids
            .iter()
            .map(|id| Some(read(&ledger.target(Key::Monitor(*id))?.snapshot)));
        readings.collect()
    }

    /// The same for a run of a hook, since which everything is counted anew that its monitors see.
    pub fn snapshot_for_run(&self, hook: &HookId, ids: &[MonitorId]) -> Vec<Option<Reading>> {
        let mut ledger = self.0.ledger();
        ledger.begin_run(hook);
        let readings = ids
            .iter()
            .map(|id| Some(read(&ledger.target(Key::Monitor(*id))?.snapshot)));
        readings.collect()
    }

    /// The snapshot and the counts of a monitor for people; reading them changes nothing.
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

    /// Watches of which nothing was known for longer than the bound.
    pub fn stale(&self) -> Vec<StaleWatch> {
        self.0.ledger().stale(self.0.settings.bound)
    }

    /// Kinds that hooks watch and that the API server no longer serves, each with its group and version.
    pub fn awaited_kinds(&self) -> BTreeSet<(String, String)> {
        self.0.ledger().awaited_kinds()
    }

    /// How many watches run.
    pub fn watches(&self) -> usize {
        self.0.ledger().watches()
    }

    /// Returns when a watch has panicked: changes may be lost from then on.
    pub async fn broken(&self) -> Failure {
        self.0.broken().await
    }

    /// Returns when every watch has ended because all is to stop, or fails when one has panicked before.
    pub async fn guard(&self, stop: &CancellationToken) -> Result<(), Failure> {
        tokio::select! {
            failure = self.broken() => Err(failure),
            () = stop.cancelled() => {
                self.shutdown().await;
                Ok(())
            }
        }
    }

    /// Ends all watches and waits until they have ended.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    fn target(&self, hook: &HookId, binding: &KubernetesBinding) -> Result<Target, Failure> {
        let lens = Lens::of(binding, self.0.settings.compile)
            .map_err(|failure| failure.within(format_args!("binding '{}'", binding.name)))?;
        Ok(Target {
            snapshot: Snapshot::new(lens.order()),
            lens: Arc::new(lens),
            labels: Some(Arc::new(Labels {
                hook: hook.clone(),
                binding: binding.name.to_string(),
                queue: binding.queue.to_string(),
                kind: binding.kind.clone(),
            })),
            outlet: Outlet::Core(binding.events.clone()),
            live: false,
            end: self.0.token(),
        })
    }

    /// Brings one monitor to its first complete snapshot.
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

/// Monitors of a start that is not complete: dropped, it takes them back.
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

impl Target {
    /// One that only has to know which namespaces there are.
    pub(super) fn of_namespaces(outlet: Outlet, labels: Arc<Labels>, end: CancellationToken) -> Self {
        Self {
            snapshot: Snapshot::new(Order::ByName),
            lens: Arc::new(Lens::presence()),
            labels: Some(labels),
            outlet,
            live: true,
            end,
        }
    }

    /// One whose whole objects a part of ours reads.
    pub(super) fn read_by(reader: Arc<dyn Reader>, end: CancellationToken) -> Self {
        Self::own(Outlet::Reader(reader), Lens::whole(), end)
    }

    /// One of our own, seen through this lens.
    pub(super) fn own(outlet: Outlet, lens: Lens, end: CancellationToken) -> Self {
        Self {
            snapshot: Snapshot::new(lens.order()),
            lens: Arc::new(lens),
            labels: None,
            outlet,
            live: true,
            end,
        }
    }

    /// Everything that was seen of it.
    pub(super) fn seen(&self) -> Vec<(Arc<ObjectName>, ObjectView)> {
        let names = self.snapshot.names().into_iter();
        names.zip(self.snapshot.objects()).collect()
    }

    pub(super) fn holds(&self, name: &ObjectName) -> bool {
        self.snapshot.holds(name)
    }

    /// Changes with the selected part of the object.
    pub(super) fn digest(&self, name: &ObjectName) -> Option<Digest> {
        self.snapshot.digest(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.snapshot.names().iter().map(|name| name.name.clone()).collect()
    }
}
