//! People who change a module's files and ask that its directory is read again: the module begins a new life.

use super::reviews::insert;
use super::{Setup, values};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::ModuleSpec;

/// In a quarter of all worlds with modules, has directories read again: mostly changed ones, and often several times.
pub(super) fn begin(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(25) {
        return;
    }
    let favourite = dice.pick(&setup.modules).name.clone();
    for _ in 0..dice.count(1, 6) {
        let module = if dice.chance(60) {
            favourite.clone()
        } else {
            dice.pick(&setup.modules).name.clone()
        };
        // Files that break their own schema could never be installed.
        let is_free = |spec: &&ModuleSpec| spec.name == module && spec.schema.is_none();
        let is_free = setup.modules.iter().any(|spec| is_free(&spec));
        let change = match dice.between(0, 10) {
            0..=5 if is_free => Some(Action::Alter {
                module: module.clone(),
                values: values(dice),
                enabled: [Some(true), Some(true), Some(false), None][dice.count(0, 3)],
                broken: dice.chance(15),
            }),
            6 => Some(Action::Restore(module.clone())),
            _ => None,
        };
        let place = match change {
            Some(change) => insert(dice, actions, change) + 1,
            None => dice.count(0, actions.len() as u64),
        };
        for nth in 0..dice.count(1, 2) {
            let after = dice.between(0, 400);
            let action = Action::ReadAgain(module.clone());
            actions.insert(place + nth, Timed { after, action });
        }
    }
}
