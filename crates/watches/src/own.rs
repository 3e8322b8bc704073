//! Watches of the operator's own: a part of it looks at objects for which no hook asks.
//!
//! They share requests and copies with the monitors of hooks. Must never bring a change to a part that did not begin
//! the watch.

use std::sync::Arc;

use addon_core::digest::Digest;
use addon_core::failure::Failure;
use addon_core::object::snapshot::Change;
use addon_core::object::{ObjectName, ObjectView};
use kube_access::kinds::Kinds;
use tokio::sync::mpsc;

use super::Monitors;
use super::ledger::outlet::Outlet;
use super::ledger::{Key, Target};
use super::lens::Lens;
use super::selection::Selection;
use super::shared::Shared;

/// The number of a watch of the operator's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnId(pub u64);

/// A watched object changed.
#[derive(Debug)]
pub struct Turned {
    /// The watch that brought the change.
    pub id: OwnId,
    /// The object.
    pub name: Arc<ObjectName>,
    /// The part of the object that the lens shows, before or after the change.
    pub change: Change,
}

/// The watches of one part of the operator. All changes arrive in one channel. Clones share everything.
#[derive(Clone)]
pub struct OwnWatches {
    shared: Arc<Shared>,
    door: mpsc::UnboundedSender<Turned>,
}

impl OwnWatches {
    /// No watch yet, and the channel for changes.
    pub fn beside(monitors: &Monitors) -> (Self, mpsc::UnboundedReceiver<Turned>) {
        let (door, turns) = mpsc::unbounded_channel();
        let shared = Arc::clone(monitors.shared());
        (Self { shared, door }, turns)
    }

    /// The kinds that the API server serves.
    pub fn kinds(&self) -> &Kinds {
        &self.shared.kinds
    }

    /// Watches a selection. When this returns, all its objects are known. An earlier watch with this number is
    /// replaced; its start may have been given up half way.
    pub async fn begin(&self, id: OwnId, lens: Lens, selection: &Selection) -> Result<(), Failure> {
        let key = Key::Own(id);
        self.shared.strike(key);
        let target = Target::own(Outlet::Own(self.door.clone()), lens, self.shared.token());
        self.shared.ledger().enter(key, target);
        self.shared.join(key, selection).await?;
        Ok(())
    }

    /// Ends a watch; an unknown one is ignored.
    pub fn end(&self, id: OwnId) {
        self.shared.strike(Key::Own(id));
    }

    /// Whether a watch brings all changes, as far as is known.
    pub fn brings_all(&self, id: OwnId) -> bool {
        self.shared.brings_all(Key::Own(id))
    }

    /// The objects of a watch; none if it does not run.
    pub fn seen(&self, id: OwnId) -> Vec<(Arc<ObjectName>, ObjectView)> {
        self.ask(id, Target::seen).unwrap_or_default()
    }

    /// Whether an object of one of these names exists; `None` if the watch does not run.
    pub fn holds(&self, id: OwnId, names: &[ObjectName]) -> Option<bool> {
        self.ask(id, |target| names.iter().any(|name| target.holds(name)))
    }

    /// A digest that changes with the part that the lens shows of an object with one of these names.
    pub fn digest(&self, id: OwnId, names: &[ObjectName]) -> Option<Digest> {
        self.ask(id, |target| names.iter().find_map(|name| target.digest(name)))?
    }

    /// The part that the lens shows of an object with one of these names. The outer `None`: the watch does not run.
    pub fn view(&self, id: OwnId, names: &[ObjectName]) -> Option<Option<ObjectView>> {
        self.ask(id, |target| names.iter().find_map(|name| target.view(name)).cloned())
    }

    /// Runs a task until all watches end. Its panic counts as the panic of a watch.
    pub fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.shared.run(self.shared.token(), work, |_| {});
    }

    fn ask<T>(&self, id: OwnId, question: impl FnOnce(&Target) -> T) -> Option<T> {
        self.shared.ledger().target(Key::Own(id)).map(question)
    }
}

impl std::fmt::Debug for OwnWatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnWatches").finish_non_exhaustive()
    }
}
