//! All monitors, and the objects that they have seen: the one value that watches and readers share, behind one lock.
//!
//! A change enters the snapshot and is sent in one step, so that no reader can see less than was reported. Must
//! never wait for anything, and never make a request.

pub(in crate::cluster) mod outlet;
mod reading;
mod starting;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::name::{HookId, MonitorId};
use addon_core::object::snapshot::{PartId, Sighting, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use addon_core::operator::event::Event;
use kube::core::ApiResource;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::outlet::Outlet;
use super::lens::Lens;
use super::selection::Selection;
use super::{Labels, StaleWatch};

/// The key of a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::cluster) enum Key {
    /// A monitor that the core asked for.
    Monitor(MonitorId),
    /// The namespaces that a monitor's selector finds, by the same id.
    Namespaces(MonitorId),
    /// A target of our own.
    Own(OwnId),
    /// The ConfigMap that people edit.
    ConfigMap,
}

/// The name of something that we want to see for ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::cluster) struct OwnId(pub(in crate::cluster) u64);

/// The state of one watcher.
pub(in crate::cluster) struct Target {
    pub(super) snapshot: Snapshot,
    pub(super) lens: Arc<Lens>,
    /// None for a watcher without a hook.
    pub(super) labels: Option<Arc<Labels>>,
    pub(super) outlet: Outlet,
    /// Its changes are reported. Until its start is complete they are part of its first snapshot.
    pub(super) live: bool,
    /// Ends the tasks that work for it alone.
    pub(super) end: CancellationToken,
}

/// One running watch.
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

/// The progress of a watcher that joins a watch.
enum Stage {
    /// Has seen nothing yet.
    Waiting(Starter),
    /// Takes part in the listing that is under way.
    Listing(Starter),
    /// It has a complete snapshot, and gets changes.
    Settled,
}

/// Hears how the first listing ended.
type Starter = oneshot::Sender<Result<(), Failure>>;

/// The last moment at which no change was missing, and the trouble since then.
struct Health {
    proven: Instant,
    error: Option<String>,
    /// The kind is no longer served.
    unserved: bool,
}

/// A viewer of an object that a watch brings.
#[derive(Clone)]
pub(super) struct Viewer {
    pub(super) key: Key,
    pub(super) lens: Arc<Lens>,
    pub(super) labels: Option<Arc<Labels>>,
    /// It sees everything for the first time, and in silence.
    pub(super) first: bool,
    /// It is a reader: changes are not sent for it.
    pub(super) reads: bool,
}

impl Viewer {
    /// Its labels in metrics. A watcher that only serves another one is not measured.
    pub(super) fn measured(&self) -> Option<&Labels> {
        self.labels.as_deref().filter(|_| matches!(self.key, Key::Monitor(_)))
    }
}

/// News of one object from a watch, for one viewer.
pub(super) enum News {
    /// It is there.
    Seen(Sighting),
    /// It is there, and this viewer cannot see how it is.
    Obscured,
    /// It is deleted; its last known state, if any.
    Gone(Option<ObjectView>),
}

/// A watch that was asked for.
pub(super) struct Joined {
    pub(super) feed: PartId,
    /// Ends with the first listing.
    pub(super) started: oneshot::Receiver<Result<(), Failure>>,
    /// This was not watched until now: the caller starts the watch, with these.
    pub(super) new: Option<New>,
}

/// Wakes a new watch, and ends it.
pub(super) type New = (Arc<Notify>, CancellationToken);

/// Everything under the lock.
#[derive(Default)]
pub(in crate::cluster) struct Ledger {
    targets: HashMap<Key, Target>,
    feeds: HashMap<PartId, Feed>,
    by_selection: HashMap<Selection, PartId>,
    last: u64,
    /// The API server does not list these as a stream.
    unstreamed: HashSet<ApiResource>,
}

impl Ledger {
    /// Adds a watcher; `false` if it exists already.
    pub(in crate::cluster) fn enter(&mut self, key: Key, target: Target) -> bool {
        if self.targets.contains_key(&key) {
            return false;
        }
        self.targets.insert(key, target);
        true
    }

    /// Removes a watcher, and every watch that no other watcher needs.
    pub(in crate::cluster) fn strike(&mut self, key: Key) -> Option<Arc<Labels>> {
        let target = self.targets.remove(&key)?;
        target.end.cancel();
        let feeds: Vec<PartId> = self.feeds.keys().copied().collect();
        for feed in feeds {
            self.unsubscribe(feed, key);
        }
        target.labels
    }

    pub(in crate::cluster) fn target(&self, key: Key) -> Option<&Target> {
        self.targets.get(&key)
    }

    /// A run of the hook begins: later changes of its monitors are counted anew.
    pub(super) fn begin_run(&mut self, hook: &HookId) {
        let of_hook = |target: &&mut Target| target.labels.as_ref().is_some_and(|labels| labels.hook == *hook);
        for target in self.targets.values_mut().filter(of_hook) {
            target.snapshot.begin_run();
        }
    }

    pub(in crate::cluster) fn target_mut(&mut self, key: Key) -> Option<&mut Target> {
        self.targets.get_mut(&key)
    }

    /// Joins a target to a watch. If there is no such watch yet, the caller starts it.
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

    /// Takes a watch out of a target's sight, silently.
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

    /// All viewers of the objects that the watch brings now.
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

    /// Takes news of one object into one snapshot, and sends the change that follows.
    pub(super) fn take(
        &mut self,
        id: PartId,
        viewer: &Viewer,
        name: &Arc<ObjectName>,
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
        if let Some(change) = change.filter(|_| target.live) {
            target.tell(viewer.key, name, change, room);
        }
    }

    /// Names that a complete listing did not hold, for a settled watcher.
    pub(super) fn vanished(&self, id: PartId, key: Key) -> Vec<Arc<ObjectName>> {
        let target = self.targets.get(&key);
        target.map(|target| target.snapshot.vanished(id)).unwrap_or_default()
    }

    /// The server has just shown that nothing is withheld.
    pub(super) fn prove(&mut self, id: PartId) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.health = Health::proven();
        }
    }

    /// The server has just shown that there can be no such objects.
    pub(super) fn unserved(&mut self, id: PartId) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.health = Health {
                unserved: true,
                ..Health::proven()
            };
        }
    }

    /// Its objects are addressed otherwise from now on.
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

    /// Watches of hooks of which nothing was known for longer than the bound.
    pub(super) fn stale(&self, bound: Duration) -> Vec<StaleWatch> {
        let stale = self
            .feeds
            .values()
            .filter(|feed| feed.is_of_hooks())
            .filter_map(|feed| {
                let since = feed.health.proven.elapsed();
                (since > bound).then(|| StaleWatch {
                    kind: feed.selection.resource.kind.clone(),
                    namespace: feed.selection.namespace.clone().unwrap_or_default(),
                    since,
                    error: feed.health.error.clone(),
                })
            });
        stale.collect()
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

    /// All watches have stopped: every wait for a first listing fails.
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
            Key::Own(_) | Key::ConfigMap => false,
        })
    }
}

impl Health {
    fn proven() -> Self {
        Self {
            proven: Instant::now(),
            error: None,
            unserved: false,
        }
    }
}
