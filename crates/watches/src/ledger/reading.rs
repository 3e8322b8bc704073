//! Targets whose objects a reader of ours reads as states.
//!
//! Must never show a reader a part of the objects as if it were all of them.

use std::sync::Arc;

use addon_core::object::json::Json;
use addon_core::object::snapshot::PartId;
use tokio_util::sync::CancellationToken;

use super::super::reader::Reader;
use super::super::selection::Selection;
use super::outlet::Outlet;
use super::{Key, Ledger, New, Stage, Target};

impl Target {
    pub(super) fn is_read(&self) -> bool {
        self.reader().is_some()
    }

    fn reader(&self) -> Option<&Arc<dyn Reader>> {
        match &self.outlet {
            Outlet::Reader(reader) => Some(reader),
            Outlet::Core(..) | Outlet::Namespaces(_) | Outlet::Own(_) => None,
        }
    }
}

impl Ledger {
    /// Joins a target that waits for no first list: each list is read as it comes.
    pub(crate) fn attach(
        &mut self,
        key: Key,
        selection: &Selection,
        root: &CancellationToken,
    ) -> (PartId, Option<New>) {
        let (feed, new) = self.subscribe(key, Stage::Settled, selection, root);
        if let Some(target) = self.targets.get_mut(&key) {
            target.snapshot.add_part(feed);
        }
        (feed, new)
    }

    /// The readers of the objects that a watch brings.
    pub(crate) fn readers(&self, id: PartId) -> Vec<Arc<dyn Reader>> {
        self.read_targets(id).map(|(reader, _)| Arc::clone(reader)).collect()
    }

    /// All objects of a watch, as its reader sees them; `None` if an object cannot be read, or if there is no reader.
    pub(crate) fn objects(&self, id: PartId) -> Option<Vec<Json>> {
        let (_, target) = self.read_targets(id).next()?;
        let sightings = target.snapshot.sightings(id)?.into_iter();
        Some(sightings.filter_map(|sighting| sighting.view.object).collect())
    }

    fn read_targets(&self, id: PartId) -> impl Iterator<Item = (&Arc<dyn Reader>, &Target)> {
        let subscribers = self.feeds.get(&id).into_iter().flat_map(|feed| &feed.subscribers);
        let targets = subscribers.filter_map(|subscriber| self.targets.get(&subscriber.key));
        targets.filter_map(|target| Some((target.reader()?, target)))
    }
}
