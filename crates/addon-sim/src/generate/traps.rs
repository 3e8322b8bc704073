//! Edits that come while the converge of another edit runs its hooks before all modules.

use super::reviews::insert;
use super::{KINDS, Setup, number};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::flat::{self, Flat};
use crate::setup::HookSpec;

/// In a fifth of the generated cases in which a module depends on another, adds edits during the hooks before all modules.
pub(super) fn set(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let pairs: Vec<(String, String)> = setup
        .modules
        .iter()
        .flat_map(|module| module.needs.iter().map(|need| (need.clone(), module.key())))
        .collect();
    if setup.alone || pairs.is_empty() || !dice.chance(20) {
        return;
    }
    wait_before_all(dice, &mut setup.global_hooks);
    for _ in 0..dice.count(1, 4) {
        let (need, needy) = dice.pick(&pairs).clone();
        let Some(need) = setup.modules.iter().find(|module| module.name == need) else {
            continue;
        };
        let flag = |on: bool| Action::Edit {
            key: format!("{}Enabled", need.key()),
            text: Some(on.to_string()),
        };
        let on = dice.chance(30);
        let place = insert(dice, actions, flag(on));
        for _ in 0..dice.count(1, 2) {
            let action = match dice.between(0, 10) {
                0..=5 => Action::Edit {
                    key: needy.clone(),
                    text: Some(flat::write(&Flat::from([("k0".to_owned(), number(dice))]))),
                },
                6..=7 => flag(dice.chance(50)),
                _ => Action::Object {
                    kind: (*dice.pick(&KINDS)).to_owned(),
                    name: "a".to_owned(),
                    gone: false,
                },
            };
            let (after, action) = (0, Action::Ambush(Box::new(action)));
            actions.insert(place, Timed { after, action });
        }
    }
}

/// Makes sure that there is a hook before all modules, which mostly takes long.
fn wait_before_all(dice: &mut Dice, hooks: &mut Vec<HookSpec>) {
    let slow = dice.chance(70);
    if let Some(hook) = hooks.iter_mut().find(|hook| hook.stages.contains_key("beforeAll")) {
        hook.slow |= slow;
        return;
    }
    hooks.push(HookSpec {
        name: format!("hooks/h{}.sh", hooks.len()),
        stages: [("beforeAll".to_owned(), 1)].into(),
        slow,
        ..HookSpec::default()
    });
}
