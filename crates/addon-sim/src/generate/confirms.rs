//! People who confirm held upgrades and a lost configuration.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In worlds that have something to confirm, and now and then in others.
pub(super) fn add(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    if setup.alone {
        return;
    }
    let half = |timed: &Timed| matches!(&timed.action, Action::Fault { what, .. } if what.starts_with("half/"));
    let charts: Vec<String> = setup.modules.iter().map(|module| module.name.clone()).collect();
    if !charts.is_empty() && actions.iter().any(half) {
        for _ in 0..dice.count(0, 3) {
            let release = dice.pick(&charts).clone();
            insert(dice, actions, Action::ConfirmUpgrade(release));
        }
    }
    let loses = actions.iter().any(|timed| timed.action == Action::DeleteState);
    if dice.chance(if loses { 50 } else { 4 }) {
        insert(dice, actions, Action::ConfirmLoss);
    }
}
