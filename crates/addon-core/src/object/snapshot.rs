//! The objects that a monitor has seen, and which of their changes count.
//!
//! Several watches may fill one snapshot. Each watch fills a part of its own: if a watch does not see an object, the
//! parts of the other watches do not change. Must never report a change twice, nor hold an older state of an object
//! than the one that was reported.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ObjectName, ObjectView};
use crate::digest::Digest;

/// The part of a snapshot that one watch fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(pub u64);

/// The order of the objects in a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By namespace, then by name.
    #[default]
    ByName,
    /// By the text `namespace/Kind/name`. Used for snapshots without whole objects.
    ByText,
}

/// An object as it was read.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// The name of the object.
    pub name: Arc<ObjectName>,
    /// The object as the binding shows it.
    pub view: ObjectView,
    /// The digest of the part that the binding selects. While the digest is the same, the object counts as unchanged.
    pub digest: Digest,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Added(ObjectView),
    /// The selected part differs.
    Modified(ObjectView),
    /// The object is gone. This was its last state.
    Deleted(ObjectView),
}

/// Counts of changes of a snapshot's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// The growth of the number of objects since the start of the count.
    pub count: i64,
    /// The number of added objects.
    pub added: u64,
    /// The number of deleted objects.
    pub deleted: u64,
    /// The number of times that an object was changed.
    pub modified: u64,
    /// The number of times that the snapshot became empty.
    pub cleaned: u64,
}

/// The objects of one monitor.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    order: Order,
    parts: BTreeMap<PartId, Part>,
    seq: u64,
    since_start: Operations,
    since_run: Operations,
    /// The number of objects in the snapshot when it was last read for a run.
    at_run: usize,
}

#[derive(Debug, Clone, Default)]
struct Part {
    objects: BTreeMap<Arc<ObjectName>, Kept>,
    /// Objects that exist and could not be read the last time. Their stored state, if there is one, is outdated.
    obscured: BTreeSet<Arc<ObjectName>>,
    round: u32,
}

#[derive(Debug, Clone)]
struct Kept {
    view: ObjectView,
    digest: Digest,
    /// The number of the last listing that had the object.
    round: u32,
}

impl Snapshot {
    /// A snapshot without parts.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Adds an empty part for a watch. Objects of an old part with this id are dropped, and no change is counted.
    pub fn add_part(&mut self, part: PartId) {
        self.parts.insert(part, Part::default());
    }

    /// Drops the part of a watch, and counts no change: the objects still exist, but are not selected any more.
    pub fn drop_part(&mut self, part: PartId) {
        self.parts.remove(&part);
    }

