//! Shared by all watches of one process: the ledger, the way to the core, and the owner of their tasks.
//!
//! The unexpected end of a watch must never go unnoticed: without it the cluster would look as if nothing happened.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addon_core::failure::{Class, Failure};
use addon_core::object::snapshot::PartId;
use addon_core::operator::event::Event;
use futures::FutureExt as _;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use report::last_words;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

use super::Settings;
use super::feed::Feed;
use super::ledger::{Joined, Key, Ledger, Target, Viewer};
use super::observation::{Observation, Observe};
use super::reader::{Condition, Reader};
use super::selection::Selection;
use super::stream::Source;

/// The number of concurrent lists.
const LISTS: usize = 4;

/// The state that all watches share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) kinds: Kinds,
    pub(super) settings: Settings,
    ledger: Mutex<Ledger>,
    door: mpsc::Sender<Event>,
    observe: Observe,
    lists: Semaphore,
    root: CancellationToken,
    tasks: TaskTracker,
    broken: watch::Sender<Option<Failure>>,
}

/// The membership of a target in a watch. Dropping it before it is kept ends the membership.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    key: Key,
    feed: PartId,
    kept: bool,
}

impl Shared {
    pub(super) fn new(
        cluster: Cluster,
        kinds: Kinds,
        door: mpsc::Sender<Event>,
        settings: Settings,
        observe: Observe,
    ) -> Self {
        Self {
            cluster,
            kinds,
            settings,
            ledger: Mutex::default(),
            door,
            observe,
            lists: Semaphore::new(LISTS),
            root: CancellationToken::new(),
            tasks: TaskTracker::new(),
            broken: watch::Sender::new(None),
        }
    }

    /// Locks the ledger; the guard must not be held across a wait.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // The lock is still usable; the panic of a watch ends the operator elsewhere.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the watches of a target bring all changes, as far as is known.
    pub(crate) fn brings_all(&self, key: Key) -> bool {
        self.ledger().brings_all(key, self.settings.bound)
    }

    /// Tells the readers of a watch about its condition.
    pub(super) fn tell_readers(&self, id: PartId, condition: Condition<'_>) {
        let readers = self.ledger().readers(id);
        for reader in readers {
            reader.hear(condition);
        }
    }

    pub(crate) fn observe(&self, observation: &Observation<'_>) {
        (self.observe)(observation);
    }

    /// A new token, which can be cancelled alone, and is cancelled when all watches end.
    pub(crate) fn token(&self) -> CancellationToken {
        self.root.child_token()
    }

    pub(super) fn held(&self, key: Key) -> usize {
        self.ledger().target(key).map_or(0, |target| target.snapshot.len())
    }

    /// Waits until the core has room for one more change; none if the core has ended. A viewer that starts needs no
    /// room, because no changes are sent to it. A reader needs none, because its states do not wait behind changes.
    pub(super) async fn room(&self, viewer: &Viewer) -> Option<mpsc::Permit<'_, Event>> {
        if viewer.first || viewer.reads {
            return None;
        }
        self.door.reserve().await.ok()
    }

    /// Waits until another list may begin.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.lists.acquire().await.ok()
    }

    /// Runs a task until it ends or is cancelled. A panic in it is reported.
    pub(crate) fn run(
        self: &Arc<Self>,
        end: CancellationToken,
        work: impl Future<Output = ()> + Send + 'static,
        on_panic: impl FnOnce(&Failure) + Send + 'static,
    ) {
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(end.run_until_cancelled(work)).catch_unwind();
            if let Err(panic) = work.await {
                let failure = defect(panic.as_ref());
                error!(error = failure.report, "a watch has panicked");
                on_panic(&failure);
                shared.broken.send_replace(Some(failure));
            }
        });
    }

    /// Joins a target to a selection, and waits for the first list. Dropping the future before its end undoes it.
    pub(crate) async fn join(self: &Arc<Self>, key: Key, selection: &Selection) -> Result<Seat, Failure> {
        let Joined { feed, started, new } = self.ledger().join(key, selection, &self.root);
        let mut place = Seat {
            shared: Arc::clone(self),
            key,
            feed,
            kept: false,
        };
        if let Some((wake, end)) = new {
            self.begin(feed, selection, wake, end);
        }
        let ended = || {
            if self.root.is_cancelled() {
                Failure::new(Class::Cancelled, "all watches are stopped")
            } else {
                Failure::defect("the watch has ended before its first list")
            }
        };
        if self.root.is_cancelled() {
            return Err(ended());
        }
        started.await.unwrap_or_else(|_| Err(ended()))?;
        place.kept = true;
        Ok(place)
    }

    /// Watches a selection for a reader, until all watches end.
    pub(crate) fn attach(self: &Arc<Self>, key: Key, reader: Arc<dyn Reader>, selection: &Selection) {
        let target = Target::read_by(reader, self.token());
        let (feed, new) = {
            let mut ledger = self.ledger();
            ledger.enter(key, target);
            ledger.attach(key, selection, &self.root)
        };
        if let Some((wake, end)) = new {
            self.begin(feed, selection, wake, end);
        }
    }

    fn begin(self: &Arc<Self>, id: PartId, selection: &Selection, wake: Arc<Notify>, end: CancellationToken) {
        let source = Source {
            cluster: self.cluster.clone(),
            selection: selection.clone(),
            patience: self.settings.patience,
            doubt: self.settings.doubt(),
        };
        let feed = Feed::new(Arc::clone(self), id, source, wake);
        let shared = Arc::clone(self);
        self.run(end, feed.run(), move |failure| {
            shared.ledger().abandon(id, failure);
        });
    }

    /// Removes a target.
    pub(crate) fn strike(&self, key: Key) {
        let struck = self.ledger().strike(key);
        if let (Key::Monitor(_), Some(labels)) = (key, struck) {
            self.observe(&Observation::Stopped { labels: &labels });
        }
    }

    /// Waits for the first panic of a watch.
    pub(super) async fn broken(&self) -> Failure {
        let mut broken = self.broken.subscribe();
        let told = broken.wait_for(Option::is_some).await.ok();
        let failure = told.and_then(|failure| failure.clone());
        failure.unwrap_or_else(|| Failure::defect("a watch has panicked"))
    }

    /// Stops everything and waits for the end.
    pub(super) async fn shutdown(&self) {
        self.root.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.ledger().end();
    }
}

impl Seat {
    /// Leaves the watch. Its objects are removed from the snapshot.
    pub(crate) fn leave(mut self) {
        self.kept = false;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.kept {
            self.shared.ledger().leave(self.key, self.feed);
        }
    }
}

fn defect(panic: &(dyn Any + Send)) -> Failure {
    Failure::defect(format!("a watch panicked: {}", last_words(panic)))
        .hint("this is a defect of addon-operator, please report it")
}
