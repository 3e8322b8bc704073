//! The ledger: all monitors and the objects that they have seen, behind one lock. Watches and readers share it.
//!
//! A change enters the snapshot and is sent in one step, so that no reader sees less than was reported. Must never
//! wait, and never make a request.

mod health;
pub(crate) mod outlet;
mod reading;
mod starting;
mod target;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::object::snapshot::{Change, PartId, Sighting, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use addon_core::operator::event::Event;
use kube::core::ApiResource;
use names::{HookId, MonitorId};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::health::Health;
use self::outlet::Outlet;
use super::Labels;
use super::lens::{Lens, Trace};
use super::own::OwnId;
use super::selection::Selection;

/// The key of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A monitor of the core.
    Monitor(MonitorId),
    /// The namespaces that the label selector of this monitor finds.
    Namespaces(MonitorId),
    /// A target of our own.
    Own(OwnId),
    /// The objects that the reader reads.
    Reader,
}

/// A monitor or another receiver of objects.
pub(crate) struct Target {
    pub(super) snapshot: Snapshot,
    pub(super) lens: Arc<Lens>,
    /// The labels for metrics; none for a target without a hook.
    pub(super) labels: Option<Arc<Labels>>,
    pub(super) outlet: Outlet,
    /// Whether changes are reported. Before the target's start is complete they are only part of its first snapshot.
    pub(super) live: bool,
    /// Ends the tasks that work only for the target.
    pub(super) end: CancellationToken,
}

/// A running watch.
struct Feed {
    selection: Selection,
    subscribers: Vec<Subscriber>,
    wake: Arc<Notify>,
    end: CancellationToken,
    health: Health,
}

struct Subscriber {
    key: Key,
    stage: Stage,
}

/// The progress of a target that joins a watch.
enum Stage {
    /// The target has seen nothing yet.
    Waiting(Starter),
    /// The target takes part in the list that is being read.
    Listing(Starter),
    /// The target has a complete snapshot, and gets changes.
    Settled,
}

/// Receives the result of the first list.
type Starter = oneshot::Sender<Result<(), Failure>>;

/// A target to which an object of a watch is shown.
#[derive(Clone)]
pub(super) struct Viewer {
    pub(super) key: Key,
    pub(super) lens: Arc<Lens>,
    pub(super) labels: Option<Arc<Labels>>,
    /// Whether the target is seeing everything for the first time, without reports.
    pub(super) first: bool,
    /// Whether the target only reads the snapshot, so that no changes are sent to it.
    pub(super) reads: bool,
}

impl Viewer {
    /// The target's labels for metrics; none for a target that only serves another one.
    pub(super) fn measured(&self) -> Option<&Labels> {
        self.labels.as_deref().filter(|_| matches!(self.key, Key::Monitor(_)))
    }
}

/// The change of one object, as one viewer sees it.
pub(super) enum News {
    /// The object exists in the given state.
    Seen(Sighting),
    /// The object exists, but the viewer's filter failed.
    Obscured,
    /// The object was deleted; its last known state, if any.
    Gone(Option<ObjectView>),
}

/// The result of joining a watch.
pub(super) struct Joined {
    pub(super) feed: PartId,
    /// Receives the result of the first list.
    pub(super) started: oneshot::Receiver<Result<(), Failure>>,
    /// The means for a watch that the caller has to start; `None` if the watch runs already.
    pub(super) new: Option<New>,
}

/// The means to wake a new watch, and to end it.
pub(super) type New = (Arc<Notify>, CancellationToken);

/// Everything under the lock.
#[derive(Default)]
pub(crate) struct Ledger {
    targets: HashMap<Key, Target>,
    feeds: HashMap<PartId, Feed>,
    by_selection: HashMap<Selection, PartId>,
    last: u64,
    /// Resources that the API server does not list as a stream.
    unstreamed: HashSet<ApiResource>,
}

