//! L1: the final state that every world must reach, compared with the reference model's result.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::release::{ConfigTrace, Status};
use serde_json::{Value, json};

use super::{Violation, ensure};
use crate::flat::{self, Flat};
use crate::life::{Life, Seen};
use crate::model::End;
use crate::setup::{Deed, HookSpec, Setup};
use crate::world::{Release, World};

/// Compares a world at rest with the final state that the model computed.
pub fn check_end(end: &End, world: &World, life: &Life, seen: &Seen) -> Result<(), Violation> {
    if world.setup.alone {
        return alone(seen);
    }
    if world.setup.strict && (!end.stuck.is_empty() || switches_late(&world.setup)) {
        // In strict order a module that cannot run holds up all modules behind it, as in the original.
        return Ok(());
    }
    if says_late(&world.setup) {
        return Ok(());
    }
    let status = &seen.status;
    ensure(status.ready && status.converge_tasks == 0, "L1", || {
        format!("at rest the status is {status:?}")
    })?;
    let tasks: Vec<_> = seen
        .queues
        .iter()
        .flat_map(|queue| &queue.tasks)
        .map(|task| &task.description)
        .collect();
    ensure(tasks.is_empty(), "L1", || format!("at rest there are tasks: {tasks:?}"))?;
    modules(end, world, life, seen)?;
    values(end, seen)?;
    problems(life, seen)?;
    sections(end, world, life)?;
    releases(end, world, life, seen)?;
    state(world, life)
}

/// Checks a world without modules at rest: everything was reported.
fn alone(seen: &Seen) -> Result<(), Violation> {
    let tasks: Vec<_> = seen.queues.iter().flat_map(|queue| &queue.tasks).collect();
    ensure(seen.status.ready && tasks.is_empty(), "L1", || {
        format!(
            "at rest the status is {:?}, and there are tasks: {tasks:?}",
            seen.status
        )
    })
}

/// Whether a global hook switches modules only after other modules may have needed them, or after the values that it
/// depends on have changed.
fn switches_late(setup: &Setup) -> bool {
    let early = |hook: &HookSpec, deed: &Deed| match deed {
        Deed::Flag { .. } => ["onStartup", "beforeAll"]
            .iter()
            .any(|stage| hook.stages.contains_key(*stage)),
        Deed::FlagFrom { .. } => hook.stages.contains_key("beforeAll"),
        Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => true,
    };
    let hooks = setup.global_hooks.iter();
    let mut deeds = hooks.flat_map(|hook| hook.does.iter().map(move |deed| (hook, deed)));
    deeds.any(|(hook, deed)| !early(hook, deed))
}

/// Whether a global hook switches modules by values and also runs in a queue of its own. A run in that queue may have
/// old values and end after a run elsewhere that had the new values.
fn says_late(setup: &Setup) -> bool {
    let goes_by_values = |hook: &HookSpec| hook.does.iter().any(|deed| matches!(deed, Deed::FlagFrom { .. }));
    let apart = |hook: &HookSpec| {
        let watches = hook.watches.iter().any(|watch| watch.queue.is_some());
        watches || hook.schedules.iter().any(|schedule| schedule.queue.is_some())
    };
    setup
        .global_hooks
        .iter()
        .any(|hook| goes_by_values(hook) && apart(hook))
}

fn modules(end: &End, world: &World, life: &Life, seen: &Seen) -> Result<(), Violation> {
    let running: BTreeSet<String> = seen
        .modules
        .values()
        .filter(|module| module.enabled)
        .map(|module| module.name.clone())
        .collect();
    ensure(running == end.enabled, "L1", || {
        format!("enabled are {running:?}, but should be {:?}", end.enabled)
    })?;
    for module in seen.modules.values() {
        // The brake is checked elsewhere.
        if is_held(seen, &module.name) {
            continue;
        }
        let wanted = if end.stuck.contains(&module.name) {
            continue;
        } else if end.enabled.contains(&module.name) {
            "Ready"
        } else if life.told.says_no(&module.name, &world.setup) {
            "Disabled"
        } else {
            continue;
        };
        let good =
            module.state == wanted && module.failures == 0 && module.error.is_none() && module.waits_for.is_empty();
        ensure(good, "L1", || {
            format!("{} should be {wanted}, but is {module:?}", module.name)
        })?;
    }
    Ok(())
}

fn values(end: &End, seen: &Seen) -> Result<(), Violation> {
    for (owner, wanted) in &end.values {
        let found = seen.values.get(owner);
        ensure(found == Some(&json!(wanted)), "L1", || {
            format!("values of {owner} are {found:?}, but should be {wanted:?}")
        })?;
    }
    Ok(())
}

fn sections(end: &End, world: &World, life: &Life) -> Result<(), Violation> {
    for (key, wanted) in end.written.iter().filter(|(_, wanted)| !wanted.is_empty()) {
        let beside = life.told.kept_beside(key);
        let found: Flat = beside
            .or(world.config.text(key))
            .and_then(|text| flat::read(text, key == "global"))
            .unwrap_or_default();
        let there = wanted.iter().all(|(key, value)| found.get(key) == Some(value));
        ensure(there, "L1", || {
            format!("section {key} is {found:?}, but hooks write {wanted:?}")
        })?;
    }
    Ok(())
}

