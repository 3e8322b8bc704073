//! Work of people: they take modules into maintenance, damage releases, and edit the `ConfigMap` while one of its
//! sections is being saved. Added to a world and its history.

use super::reviews::insert;
use super::{KEYS, Setup, config, number, twins, values};
use crate::action::{Action, Harm, Timed};
use crate::dice::Dice;
use crate::flat;
use crate::setup::{HookSpec, ModuleSpec};

pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone {
        return;
    }
    setup.restores = dice.chance(70);
    if dice.chance(35) {
        maintain(dice, setup, actions);
    }
    if setup.restores && dice.chance(55) {
        damage(dice, setup, actions);
    }
    if dice.chance(30) {
        meddle(dice, setup, actions);
    }
}

/// Mostly one module goes into maintenance and comes back.
fn maintain(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let favourite = dice.pick(&setup.modules).key();
    if let Some(config) = setup.config.as_mut().filter(|_| dice.chance(30)) {
        config.insert(format!("{favourite}Maintenance"), "NoResourceReconciliation".to_owned());
    }
    for _ in 0..dice.count(1, 5) {
        let key = if dice.chance(80) {
            favourite.clone()
        } else {
            dice.pick(&setup.modules).key()
        };
        let text = match dice.between(0, 10) {
            0..=5 => Some("NoResourceReconciliation"),
            6 => Some(""),
            7 => Some("please"),
            _ => None,
        };
        let action = Action::Edit {
            key: format!("{key}Maintenance"),
            text: text.map(str::to_owned),
        };
        insert(dice, actions, action);
    }
}

fn damage(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    let favourite = dice.pick(&setup.modules).name.clone();
    for _ in 0..dice.count(1, 8) {
        let release = if dice.chance(70) {
            favourite.clone()
        } else {
            dice.pick(&setup.modules).name.clone()
        };
        let harm = match dice.between(0, 10) {
            0..=5 => Harm::Object,
            6..=7 => Harm::Release,
            _ => Harm::Helm,
        };
        insert(dice, actions, Action::Damage { release, harm });
    }
}

fn meddle(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let saves = |module: &&ModuleSpec| module.hooks.iter().any(HookSpec::saves);
    if !setup.modules.iter().any(|module| saves(&module)) {
        let index = dice.count(0, setup.modules.len() as u64 - 1);
        twins(dice, &mut setup.modules[index].hooks);
    }
    let savers = setup.modules.iter().filter(saves);
    let savers: Vec<String> = savers.map(ModuleSpec::key).collect();
    for _ in 0..dice.count(1, 5) {
        let key = dice.pick(&savers).clone();
        let action = match dice.between(0, 20) {
            0 => Action::DeleteConfigMap,
            1..=2 => Action::Edit {
                key: format!("{key}Enabled"),
                text: Some(dice.chance(60).to_string()),
            },
            3..=4 => Action::Edit { key, text: None },
            5 => Action::Kill,
            6..=8 => Action::Edit {
                key: "global".to_owned(),
                text: Some(flat::write(&values(dice))),
            },
            _ => {
                let mut section = values(dice);
                section.insert((*dice.pick(&KEYS)).to_owned(), number(dice));
                let text = Some(flat::write(&section));
                Action::Edit { key, text }
            }
        };
        insert(dice, actions, Action::Meddle(Box::new(action)));
    }
    if dice.chance(30) {
        // The watch reports this edit long after the save that it collides with.
        let names: Vec<&str> = setup.modules.iter().map(|module| module.name.as_str()).collect();
        let data = config(dice, &names);
        let delay = *dice.pick(&[600, 3_000, 20_000]);
        let place = insert(dice, actions, Action::WatchDelay(delay));
        let (after, action) = (0, Action::Meddle(Box::new(Action::ReplaceConfigMap { data })));
        actions.insert(place, Timed { after, action });
    }
}
