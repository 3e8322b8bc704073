//! The first complete snapshot of a monitor: from a list, or from the objects of another monitor.
//!
//! Must never let a monitor start with an incomplete snapshot, nor wait for a list that has failed.

use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::object::snapshot::{PartId, Sighting};

use super::super::lens::Lens;
use super::super::observation::Labels;
use super::{Key, Ledger, Stage, Subscriber, Target};

impl Ledger {
    /// Records the beginning of a list: waiting targets take part in it, and settled ones get the differences.
    pub(crate) fn begin_listing(&mut self, id: PartId) {
        let Some(feed) = self.feeds.get_mut(&id) else {
            return;
        };
        for subscriber in &mut feed.subscribers {
            let stage = std::mem::replace(&mut subscriber.stage, Stage::Settled);
            let Some(target) = self.targets.get_mut(&subscriber.key) else {
                continue;
            };
            subscriber.stage = match stage {
                Stage::Settled => {
                    target.snapshot.begin_round(id);
                    Stage::Settled
                }
                Stage::Waiting(starter) | Stage::Listing(starter) => {
                    target.snapshot.add_part(id);
                    Stage::Listing(starter)
                }
            };
        }
    }

    /// Records the end of a list: the targets that took part are settled.
    pub(crate) fn end_listing(&mut self, id: PartId) {
        let Some(feed) = self.feeds.get_mut(&id) else {
            return;
        };
        for subscriber in &mut feed.subscribers {
            subscriber.stage = match std::mem::replace(&mut subscriber.stage, Stage::Settled) {
                Stage::Listing(starter) => {
                    // The receiver may have given up; its target leaves by itself.
                    let _ = starter.send(Ok(()));
                    Stage::Settled
                }
                other => other,
            };
        }
    }

    /// Fails the start of a target that could not read an object.
    pub(crate) fn fail(&mut self, id: PartId, key: Key, failure: &Failure) {
        self.fail_those(id, failure, |subscriber| subscriber.key == key);
    }

    /// Fails the start of all targets that are not settled, because the list failed.
    pub(crate) fn fail_starters(&mut self, id: PartId, failure: &Failure) {
        self.fail_those(id, failure, |_| true);
    }

    fn fail_those(&mut self, id: PartId, failure: &Failure, which: impl Fn(&Subscriber) -> bool) {
        let Some(feed) = self.feeds.get_mut(&id) else {
            return;
        };
        let all = std::mem::take(&mut feed.subscribers);
        for subscriber in all {
            let concerned = which(&subscriber);
            match subscriber.stage {
                Stage::Waiting(starter) | Stage::Listing(starter) if concerned => {
                    let _ = starter.send(Err(failure.clone()));
                    if let Some(target) = self.targets.get_mut(&subscriber.key) {
                        target.snapshot.drop_part(id);
                    }
                }
                stage => feed.subscribers.push(Subscriber { stage, ..subscriber }),
            }
        }
        self.end_unwanted(id);
    }

    /// Removes a watch that has ended unexpectedly. The next target with the same selection gets a new one.
    pub(crate) fn abandon(&mut self, id: PartId, failure: &Failure) {
        self.fail_starters(id, failure);
        if let Some(feed) = self.feeds.remove(&id) {
            self.by_selection.remove(&feed.selection);
        }
    }

    /// The targets that wait for a first list.
    pub(crate) fn waiting(&self, id: PartId) -> Vec<(Key, Arc<Lens>, Option<Arc<Labels>>)> {
        let subscribers = self.feeds.get(&id).into_iter().flat_map(|feed| &feed.subscribers);
        let waiting = subscribers.filter(|subscriber| matches!(subscriber.stage, Stage::Waiting(_)));
        waiting
            .filter_map(|subscriber| {
                let target = self.targets.get(&subscriber.key)?;
                Some((subscriber.key, Arc::clone(&target.lens), target.labels.clone()))
            })
            .collect()
    }

    /// The objects for a new target, from a settled target: from one whose lens shows enough, else from one that keeps
    /// whole objects.
    pub(crate) fn known(&self, id: PartId, lens: &Lens) -> Option<(Arc<Lens>, Vec<Sighting>)> {
        let feed = self.feeds.get(&id)?;
        let settled = feed.subscribers.iter().filter(|s| matches!(s.stage, Stage::Settled));
        let targets: Vec<&Target> = settled.filter_map(|s| self.targets.get(&s.key)).collect();
        let enough = targets.iter().filter(|target| lens.is_within(&target.lens));
        let whole = targets.iter().filter(|target| target.lens.keeps_objects());
        enough
            .chain(whole)
            .find_map(|target| Some((Arc::clone(&target.lens), target.snapshot.sightings(id)?)))
    }

    /// Gives a waiting target the objects that another target's snapshot has.
    pub(crate) fn admit(&mut self, id: PartId, key: Key, sightings: Vec<Sighting>) {
        let Some(target) = self.targets.get_mut(&key) else {
            return;
        };
        target.snapshot.add_part(id);
        for sighting in sightings {
            target.snapshot.fill(id, sighting);
        }
        let subscribers = self.feeds.get_mut(&id).map(|feed| &mut feed.subscribers);
        for subscriber in subscribers.into_iter().flatten().filter(|s| s.key == key) {
            if let Stage::Waiting(starter) = std::mem::replace(&mut subscriber.stage, Stage::Settled) {
                let _ = starter.send(Ok(()));
            }
        }
    }
}
