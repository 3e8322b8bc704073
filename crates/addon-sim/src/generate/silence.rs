//! The loss of a source that switches many modules on: keys of the `ConfigMap`, flags in files, or directories. It may
//! come back, at once or piece by piece, and a person may confirm the held removals. Added to a world and its history.

use super::reviews::insert;
use super::{NAMES, STRAYS, Setup};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::ReleaseSpec;

pub(super) fn fall(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || setup.modules.len() < 3 || !dice.chance(25) {
        return;
    }
    for module in &setup.modules {
        if setup.releases.iter().all(|release| release.name != module.name) && dice.chance(80) {
            setup.releases.push(ReleaseSpec {
                name: module.name.clone(),
                ours: true,
                pending: false,
            });
        }
    }
    match dice.between(0, 3) {
        0 => keys(dice, setup, actions),
        1 => files(dice, setup, actions),
        _ => directories(dice, setup, actions),
    }
    for _ in 0..dice.count(0, 3) {
        let all = NAMES.iter().chain(&STRAYS).map(|name| (*name).to_owned());
        let most = *dice.pick(&[20, 60, 100]);
        let names = all.filter(|_| dice.chance(most)).collect();
        insert(dice, actions, Action::Confirm(names));
    }
}

/// Only flags in the `ConfigMap` switch the modules on, until an edit removes most of these flags.
fn keys(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let config = setup.config.get_or_insert_default();
    for module in &mut setup.modules {
        module.enabled = None;
        config.insert(format!("{}Enabled", module.key()), "true".to_owned());
    }
    let whole = config.clone();
    let mut lost = whole.clone();
    lost.retain(|key, _| !key.ends_with("Enabled") || dice.chance(20));
    insert(dice, actions, Action::ApplyConfigMap { data: lost });
    if dice.chance(40) {
        insert(dice, actions, Action::ApplyConfigMap { data: whole });
    } else {
        for (key, text) in whole.into_iter().filter(|(key, _)| key.ends_with("Enabled")) {
            if dice.chance(60) {
                let text = Some(if dice.chance(80) { text } else { "false".to_owned() });
                insert(dice, actions, Action::Edit { key, text });
            }
        }
    }
}

/// Only flags in files switch the modules on, and some of these flags are missing when the operator starts again.
fn files(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    setup
        .config
        .get_or_insert_default()
        .retain(|key, _| !key.ends_with("Enabled"));
    for index in 0..setup.modules.len() {
        setup.modules[index].enabled = Some(true);
        let (module, values) = (setup.modules[index].name.clone(), setup.modules[index].values.clone());
        for enabled in [None, Some(true)] {
            if dice.chance(80) {
                let (module, values) = (module.clone(), values.clone());
                let action = Action::Alter {
                    module,
                    values,
                    enabled,
                    broken: false,
                };
                insert(dice, actions, action);
            }
        }
    }
    for _ in 0..dice.count(1, 3) {
        insert(dice, actions, Action::Kill);
    }
}

/// Removes the directories of many modules before the operator starts again.
fn directories(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let names: Vec<String> = setup.modules.iter().map(|module| module.name.clone()).collect();
    let lost: Vec<String> = names.into_iter().filter(|_| dice.chance(60)).collect();
    for name in &lost {
        insert(dice, actions, Action::Remove(name.clone()));
    }
    for _ in 0..dice.count(1, 3) {
        insert(dice, actions, Action::Kill);
    }
    for name in lost {
        if dice.chance(40) {
            insert(dice, actions, Action::Restore(name));
        }
    }
}
