//! Targets: the receivers of objects, and the part of their snapshots that others may read. Must never send a change.

use std::sync::Arc;

use addon_core::digest::Digest;
use addon_core::object::snapshot::{Order, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use tokio_util::sync::CancellationToken;

use super::Target;
use super::outlet::Outlet;
use crate::lens::Lens;
use crate::observation::Labels;
use crate::reader::Reader;

impl Target {
    /// A target for the namespaces of a monitor's selector; it only has to know which ones exist.
    pub(crate) fn of_namespaces(outlet: Outlet, labels: Arc<Labels>, end: CancellationToken) -> Self {
        Self {
            snapshot: Snapshot::new(Order::ByName),
            lens: Arc::new(Lens::presence()),
            labels: Some(labels),
            outlet,
            live: true,
            end,
        }
    }

    /// A target whose whole objects a reader of the operator reads.
    pub(crate) fn read_by(reader: Arc<dyn Reader>, end: CancellationToken) -> Self {
        Self::own(Outlet::Reader(reader), Lens::whole(), end)
    }

    /// A target of the operator's own, whose objects are seen through the given lens.
    pub(crate) fn own(outlet: Outlet, lens: Lens, end: CancellationToken) -> Self {
        Self {
            snapshot: Snapshot::new(lens.order()),
            lens: Arc::new(lens),
            labels: None,
            outlet,
            live: true,
            end,
        }
    }

    /// The snapshot, by object name.
    pub(crate) fn seen(&self) -> Vec<(Arc<ObjectName>, ObjectView)> {
        let names = self.snapshot.names().into_iter();
        names.zip(self.snapshot.objects()).collect()
    }

    pub(crate) fn holds(&self, name: &ObjectName) -> bool {
        self.snapshot.holds(name)
    }

    /// The selected part of an object.
    pub(crate) fn view(&self, name: &ObjectName) -> Option<&ObjectView> {
        self.snapshot.view(name)
    }

    /// A digest that changes with the selected part of an object.
    pub(crate) fn digest(&self, name: &ObjectName) -> Option<Digest> {
        self.snapshot.digest(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.snapshot.names().iter().map(|name| name.name.clone()).collect()
    }
}
