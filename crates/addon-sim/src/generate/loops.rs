//! Hooks that change a value in every run of their module, so that each run causes the next one. Added to a world.

use super::Setup;
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::{Deed, HookSpec};

/// In some cases, adds a restless hook to a module or after all modules.
pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(12) {
        return;
    }
    let is_global = dice.chance(30);
    let index = dice.count(0, setup.modules.len() as u64 - 1);
    let (hooks, stage) = if is_global {
        (&mut setup.global_hooks, "afterAll")
    } else {
        (&mut setup.modules[index].hooks, "afterHelm")
    };
    let number = hooks.len();
    hooks.push(HookSpec {
        name: format!("hooks/h{number}.sh"),
        stages: [(stage.to_owned(), 1)].into(),
        does: vec![Deed::Tick {
            key: format!("t{number}"),
        }],
        ..HookSpec::default()
    });
    // A calm time, in which nothing but the hook causes runs.
    let action = Action::Edit {
        key: "unknown".to_owned(),
        text: Some(dice.between(0, 9).to_string()),
    };
    let after = dice.between(60_000, 400_000);
    actions.push(Timed { after, action });
}
