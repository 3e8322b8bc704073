//! A wall clock that is set, laid over a history.

use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// A tenth of all worlds: by little, as one that is put right, or by what it was wrong.
pub(super) fn set(dice: &mut Dice, actions: &mut Vec<Timed>) {
    if !dice.chance(10) {
        return;
    }
    for _ in 0..dice.count(1, 3) {
        let seconds = *dice.pick(&[-86_400, -3_600, -600, -2, 2, 600, 3_600, 86_400]);
        insert(dice, actions, Action::SetClock(seconds));
    }
}