impl Ledger {
    /// Adds a target; `false` if the target exists already.
    pub(crate) fn enter(&mut self, key: Key, target: Target) -> bool {
        if self.targets.contains_key(&key) {
            return false;
        }
        self.targets.insert(key, target);
        true
    }

    /// Removes a target, and the watches that no other target needs.
    pub(crate) fn strike(&mut self, key: Key) -> Option<Arc<Labels>> {
        let target = self.targets.remove(&key)?;
        target.end.cancel();
        let feeds: Vec<PartId> = self.feeds.keys().copied().collect();
        for feed in feeds {
            self.unsubscribe(feed, key);
        }
        target.labels
    }

    pub(crate) fn target(&self, key: Key) -> Option<&Target> {
        self.targets.get(&key)
    }

    /// Resets the counts of a hook's monitors, because a run begins.
    pub(super) fn begin_run(&mut self, hook: &HookId) {
        let of_hook = |target: &&mut Target| target.labels.as_ref().is_some_and(|labels| labels.hook == *hook);
        for target in self.targets.values_mut().filter(of_hook) {
            target.snapshot.begin_run();
        }
    }

    pub(crate) fn target_mut(&mut self, key: Key) -> Option<&mut Target> {
        self.targets.get_mut(&key)
    }

    /// Joins a target to a watch. If the watch does not exist yet, the caller has to start it.
    pub(super) fn join(&mut self, key: Key, selection: &Selection, root: &CancellationToken) -> Joined {
        let (starter, started) = oneshot::channel();
        let (feed, new) = self.subscribe(key, Stage::Waiting(starter), selection, root);
        Joined { feed, started, new }
    }

    fn subscribe(
        &mut self,
        key: Key,
        stage: Stage,
        selection: &Selection,
        root: &CancellationToken,
    ) -> (PartId, Option<New>) {
        let known = self.by_selection.get(selection).copied();
        let id = known.unwrap_or_else(|| {
            self.last += 1;
            PartId(self.last)
        });
        let feed = self.feeds.entry(id).or_insert_with(|| Feed {
            selection: selection.clone(),
            subscribers: Vec::new(),
            wake: Arc::new(Notify::new()),
            end: root.child_token(),
            health: Health::proven(),
        });
        feed.subscribers.push(Subscriber { key, stage });
        feed.wake.notify_one();
        let new = known.is_none().then(|| (Arc::clone(&feed.wake), feed.end.clone()));
        self.by_selection.insert(selection.clone(), id);
        (id, new)
    }

    /// Removes the objects of a watch from a target, without reports.
    pub(super) fn leave(&mut self, key: Key, feed: PartId) {
        self.unsubscribe(feed, key);
        if let Some(target) = self.targets.get_mut(&key) {
            target.snapshot.drop_part(feed);
        }
    }

    fn unsubscribe(&mut self, id: PartId, key: Key) {
        let Some(feed) = self.feeds.get_mut(&id) else {
            return;
        };
        feed.subscribers.retain(|subscriber| subscriber.key != key);
        self.end_unwanted(id);
    }

    fn end_unwanted(&mut self, id: PartId) {
        let wanted = |feed: &Feed| !feed.subscribers.is_empty();
        if self.feeds.get(&id).is_some_and(wanted) {
            return;
        }
        if let Some(feed) = self.feeds.remove(&id) {
            feed.end.cancel();
            self.by_selection.remove(&feed.selection);
        }
    }

    /// The viewers of the objects of a watch.
    pub(super) fn viewers(&self, id: PartId) -> Vec<Viewer> {
        let subscribers = self.feeds.get(&id).into_iter().flat_map(|feed| &feed.subscribers);
        let viewers = subscribers.filter_map(|subscriber| {
            let target = self.targets.get(&subscriber.key)?;
            let first = match subscriber.stage {
                Stage::Waiting(_) => return None,
                Stage::Listing(_) => true,
                Stage::Settled => false,
            };
            Some(Viewer {
                key: subscriber.key,
                lens: Arc::clone(&target.lens),
                labels: target.labels.clone(),
                first,
                reads: target.is_read(),
            })
        });
        viewers.collect()
    }

