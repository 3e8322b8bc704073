//! Modules that return from upgrades that make them unhealthy.

use super::Setup;
use crate::dice::Dice;

/// In a third of the generated cases, most modules return.
pub(super) fn add(dice: &mut Dice, setup: &mut Setup) {
    if setup.alone || !dice.chance(33) {
        return;
    }
    for module in setup.modules.iter_mut().filter(|module| module.chart) {
        module.returns = dice.chance(70);
    }
}
