//! The monitors of a life: the objects that each has seen, and the changes that are still on their way to the operator.

use std::collections::{BTreeMap, VecDeque};

use addon_core::hook::config::WatchEvent;
use addon_core::object::json::Json;
use addon_core::object::{ObjectName, ObjectView};
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::ObjectChange;
use names::{BindingName, HookId, MonitorId};
use serde_json::json;

/// The objects of a kind by name, each with a version.
pub type Objects = BTreeMap<String, u64>;

/// One monitor that watches.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// The hook.
    pub hook: HookId,
    /// The binding that the monitor serves.
    pub binding: BindingName,
    kind: String,
    objects: Objects,
    /// The number of changes that the monitor has seen.
    pub seq: u64,
}

/// All monitors.
#[derive(Debug, Default)]
pub struct Monitors {
    /// The monitors that are watching.
    pub known: BTreeMap<MonitorId, Monitor>,
    /// The changes on their way, also of stopped monitors.
    news: BTreeMap<MonitorId, VecDeque<ObjectChange>>,
}

/// The monitor that reported a change, and the number of the change.
pub fn told(view: &ObjectView) -> Option<(MonitorId, u64)> {
    let value = view.object.as_ref()?.to_value();
    Some((MonitorId(value["monitor"].as_u64()?), value["seq"].as_u64()?))
}

impl Monitors {
    /// Lists the existing objects, and watches from then on.
    pub fn start(&mut self, hook: &HookId, starts: &[MonitorStart], cluster: &BTreeMap<String, Objects>) {
        for start in starts {
            let kind = start.binding.kind.clone();
            let monitor = Monitor {
                hook: hook.clone(),
                binding: start.binding.name.clone(),
                objects: cluster.get(&kind).cloned().unwrap_or_default(),
                kind,
                seq: 0,
            };
            self.known.insert(start.id, monitor);
        }
    }

    /// Stops these monitors. Changes that they saw before are still reported.
    pub fn stop(&mut self, ids: &[MonitorId]) {
        for id in ids {
            self.known.remove(id);
        }
    }

    /// Passes a change of an object to the monitors. Returns those that report it.
    pub fn see(&mut self, kind: &str, name: &str, version: Option<u64>) -> Vec<MonitorId> {
        let mut seers = Vec::new();
        for (id, monitor) in self.known.iter_mut().filter(|(_, monitor)| monitor.kind == kind) {
            let before = match version {
                Some(version) => monitor.objects.insert(name.to_owned(), version),
                None => monitor.objects.remove(name),
            };
            let event = match (before, version) {
                (None, None) => continue,
                (None, Some(_)) => WatchEvent::Added,
                (Some(_), Some(_)) => WatchEvent::Modified,
                (Some(_), None) => WatchEvent::Deleted,
            };
            monitor.seq += 1;
            let change = ObjectChange {
                monitor: *id,
                seq: monitor.seq,
                event,
                name: ObjectName {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                    ..ObjectName::default()
                },
                view: ObjectView {
                    object: Some(Json::from(&json!({"monitor": id.0, "seq": monitor.seq}))),
                    filter_result: None,
                },
                version: 0,
                release: None,
                by_tool: false,
            };
            self.news.entry(*id).or_default().push_back(change);
            seers.push(*id);
        }
        seers
    }

    /// Takes the oldest change of a monitor that is on its way.
    pub fn arrive(&mut self, id: MonitorId) -> Option<ObjectChange> {
        self.news.get_mut(&id)?.pop_front()
    }

    /// The last changes in the snapshots of these monitors. A stopped monitor has no snapshot.
    pub fn read<'a>(&self, wanted: impl IntoIterator<Item = &'a MonitorId>) -> BTreeMap<MonitorId, u64> {
        let known = wanted.into_iter().filter_map(|id| Some((*id, self.known.get(id)?.seq)));
        known.collect()
    }
}
