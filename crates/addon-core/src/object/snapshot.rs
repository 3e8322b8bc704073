//! The objects that a monitor has seen, and what of their coming and going is a change.
//!
//! Several watches fill one snapshot, each a part of its own: what one of them loses sight of says nothing about the
//! others. Must never tell a change twice, nor hold anything that is older than a change already told.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ObjectName, ObjectView};
use crate::digest::Digest;

/// The part of a snapshot that one watch fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(pub u64);

/// In which order a snapshot shows its objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By namespace, then by name.
    #[default]
    ByName,
    /// By the text `namespace/Kind/name`: that of snapshots without whole objects.
    ByText,
}

/// An object as it was found to be.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Which.
    pub name: Arc<ObjectName>,
    /// How the binding shows it.
    pub view: ObjectView,
    /// The digest of the part that the binding selects: while it stays the same, the object counts as unchanged.
    pub digest: Digest,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It did not exist before.
    Added(ObjectView),
    /// It looks different.
    Modified(ObjectView),
    /// It is gone; this is how it last looked.
    Deleted(ObjectView),
}

/// How often something happened to the objects of a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// By how many objects there are more now than there were.
    pub count: i64,
    /// How many came.
    pub added: u64,
    /// How many went.
    pub deleted: u64,
    /// How many changed.
    pub modified: u64,
    /// How often the last one went.
    pub cleaned: u64,
}

/// All objects of one monitor.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    order: Order,
    parts: BTreeMap<PartId, Part>,
    seq: u64,
    since_start: Operations,
    since_run: Operations,
    /// How many objects the last run was shown.
    at_run: usize,
}

#[derive(Debug, Clone, Default)]
struct Part {
    objects: BTreeMap<Arc<ObjectName>, Kept>,
    /// These exist and could not be read the last time: their stored state, if any, is old.
    obscured: BTreeSet<Arc<ObjectName>>,
    round: u32,
}

#[derive(Debug, Clone)]
struct Kept {
    view: ObjectView,
    digest: Digest,
    /// The last listing in which it stood.
    round: u32,
}

impl Snapshot {
    /// One without parts.
    pub fn new(order: Order) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Makes room for the objects of another watch; the former ones are dropped without an event.
    pub fn add_part(&mut self, part: PartId) {
        self.parts.insert(part, Part::default());
    }

    /// Drops the objects of a watch, without an event: they still exist and are only no longer selected.
    pub fn drop_part(&mut self, part: PartId) {
        self.parts.remove(&part);
    }

    /// The number of the last change, which is in here.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.parts.values().map(|part| part.objects.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.values().all(|part| part.objects.is_empty())
    }

    /// Whether an object of that name is there.
    pub fn holds(&self, name: &ObjectName) -> bool {
        self.parts.values().any(|part| part.objects.contains_key(name))
    }

    /// The digest of the selected part of an object; nothing for an absent one.
    pub fn digest(&self, name: &ObjectName) -> Option<Digest> {
        self.parts
            .values()
            .find_map(|part| part.objects.get(name).map(|kept| kept.digest))
    }

    /// Takes in an object of the first listing: it is there, and that is no change.
    pub fn fill(&mut self, part: PartId, sighting: Sighting) {
        if let Some(part) = self.parts.get_mut(&part) {
            let Sighting { name, view, digest } = sighting;
            let round = part.round;
            part.objects.insert(name, Kept { view, digest, round });
            self.count(|operations| operations.added += 1);
        }
    }

    /// Takes an object out that went before the first listing was complete.
    pub fn unfill(&mut self, part: PartId, name: &ObjectName) {
        let known = self.parts.get_mut(&part).and_then(|part| part.objects.remove(name));
        if known.is_some() {
            self.count(|operations| operations.added = operations.added.saturating_sub(1));
        }
    }

    /// The present state of an object, from a listing or a watch.
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

    /// An object is gone; `last` is how it looked then, unless only its absence was noticed.
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

    /// A complete listing begins: objects that are not in it are deleted.
    pub fn begin_round(&mut self, part: PartId) {
        if let Some(part) = self.parts.get_mut(&part) {
            part.round = part.round.wrapping_add(1);
            part.obscured.clear();
        }
    }

    /// An object is there, and how it is cannot be seen: it stays as it was, which is no longer how it is.
    pub fn obscure(&mut self, part: PartId, name: &Arc<ObjectName>) {
        if let Some(part) = self.parts.get_mut(&part) {
            part.obscured.insert(Arc::clone(name));
            if let Some(known) = part.objects.get_mut(name) {
                known.round = part.round;
            }
        }
    }

    /// The listing is complete: these did not stand in it and are to be lost.
    pub fn vanished(&self, part: PartId) -> Vec<Arc<ObjectName>> {
        let Some(part) = self.parts.get(&part) else {
            return Vec::new();
        };
        let objects = part.objects.iter();
        let vanished = objects.filter(|(_, kept)| kept.round != part.round);
        vanished.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// All objects in their order.
    pub fn objects(&self) -> Vec<ObjectView> {
        self.sorted().into_iter().map(|(_, view, _)| view.clone()).collect()
    }

    /// The names of all objects in the order of the snapshot.
    pub fn names(&self) -> Vec<Arc<ObjectName>> {
        self.sorted().into_iter().map(|(name, ..)| Arc::clone(name)).collect()
    }

    /// The objects of one watch, for another monitor with the same selection; nothing if one of them is old.
    pub fn sightings(&self, part: PartId) -> Option<Vec<Sighting>> {
        let part = self.parts.get(&part).filter(|part| part.obscured.is_empty())?;
        let sightings = part.objects.iter().map(|(name, kept)| Sighting {
            name: Arc::clone(name),
            view: kept.view.clone(),
            digest: kept.digest,
        });
        Some(sightings.collect())
    }

    /// The changes since the start, and since the last run.
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

    /// A run is about to read this: later changes are counted anew.
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
            // One part is in this order already.
            Order::ByName if self.parts.len() <= 1 => {}
            Order::ByName => all.sort_by_key(|(name, ..)| *name),
            Order::ByText => all.sort_by(|(a, ..), (b, ..)| by_text(a, b)),
        }
        all
    }
}

/// The order of `namespace/Kind/name`, without making the texts.
fn by_text(a: &ObjectName, b: &ObjectName) -> Ordering {
    fn text(name: &ObjectName) -> impl Iterator<Item = u8> {
        let pieces = [&*name.namespace, "/", &*name.kind, "/", &*name.name];
        pieces.into_iter().flat_map(str::bytes)
    }
    text(a).cmp(text(b))
}

#[cfg(test)]
mod tests;
