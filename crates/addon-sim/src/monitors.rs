//! Monitors of a life: what each has seen of the cluster, and which of its news is still on its way.

use std::collections::{BTreeMap, VecDeque};

use addon_core::hook::config::WatchEvent;
use addon_core::name::{BindingName, HookId, MonitorId};
use addon_core::object::json::Json;
use addon_core::object::{ObjectName, ObjectView};
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::ObjectChange;
use serde_json::json;

/// Objects of a kind by their names, each with a version.
pub type Objects = BTreeMap<String, u64>;

/// One monitor that watches.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// Whose it is.
    pub hook: HookId,
    /// Which binding it serves.
    pub binding: BindingName,
    kind: String,
    objects: Objects,
    /// How many changes it has seen.
    pub seq: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Monitors {
    /// Those that watch.
    pub known: BTreeMap<MonitorId, Monitor>,
    /// News on its way, also of monitors that were stopped.
    news: BTreeMap<MonitorId, VecDeque<ObjectChange>>,
}

/// Which monitor told a change, and as which of its own.
pub fn told(view: &ObjectView) -> Option<(MonitorId, u64)> {
    let value = view.object.as_ref()?.to_value();
    Some((MonitorId(value["monitor"].as_u64()?), value["seq"].as_u64()?))
}

impl Monitors {
    /// Lists what is there and watches from then on.
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

    /// These see nothing any more; what they saw before is still told.
    pub fn stop(&mut self, ids: &[MonitorId]) {
        for id in ids {
            self.known.remove(id);
        }
    }

    /// An object changed: the monitors that have news now.
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
            };
            self.news.entry(*id).or_default().push_back(change);
            seers.push(*id);
        }
        seers
    }

    /// The oldest news of a monitor arrives.
    pub fn arrive(&mut self, id: MonitorId) -> Option<ObjectChange> {
        self.news.get_mut(&id)?.pop_front()
    }

    /// Up to where the snapshots of these monitors are; one that was stopped has none.
    pub fn read<'a>(&self, wanted: impl IntoIterator<Item = &'a MonitorId>) -> BTreeMap<MonitorId, u64> {
        let known = wanted.into_iter().filter_map(|id| Some((*id, self.known.get(id)?.seq)));
        known.collect()
    }
}
