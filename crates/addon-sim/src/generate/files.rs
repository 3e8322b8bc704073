//! Adds a fault to a world and its history: at a start of the operator the common values file is missing, empty or cut
//! off.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, CommonFile, Timed};
use crate::dice::Dice;

/// In a seventh of all worlds, changes or removes the common values file, mostly shortly before a start.
pub(super) fn lose(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(14) {
        return;
    }
    for module in &mut setup.modules {
        if dice.chance(75) {
            module.enabled = Some(dice.chance(85));
            setup.common.push(module.name.clone());
        }
    }
    for _ in 0..dice.count(1, 4) {
        let left = match dice.between(0, 4) {
            0 => CommonFile::Whole,
            1 => CommonFile::Cut(dice.count(0, setup.common.len() as u64)),
            _ => CommonFile::Gone,
        };
        let place = insert(dice, actions, Action::CommonFile(left));
        if dice.chance(80) {
            let (after, action) = (dice.between(0, 3_000), Action::Kill);
            actions.insert(place + 1, Timed { after, action });
        }
    }
}
