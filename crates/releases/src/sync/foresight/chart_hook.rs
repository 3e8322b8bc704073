//! Hooks of charts: objects that helm makes at certain events, and waits for. Must never be taken for hooks of modules.

use helm::labels::HELM_HOOK;
use objects::key::{ObjectKey, key_of};
use serde_json::Value;

/// The events of a first installation.
pub(super) const INSTALL: [&str; 2] = ["pre-install", "post-install"];
/// The events of an upgrade.
pub(super) const UPGRADE: [&str; 2] = ["pre-upgrade", "post-upgrade"];
/// The events of a removal.
pub(super) const REMOVAL: [&str; 2] = ["pre-delete", "post-delete"];

/// A hook of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartHook {
    pub object: ObjectKey,
    /// The events of this change, as in `pre-upgrade`.
    pub events: Vec<String>,
}

/// Whether an object is a hook.
pub(super) fn is_one(object: &Value) -> bool {
    object["metadata"]["annotations"][HELM_HOOK].is_string()
}

/// The objects that are hooks at one of these events, in the order of the events.
pub(super) fn among(objects: &[Value], events: [&str; 2]) -> Vec<ChartHook> {
    let mut hooks: Vec<ChartHook> = objects.iter().filter_map(|object| hook_at(object, events)).collect();
    // Those of the first event come first.
    hooks.sort_by_key(|hook| hook.events[0] != events[0]);
    hooks
}

fn hook_at(object: &Value, events: [&str; 2]) -> Option<ChartHook> {
    let own = object["metadata"]["annotations"][HELM_HOOK].as_str()?;
    let own: Vec<&str> = own.split(',').map(str::trim).collect();
    let events: Vec<String> = events
        .iter()
        .filter(|event| own.contains(event))
        .map(ToString::to_string)
        .collect();
    let object = key_of(object).filter(|_| !events.is_empty())?;
    Some(ChartHook { object, events })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_of_the_events_are_found_and_those_before_come_first() {
        let hook = |name: &str, events: &str| json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": {HELM_HOOK: events}}});
        let objects = [
            hook("after", "post-install , post-upgrade"),
            hook("both", "pre-upgrade,post-upgrade"),
            hook("first", "pre-install"),
            hook("test", "test"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}),
        ];
        let told: Vec<String> = among(&objects, UPGRADE)
            .iter()
            .map(|hook| format!("{} {}", hook.object.name, hook.events.join("+")))
            .collect();
        assert_eq!(told, ["both pre-upgrade+post-upgrade", "after post-upgrade"]);
    }
}
