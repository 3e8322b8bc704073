//! Writes that succeed and whose answers are lost, so that the operator takes them for failed.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In a fifth of all generated cases, lets the answers of a few writes be lost.
pub(super) fn lose(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(20) {
        return;
    }
    let kinds = ["save-config", "save-state", "save-values-files", "webhooks"];
    let mut writes: Vec<String> = kinds.map(|kind| format!("lost/{kind}")).into();
    for module in &setup.modules {
        writes.extend(["helm", "delete"].map(|kind| format!("lost/{kind}/{}", module.name)));
    }
    let orphans = setup.releases.iter().map(|release| &release.name);
    writes.extend(orphans.map(|release| format!("lost/delete/{release}")));
    for _ in 0..dice.count(1, 4) {
        let what = dice.pick(&writes).clone();
        let times = u32::try_from(dice.between(1, 4)).unwrap_or(1);
        if dice.chance(40) {
            setup.faults.insert(what, times);
        } else {
            insert(dice, actions, Action::Fault { what, times });
        }
    }
}
