//! People who change their minds: a module is left out of all sources, and wanted again. And hooks that set another value
//! in every run, so that runs of modules follow each other. Added to a world and its history.

use super::reviews::insert;
use super::{KINDS, Setup, number};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::flat::{self, Flat};
use crate::setup::{Deed, HookSpec, Schedule, Watch};

pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone {
        return;
    }
    if dice.chance(25) {
        for _ in 0..dice.count(1, 3) {
            change_of_mind(dice, setup, actions);
        }
    }
    if dice.chance(25) {
        restless(dice, setup, actions);
    }
}

/// Removes a module's keys from the `ConfigMap`, and puts them back before its removal has ended.
fn change_of_mind(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let index = dice.count(0, setup.modules.len() as u64 - 1);
    let module = &mut setup.modules[index];
    if dice.chance(70) {
        module.enabled = None;
    }
    let (key, flag) = (module.key(), format!("{}Enabled", module.key()));
    let section = flat::write(&Flat::from([("k0".to_owned(), number(dice))]));
    let steps = [
        (flag.clone(), None, 100),
        (key.clone(), None, 100),
        (key.clone(), Some(section.clone()), 3_000),
        (flag.clone(), Some("true".to_owned()), 3_000),
    ];
    let mut place = insert(
        dice,
        actions,
        Action::Edit {
            key,
            text: Some(section),
        },
    );
    let on = Action::Edit {
        key: flag,
        text: Some("true".to_owned()),
    };
    let calm = dice.between(0, 40_000);
    actions.insert(place, Timed { after: 0, action: on });
    place += 2;
    for (index, (key, text, most)) in steps.into_iter().enumerate() {
        let after = dice.between(0, most) + if index == 0 { calm } else { 0 };
        let action = Action::Edit { key, text };
        actions.insert(place + index, Timed { after, action });
    }
}

/// Adds a hook that runs beside its module. Each of its runs makes the module run again.
fn restless(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let index = dice.count(0, setup.modules.len() as u64 - 1);
    let hooks = &mut setup.modules[index].hooks;
    let kind = (*dice.pick(&KINDS)).to_owned();
    let number = hooks.len();
    hooks.push(HookSpec {
        name: format!("hooks/h{number}.sh"),
        schedules: vec![Schedule {
            crontab: "*/3 * * * *".to_owned(),
            queue: Some("q-one".to_owned()),
            allow_failure: false,
        }],
        watches: vec![Watch {
            kind: kind.clone(),
            queue: dice.chance(80).then(|| (*dice.pick(&["q-one", "q-two"])).to_owned()),
            ..Watch::default()
        }],
        does: vec![Deed::Tick {
            key: format!("t{number}"),
        }],
        ..HookSpec::default()
    });
    for _ in 0..dice.count(2, 10) {
        let action = Action::Object {
            kind: kind.clone(),
            name: (*dice.pick(&["a", "b"])).to_owned(),
            gone: dice.chance(10),
        };
        let is_ambush = dice.chance(40);
        let action = if is_ambush {
            Action::Ambush(Box::new(action))
        } else {
            action
        };
        insert(dice, actions, action);
    }
}
