//! A wall clock that is set, added to a history.

use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In a tenth of all worlds, sets the wall clock: a small correction, or a large change.
pub(super) fn set(dice: &mut Dice, actions: &mut Vec<Timed>) {
    if !dice.chance(10) {
        return;
    }
    for _ in 0..dice.count(1, 3) {
        let seconds = *dice.pick(&[-86_400, -3_600, -600, -2, 2, 600, 3_600, 86_400]);
        insert(dice, actions, Action::SetClock(seconds));
    }
}