    /// Takes news about one object into a snapshot, and sends the resulting change.
    pub(super) fn take(
        &mut self,
        id: PartId,
        viewer: &Viewer,
        (name, trace): (&Arc<ObjectName>, &Trace),
        news: News,
        room: Option<mpsc::Permit<'_, Event>>,
    ) {
        let Some(target) = self.targets.get_mut(&viewer.key) else {
            return;
        };
        let change = match news {
            News::Seen(sighting) if viewer.first => {
                target.snapshot.fill(id, sighting);
                None
            }
            News::Gone(_) if viewer.first => {
                target.snapshot.unfill(id, name);
                None
            }
            News::Seen(sighting) => target.snapshot.see(id, sighting),
            News::Gone(last) => target.snapshot.lose(id, name, last),
            News::Obscured => {
                target.snapshot.obscure(id, name);
                None
            }
        };
        let Some(change) = change.filter(|_| target.live) else {
            return;
        };
        if let Some(target) = self
            .targets
            .get(&viewer.key)
            .filter(|target| self.passes(target, &change))
        {
            target.tell(viewer.key, (name, trace), change, room);
        }
    }

    /// Whether the condition of a binding lets a change through. It sees the snapshots with this change.
    fn passes(&self, target: &Target, change: &Change) -> bool {
        target.gate_for(change).is_none_or(|(gate, evidence)| {
            gate.lets_through(evidence, |binding| {
                let mut live = self.targets.values().filter(|other| other.live);
                let found = live.find(|other| other.labels.as_ref().is_some_and(|labels| gate.means(labels, binding)));
                found.map(|other| other.snapshot.views())
            })
        })
    }

    /// The objects of a target that were missing in a complete list.
    pub(super) fn vanished(&self, id: PartId, key: Key) -> Vec<Arc<ObjectName>> {
        let target = self.targets.get(&key);
        target.map(|target| target.snapshot.vanished(id)).unwrap_or_default()
    }

    /// Records that the server has just shown that no change is missing.
    pub(super) fn prove(&mut self, id: PartId) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.health = Health::proven();
        }
    }

    /// Records that the kind is not served, so that there are no objects.
    pub(super) fn unserved(&mut self, id: PartId) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.health = Health {
                unserved: true,
                ..Health::proven()
            };
        }
    }

    /// Records that the kind now has another API resource.
    pub(super) fn moved(&mut self, id: PartId, resource: &ApiResource) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.selection.resource = resource.clone();
        }
    }

    pub(super) fn trouble(&mut self, id: PartId, error: String) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.health.error = Some(error);
            feed.health.unserved = false;
        }
    }

    /// Kinds that hooks watch and that are no longer served, each with its group and version.
    pub(super) fn awaited_kinds(&self) -> BTreeSet<(String, String)> {
        let unserved = self
            .feeds
            .values()
            .filter(|feed| feed.health.unserved && feed.is_of_hooks());
        let kinds = unserved.map(|feed| &feed.selection.resource);
        kinds
            .map(|resource| (resource.kind.clone(), resource.api_version.clone()))
            .collect()
    }

    /// Makes every wait for a first list fail, because all watches have stopped.
    pub(super) fn end(&mut self) {
        self.feeds.clear();
        self.by_selection.clear();
    }

    pub(super) fn watches(&self) -> usize {
        self.feeds.len()
    }

    pub(super) fn streams(&self, resource: &ApiResource) -> bool {
        !self.unstreamed.contains(resource)
    }

    pub(super) fn cannot_stream(&mut self, resource: &ApiResource) {
        self.unstreamed.insert(resource.clone());
    }
}

impl Feed {
    fn is_of_hooks(&self) -> bool {
        self.subscribers.iter().any(|one| match one.key {
            Key::Monitor(_) | Key::Namespaces(_) => true,
            Key::Own(_) | Key::Reader => false,
        })
    }
}