    /// The number of the last change, which the snapshot includes.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.parts.values().map(|part| part.objects.len()).sum()
    }

    /// Whether the snapshot has no objects.
    pub fn is_empty(&self) -> bool {
        self.parts.values().all(|part| part.objects.is_empty())
    }

    /// Whether the snapshot has an object with the given name.
    pub fn holds(&self, name: &ObjectName) -> bool {
        self.parts.values().any(|part| part.objects.contains_key(name))
    }

    /// The selected part of an object; `None` if it is absent.
    pub fn view(&self, name: &ObjectName) -> Option<&ObjectView> {
        let mut parts = self.parts.values();
        parts.find_map(|part| part.objects.get(name).map(|kept| &kept.view))
    }

    /// The digest of the selected part of an object; `None` if it is absent.
    pub fn digest(&self, name: &ObjectName) -> Option<Digest> {
        self.parts
            .values()
            .find_map(|part| part.objects.get(name).map(|kept| kept.digest))
    }

    /// Adds an object of the first listing. This counts as no change.
    pub fn fill(&mut self, part: PartId, sighting: Sighting) {
        if let Some(part) = self.parts.get_mut(&part) {
            let Sighting { name, view, digest } = sighting;
            let round = part.round;
            part.objects.insert(name, Kept { view, digest, round });
            self.count(|operations| operations.added += 1);
        }
    }

    /// Removes an object that was deleted before the first listing was complete.
    pub fn unfill(&mut self, part: PartId, name: &ObjectName) {
        let known = self.parts.get_mut(&part).and_then(|part| part.objects.remove(name));
        if known.is_some() {
            self.count(|operations| operations.added = operations.added.saturating_sub(1));
        }
    }

    /// Takes the state of an object from a listing or a watch. Returns the change, if there is one.
    pub fn see(&mut self, part: PartId, sighting: Sighting) -> Option<Change> {
        let part = self.parts.get_mut(&part)?;
        let Sighting { name, view, digest } = sighting;
        let kept = Kept {
            view: view.clone(),
            digest,
            round: part.round,
        };
        part.obscured.remove(&*name);
        let change = match part.objects.get_mut(&*name) {
            None => {
                part.objects.insert(name, kept);
                self.count(|operations| operations.added += 1);
                Change::Added(view)
            }
            Some(known) => {
                let same = known.digest == digest;
                *known = kept;
                if same {
                    return None;
                }
                self.count(|operations| operations.modified += 1);
                Change::Modified(view)
            }
        };
        self.seq += 1;
        Some(change)
    }

    /// Removes a deleted object. `last` is the object's last state; `None` if only the absence of the object was
    /// noticed.
    pub fn lose(&mut self, part: PartId, name: &ObjectName, last: Option<ObjectView>) -> Option<Change> {
        let part = self.parts.get_mut(&part)?;
        part.obscured.remove(name);
        let known = part.objects.remove(name)?;
        let emptied = self.is_empty();
        self.count(|operations| {
            operations.deleted += 1;
            operations.cleaned += u64::from(emptied);
        });
        self.seq += 1;
        Some(Change::Deleted(last.unwrap_or(known.view)))
    }

    /// Begins a complete listing. Objects that are not in it count as deleted.
    pub fn begin_round(&mut self, part: PartId) {
        if let Some(part) = self.parts.get_mut(&part) {
            part.round = part.round.wrapping_add(1);
            part.obscured.clear();
        }
    }

    /// Notes that an object exists and cannot be read. Its stored state stays, but counts as outdated.
    pub fn obscure(&mut self, part: PartId, name: &Arc<ObjectName>) {
        if let Some(part) = self.parts.get_mut(&part) {
            part.obscured.insert(Arc::clone(name));
            if let Some(known) = part.objects.get_mut(name) {
                known.round = part.round;
            }
        }
    }

    /// Ends the listing. Returns the objects that were not in it, which the caller has to remove.
    pub fn vanished(&self, part: PartId) -> Vec<Arc<ObjectName>> {
        let Some(part) = self.parts.get(&part) else {
            return Vec::new();
        };
        let objects = part.objects.iter();
        let vanished = objects.filter(|(_, kept)| kept.round != part.round);
        vanished.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// All objects in the order of the snapshot.
    pub fn objects(&self) -> Vec<ObjectView> {
        self.sorted().into_iter().map(|(_, view, _)| view.clone()).collect()
    }

    /// All objects, in no order that a hook may see.
    pub fn views(&self) -> impl Iterator<Item = &ObjectView> {
        let objects = self.parts.values().flat_map(|part| &part.objects);
        objects.map(|(_, kept)| &kept.view)
    }

    /// The names of all objects in the order of the snapshot.
    pub fn names(&self) -> Vec<Arc<ObjectName>> {
        self.sorted().into_iter().map(|(name, ..)| Arc::clone(name)).collect()
    }

    /// The objects of one watch, for another monitor with the same selection; `None` if one of them is outdated.
    pub fn sightings(&self, part: PartId) -> Option<Vec<Sighting>> {
        let part = self.parts.get(&part).filter(|part| part.obscured.is_empty())?;
        let sightings = part.objects.iter().map(|(name, kept)| Sighting {
            name: Arc::clone(name),
            view: kept.view.clone(),
            digest: kept.digest,
        });
        Some(sightings.collect())
    }

    /// The counts since the start, and since the last run.
    pub fn operations(&self) -> [Operations; 2] {
        let whole = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        let count = whole(self.len());
        let since_start = Operations {
            count,
            ..self.since_start
        };
        let since_run = Operations {
            count: count - whole(self.at_run),
            ..self.since_run
        };
        [since_start, since_run]
    }

    /// Notes that a run is about to read the snapshot: the second count starts again.
    pub fn begin_run(&mut self) {
        self.since_run = Operations::default();
        self.at_run = self.len();
    }

    fn count(&mut self, change: impl Fn(&mut Operations)) {
        change(&mut self.since_start);
        change(&mut self.since_run);
    }

    fn sorted(&self) -> Vec<(&Arc<ObjectName>, &ObjectView, Digest)> {
        let parts = self.parts.values().flat_map(|part| &part.objects);
        let mut all: Vec<_> = parts.map(|(name, kept)| (name, &kept.view, kept.digest)).collect();
        match self.order {
            // A single part is in this order already.
            Order::ByName if self.parts.len() <= 1 => {}
            Order::ByName => all.sort_by_key(|(name, ..)| *name),
            Order::ByText => all.sort_by(|(a, ..), (b, ..)| by_text(a, b)),
        }
        all
    }
}

/// Compares as by the texts `namespace/Kind/name`, without building them.
fn by_text(a: &ObjectName, b: &ObjectName) -> Ordering {
    fn text(name: &ObjectName) -> impl Iterator<Item = u8> {
        let pieces = [&*name.namespace, "/", &*name.kind, "/", &*name.name];
        pieces.into_iter().flat_map(str::bytes)
    }
    text(a).cmp(text(b))
}

#[cfg(test)]
mod tests;
