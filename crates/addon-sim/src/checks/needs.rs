//! D3: a module is removed before the modules that it depends on.

use std::collections::{BTreeMap, BTreeSet};

use super::{SimStep, Violation, ensure};
use crate::life::Seen;
use crate::setup::ModuleSpec;

/// Checks that a begun removal leaves no module behind that depends on the removed one and is certain to be removed, too.
pub(super) fn check(step: &SimStep<'_>) -> Result<(), Violation> {
    let Some((modules, _)) = &step.life.told.modules else {
        return Ok(());
    };
    let before = removals(step.before);
    for name in removals(step.after).difference(&before) {
        let left_behind = modules.values().find(|other| {
            let ours = step.world.releases.get(&other.name).is_some_and(|release| release.ours);
            // A helm that was killed may have left the release where the operator cannot know of it.
            let lives = step.before.modules.get(&other.name);
            let known = step.life.listed.get(&other.name) == Some(&true)
                || lives.is_some_and(|module| module.state != "Disabled");
            // The verdict may differ already from the one that a converge took up last.
            let goes = is_off(step.after, &other.name) && step.life.told.opinion(&other.name) == Some(false);
            // The module stays until a person decides about the lost configuration.
            let goes = goes && !step.after.status.config_lost.contains(&other.name);
            ours && known && goes && other.needs.contains(*name) && !other.broken && !needs(modules, name, &other.name)
        });
        ensure(left_behind.is_none(), "D3", || {
            let other = left_behind.map(|other| &other.name);
            format!("{name} is removed before {other:?}, which needs it")
        })?;
    }
    Ok(())
}

/// Modules whose removal is in a queue.
pub(super) fn removals(seen: &Seen) -> BTreeSet<&String> {
    let tasks = seen.queues.iter().flat_map(|queue| &queue.tasks);
    tasks
        .filter(|task| task.kind == "ModuleDelete")
        .map(|task| &task.module)
        .collect()
}

/// Whether the ConfigMap or a global hook has switched the module off.
fn is_off(seen: &Seen, name: &str) -> bool {
    let module = seen.modules.get(name);
    module.is_some_and(|module| !module.enabled && ["ConfigMap", "a global hook"].contains(&module.enabled_by.as_str()))
}

/// Whether one module depends on the other, directly or not.
fn needs(modules: &BTreeMap<String, ModuleSpec>, one: &str, other: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut ahead = vec![one];
    while let Some(name) = ahead.pop() {
        for need in modules.get(name).into_iter().flat_map(|module| &module.needs) {
            if need == other {
                return true;
            }
            if seen.insert(need) {
                ahead.push(need);
            }
        }
    }
    false
}
