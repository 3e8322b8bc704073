//! Histories: actions while the operator runs, by weights.

use std::collections::BTreeMap;

use super::{KEYS, KINDS, STRAYS, config, number, values};
use crate::action::{Action, Misreading, Timed};
use crate::dice::Dice;
use crate::flat;
use crate::setup::{ModuleSpec, Setup};

pub(super) fn actions(dice: &mut Dice, setup: &Setup, most: usize) -> Vec<Timed> {
    let count = dice.count(0, most as u64);
    // Half of a history is about one module: actions that meet find more faults than actions on different modules.
    let favourite = dice.pick(&setup.modules).clone();
    (0..count)
        .map(|_| Timed {
            after: pause(dice),
            action: action(dice, setup, &favourite),
        })
        .collect()
}

/// Mostly short, so that races occur; sometimes long enough for everything to come to rest.
fn pause(dice: &mut Dice) -> u64 {
    match dice.between(0, 10) {
        0..=3 => dice.between(0, 300),
        4..=6 => dice.between(0, 5_000),
        7..=8 => dice.between(0, 40_000),
        _ => dice.between(0, 240_000),
    }
}

fn action(dice: &mut Dice, setup: &Setup, favourite: &ModuleSpec) -> Action {
    let module = if dice.chance(50) {
        favourite.clone()
    } else {
        dice.pick(&setup.modules).clone()
    };
    match dice.between(0, 135) {
        0..=33 => edit(dice, &module),
        34..=36 => Action::DeleteConfigMap,
        130..=132 => Action::DeleteState,
        133..=134 => {
            let names: Vec<&str> = setup.modules.iter().map(|module| module.name.as_str()).collect();
            let data = if dice.chance(50) {
                BTreeMap::from([("global".to_owned(), "{}\n".to_owned())])
            } else {
                config(dice, &names)
            };
            Action::MakeConfigMap { data }
        }
        37..=41 => {
            let names: Vec<&str> = setup.modules.iter().map(|module| module.name.as_str()).collect();
            Action::ApplyConfigMap {
                data: config(dice, &names),
            }
        }
        42..=63 => Action::Fault {
            what: fault(dice, setup, &module),
            times: u32::try_from(dice.between(1, 4)).unwrap_or(1),
        },
        64..=67 => Action::WatchDelay(*dice.pick(&[0, 5, 200, 3_000, 20_000])),
        68..=70 => Action::Coalesce,
        71..=72 => Action::Redeliver,
        73..=75 => Action::Remove(module.name),
        76..=77 => Action::Restore(module.name),
        78..=79 => Action::Alter {
            module: module.name,
            values: values(dice),
            enabled: [Some(true), Some(false), None][dice.count(0, 2)],
            broken: dice.chance(15),
        },
        80..=82 => Action::Misread(misreading(dice, setup)),
        83..=84 => Action::Reread(dice.chance(60).then(|| misreading(dice, setup))),
        85..=86 => {
            let name = if dice.chance(30) {
                module.name
            } else {
                (*dice.pick(&STRAYS)).to_owned()
            };
            Action::Foreign(name)
        }
        87..=95 => Action::Kill,
        96..=125 => Action::Object {
            kind: (*dice.pick(&KINDS)).to_owned(),
            name: (*dice.pick(&["a", "b", "c"])).to_owned(),
            gone: dice.chance(25),
        },
        _ => Action::Shutdown,
    }
}

fn edit(dice: &mut Dice, module: &ModuleSpec) -> Action {
    let (key, global) = match dice.between(0, 10) {
        0..=2 => ("global".to_owned(), true),
        3..=5 => (format!("{}Enabled", module.key()), false),
        _ => (module.key(), false),
    };
    let flag = key.ends_with("Enabled");
    let text = match dice.between(0, 10) {
        0..=1 => None,
        2 if flag => Some("maybe".to_owned()),
        2 if global => Some("k0: [1".to_owned()),
        2 => Some((*dice.pick(&["k0: [1", "7", ""])).to_owned()),
        _ if flag => Some(dice.chance(50).to_string()),
        _ => {
            let mut section = values(dice);
            section.insert((*dice.pick(&KEYS)).to_owned(), number(dice));
            Some(flat::write(&section))
        }
    };
    Action::Edit { key, text }
}

fn fault(dice: &mut Dice, setup: &Setup, module: &ModuleSpec) -> String {
    let name = &module.name;
    match dice.between(0, 22) {
        0..=4 => format!("helm/{name}"),
        5..=6 => format!("delete/{name}"),
        7 => format!("delete/{}", dice.pick(&STRAYS)),
        8..=9 => format!("script/{name}"),
        10..=11 => format!("configure/{name}"),
        12 if !module.hooks.is_empty() => format!("watch/{name}/{}", dice.pick(&module.hooks).name),
        13..=14 if !module.hooks.is_empty() => format!("hook/{name}/{}", dice.pick(&module.hooks).name),
        12..=15 if !setup.global_hooks.is_empty() => format!("hook/global/{}", dice.pick(&setup.global_hooks).name),
        16 => "list".to_owned(),
        17 => "load-state".to_owned(),
        18 => "save-state".to_owned(),
        19 => "configure/global".to_owned(),
        20..=21 => format!("crds/{name}"),
        _ => "save-config".to_owned(),
    }
}

fn misreading(dice: &mut Dice, setup: &Setup) -> Misreading {
    if dice.chance(35) {
        return Misreading::Empty;
    }
    let lost = setup
        .modules
        .iter()
        .filter(|_| dice.chance(50))
        .map(|module| module.name.clone());
    Misreading::Incomplete(lost.collect())
}
