//! Hooks that answer the API server, and its questions, added to a world and its history, which do not change otherwise.

use super::Setup;
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::{Asks, HookSpec, Webhook};
use crate::world::UNSOUND;

/// Few names, so that several hooks want the same one.
const SUBJECTS: [&str; 3] = ["pod", "claim", "thing"];

/// In a third of all worlds, adds webhooks to hooks, and questions of the API server.
pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if !dice.chance(33) {
        return;
    }
    setup.review_slots = dice.count(1, 3);
    answering(dice, &mut setup.global_hooks, 30);
    for module in &mut setup.modules {
        answering(dice, &mut module.hooks, 45);
    }
    let hooks = setup.modules.iter().flat_map(|module| &module.hooks);
    if hooks.chain(&setup.global_hooks).all(|hook| hook.webhooks.is_empty()) {
        return;
    }
    if dice.chance(20) {
        setup
            .faults
            .insert("webhooks".to_owned(), u32::try_from(dice.between(1, 4)).unwrap_or(1));
    }
    for _ in 0..dice.count(1, 12) {
        let action = if dice.chance(6) {
            Action::Fault {
                what: "webhooks".to_owned(),
                times: 1,
            }
        } else {
            question(dice)
        };
        insert(dice, actions, action);
    }
}

/// Now and then a program changes the published webhooks.
pub(super) fn touch(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    let hooks = setup.modules.iter().flat_map(|module| &module.hooks);
    if hooks.chain(&setup.global_hooks).all(|hook| hook.webhooks.is_empty()) {
        return;
    }
    for _ in 0..dice.count(0, 4) {
        let takes = dice.chance(70);
        insert(dice, actions, Action::TouchWebhooks { takes });
    }
}

/// In a quarter of all worlds with modules edits of the `ConfigMap` are judged before they are made.
pub(super) fn want(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(25) {
        return;
    }
    setup.edits = true;
    for _ in 0..dice.count(1, 8) {
        let key = dice.pick(&setup.modules).key();
        let (sound, unsound) = match dice.between(0, 3) {
            0 => (("global".to_owned(), "k0: 1"), ("global".to_owned(), UNSOUND[0])),
            1 => ((key.clone(), "k0: 1"), (key, UNSOUND[1])),
            _ => (
                (format!("{key}Enabled"), "false"),
                (format!("{key}Enabled"), UNSOUND[2]),
            ),
        };
        let (key, text) = if dice.chance(50) { sound } else { unsound };
        let text = text.to_owned();
        let action = if dice.chance(10) {
            Action::Fault {
                what: "judge".to_owned(),
                times: 1,
            }
        } else {
            let within = *dice.pick(&[1, 3, 3]);
            Action::Want { key, text, within }
        };
        insert(dice, actions, action);
    }
}

fn answering(dice: &mut Dice, hooks: &mut Vec<HookSpec>, percent: u64) {
    if dice.chance(percent / 3) {
        // A hook that does nothing else.
        hooks.push(HookSpec {
            name: format!("hooks/h{}.sh", hooks.len()),
            slow: dice.chance(20),
            webhooks: vec![webhook(dice, 0)],
            ..HookSpec::default()
        });
    }
    for hook in hooks {
        if dice.chance(percent) {
            for index in hook.webhooks.len()..dice.count(0, 2) {
                hook.webhooks.push(webhook(dice, index));
            }
        }
    }
}

/// Makes a binding. The names of one hook's bindings differ.
fn webhook(dice: &mut Dice, index: usize) -> Webhook {
    let asks = match dice.between(0, 4) {
        0 | 1 => Asks::Validating,
        2 => Asks::Mutating,
        _ => *dice.pick(&[
            Asks::Converting(1, 2),
            Asks::Converting(2, 3),
            Asks::Converting(3, 1),
            Asks::Converting(1, 3),
        ]),
    };
    let subject = dice.pick(&SUBJECTS);
    Webhook {
        asks,
        subject: if index == 0 {
            (*subject).to_owned()
        } else {
            format!("{subject}-{index}")
        },
        timeout: dice.chance(20).then(|| dice.between(1, 4)),
        meddles: dice.chance(10),
    }
}

fn question(dice: &mut Dice) -> Action {
    Action::Ask {
        which: dice.between(0, 12),
        times: if dice.chance(30) { dice.between(2, 7) } else { 1 },
        within: *dice.pick(&[1, 3, 10, 10, 30]),
    }
}

/// Inserts an action into the history without moving the others in time. Returns its place.
pub(super) fn insert(dice: &mut Dice, actions: &mut Vec<Timed>, action: Action) -> usize {
    let place = dice.count(0, actions.len() as u64);
    let after = match actions.get_mut(place) {
        Some(next) => {
            let after = dice.between(0, next.after + 1);
            next.after -= after;
            after
        }
        None => dice.between(0, 20_000),
    };
    actions.insert(place, Timed { after, action });
    place
}
