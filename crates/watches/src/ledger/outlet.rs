//! Sends each change to its receiver after the change has entered the snapshot. Must never wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use addon_core::hook::condition::Evidence;
use addon_core::hook::config::WatchEvent;
use addon_core::object::ObjectName;
use addon_core::object::snapshot::Change;
use addon_core::operator::event::{Event, ObjectChange};
use tokio::sync::mpsc;

use super::super::gate::Gate;
use super::super::lens::Trace;
use super::super::own::Turned;
use super::super::reader::Reader;
use super::{Key, Target};

/// A namespace begins or stops to match a selector.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) namespace: String,
    pub(crate) present: bool,
}

/// The receiver of changes.
pub(crate) enum Outlet {
    /// The core, if it asked for events of this type, and if the gate lets them through.
    Core(BTreeSet<WatchEvent>, Option<Gate>),
    /// The part that follows the namespaces of a selector.
    Namespaces(mpsc::UnboundedSender<Moved>),
    /// A part of the operator that watches for itself.
    Own(mpsc::UnboundedSender<Turned>),
    /// A part of the operator that reads states instead of changes.
    Reader(Arc<dyn Reader>),
}

impl Target {
    /// The gate that a change has to pass, with the evidence; none if there is no gate, or if the core did not ask for
    /// the change.
    pub(super) fn gate_for(&self, change: &Change) -> Option<(&Gate, Evidence)> {
        let Outlet::Core(events, Some(gate)) = &self.outlet else {
            return None;
        };
        let (event, view) = match change {
            Change::Added(view) => (WatchEvent::Added, view),
            Change::Modified(view) => (WatchEvent::Modified, view),
            Change::Deleted(view) => (WatchEvent::Deleted, view),
        };
        let wanted = events.contains(&event);
        wanted.then(|| (gate, Evidence::of_change(event, view)))
    }

    pub(super) fn tell(
        &self,
        key: Key,
        (name, trace): (&Arc<ObjectName>, &Trace),
        change: Change,
        room: Option<mpsc::Permit<'_, Event>>,
    ) {
        if let (Outlet::Own(door), Key::Own(id)) = (&self.outlet, key) {
            let name = Arc::clone(name);
            // The receiver may have ended with everything else.
            let _ = door.send(Turned { id, name, change });
            return;
        }
        let (event, view) = match change {
            Change::Added(view) => (WatchEvent::Added, view),
            Change::Modified(view) => (WatchEvent::Modified, view),
            Change::Deleted(view) => (WatchEvent::Deleted, view),
        };
        match (&self.outlet, key, room) {
            (Outlet::Core(events, _), Key::Monitor(monitor), Some(room)) if events.contains(&event) => {
                room.send(Event::ObjectChanged(ObjectChange {
                    monitor,
                    seq: self.snapshot.seq(),
                    event,
                    name: ObjectName::clone(name),
                    view,
                    version: trace.version,
                    release: trace.release.clone(),
                    by_tool: trace.by_tool,
                }));
            }
            (Outlet::Namespaces(door), ..) => {
                let moved = Moved {
                    namespace: name.name.clone(),
                    present: event != WatchEvent::Deleted,
                };
                // The receiver may have ended with its monitor.
                let _ = door.send(moved);
            }
            _ => {}
        }
    }
}
