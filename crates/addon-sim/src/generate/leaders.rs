//! Several of us, of whom one leads: it stands by for a while, and now and then another one takes over.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// A sixth of all worlds, hooks alone among them.
pub(super) fn elect(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if !dice.chance(16) {
        return;
    }
    setup.elected = true;
    for _ in 0..dice.count(0, 4) {
        insert(dice, actions, Action::Depose);
    }
}