fn releases(end: &End, world: &World, life: &Life, seen: &Seen) -> Result<(), Violation> {
    for name in end.enabled.difference(&end.stuck) {
        let Some(spec) = world.module(name).filter(|spec| spec.chart) else {
            continue;
        };
        let wanted = json!({"global": end.values.get("global"), spec.key(): end.values.get(name)});
        let found = world.releases.get(name);
        if life.told.in_maintenance(name) {
            left_to_people(name, world)?;
            continue;
        }
        let inputs = found.and_then(|release| serde_json::from_str::<Value>(&release.inputs).ok());
        let good = found.is_some_and(|release| release.ours && release.status == Status::Deployed)
            && inputs == Some(wanted.clone());
        ensure(good, "L1", || {
            format!("the release of {name} is {found:?}, but should be made of {wanted}")
        })?;
        let whole = found.is_some_and(|release| release.missing.is_empty() && release.objects == spec.objects());
        ensure(whole, "L1", || format!("the release of {name} is not whole: {found:?}"))?;
        marked(name, found, life)?;
        ensure(found.is_some_and(|release| !release.unmanaged), "N2", || {
            format!("{name} was given back, but its release is {found:?}")
        })?;
    }
    one_owner(world)?;
    for (name, release) in world.releases.iter().filter(|(_, release)| release.ours) {
        if world.module(name).is_some() {
            let off = !end.enabled.contains(name)
                && life.told.says_no(name, &world.setup)
                && !world.module(name).is_some_and(|spec| spec.broken)
                && !is_held(seen, name);
            ensure(!off, "L1", || {
                format!("{name} is switched off, but its release is still there: {release:?}")
            })?;
        } else if world.setup.ignore.as_ref() != Some(name) && !life.told.are_sources_unknown() {
            ensure(is_held(seen, name) || world.setup.modules.is_empty(), "L1", || {
                format!(
                    "the module of {name} is gone, but its release is still there; held are {:?}",
                    seen.status.held
                )
            })?;
        }
    }
    Ok(())
}

/// Whether the module's removal is held by the brake.
fn is_held(seen: &Seen, name: &str) -> bool {
    seen.status.held.iter().any(|held| held.release == name)
}

/// R9: the release has a trace of the values that the `ConfigMap` had for it. A flag in the `ConfigMap` that equals the
/// flag in the files causes no run, so it may be missing in the trace.
fn marked(name: &str, found: Option<&Release>, life: &Life) -> Result<(), Violation> {
    let said = life.told.has_values_for(name);
    let marked = found.and_then(|release| release.config);
    ensure(
        marked.is_some() && !(said && marked == Some(ConfigTrace::Nothing)),
        "R9",
        || format!("the release of {name} is marked with {marked:?}, but the `ConfigMap` has values for it"),
    )
}

/// N2: the release of a module that people maintain is marked so, unless they removed it.
fn left_to_people(name: &str, world: &World) -> Result<(), Violation> {
    let found = world.releases.get(name);
    let marked = match found {
        Some(release) => release.ours && release.unmanaged,
        None => world.ledger.taken.contains(name),
    };
    ensure(marked, "N2", || {
        format!("{name} is in people's hands, but its release is {found:?}")
    })
}

/// K2: an object belongs to one release.
fn one_owner(world: &World) -> Result<(), Violation> {
    let mut owners: BTreeMap<&String, &String> = BTreeMap::new();
    for (name, release) in &world.releases {
        for object in &release.objects {
            let other = owners.insert(object, name);
            ensure(other.is_none(), "K2", || {
                format!("{object} belongs to {name} and to {other:?}")
            })?;
        }
    }
    Ok(())
}

/// V8: all keys that cannot be used are reported, and no others.
fn problems(life: &Life, seen: &Seen) -> Result<(), Violation> {
    let told: BTreeSet<String> = seen.status.config_problems.keys().cloned().collect();
    ensure(told == life.told.broken, "V8", || {
        format!("unusable are {:?}, but told are {told:?}", life.told.broken)
    })
}

/// The last good texts are kept for the next life.
fn state(world: &World, life: &Life) -> Result<(), Violation> {
    let kept: BTreeMap<String, String> = world
        .secret
        .clone()
        .and_then(|state| state.last_good)
        .unwrap_or_default();
    for (key, text) in &life.told.config {
        let same = |kept: &String| {
            flat::read(kept, true) == flat::read(text, true) && flat::read_flag(kept) == flat::read_flag(text)
        };
        ensure(kept.get(key).is_some_and(same), "L4", || {
            format!(
                "the state Secret keeps {:?} as last good {key}, but that is {text:?}",
                kept.get(key)
            )
        })?;
    }
    Ok(())
}
