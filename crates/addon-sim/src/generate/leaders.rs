//! Several replicas: the operator is a standby for a while, and now and then another replica takes over.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In a sixth of all worlds, also without modules, elects leaders and deposes the operator now and then.
pub(super) fn elect(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if !dice.chance(16) {
        return;
    }
    setup.elected = true;
    for _ in 0..dice.count(0, 4) {
        insert(dice, actions, Action::Depose);
    }
}
