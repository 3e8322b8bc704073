//! Slow enabled scripts, hooks and helm that hang, and charts with conversion webhooks, added to a world and its history.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::ModuleSpec;

pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone {
        return;
    }
    if dice.chance(30) {
        for module in setup.modules.iter_mut().filter(|module| module.script.is_some()) {
            module.slow_script = dice.chance(60);
        }
    }
    if dice.chance(30) {
        convert(dice, &mut setup.modules, actions);
    }
}

/// Some charts have conversion webhooks, whose publication now and then fails.
fn convert(dice: &mut Dice, modules: &mut [ModuleSpec], actions: &mut Vec<Timed>) {
    for module in modules.iter_mut().filter(|module| module.chart) {
        module.conversions = dice.chance(60);
        if module.conversions && dice.chance(40) {
            let what = format!("conversions/{}", module.name);
            let times = u32::try_from(dice.between(1, 4)).unwrap_or(1);
            insert(dice, actions, Action::Fault { what, times });
        }
    }
}

/// Some hooks hang, and some charts, too, so that other runs need their slots and other modules their turn.
pub(super) fn hang(dice: &mut Dice, setup: &mut Setup) {
    if setup.alone || !dice.chance(25) {
        return;
    }
    setup.patience = Some(*dice.pick(&[5, 20, 60]));
    for hook in &mut setup.global_hooks {
        hook.hangs = dice.chance(20);
    }
    for module in &mut setup.modules {
        module.hangs = module.chart && dice.chance(15);
        for hook in &mut module.hooks {
            hook.hangs = dice.chance(30);
        }
    }
}
