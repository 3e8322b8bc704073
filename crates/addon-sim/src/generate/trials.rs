//! A version on trial, which passes or not, and may be killed before the verdict.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::trial::{Outcome, TrialSpec};

/// In an eighth of all worlds with modules, puts a version on trial.
pub(super) fn begin(dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    if setup.alone || !dice.chance(12) {
        return;
    }
    let with_crds = setup.modules.iter().filter(|module| module.crds);
    setup.trial = Some(TrialSpec {
        outcome: *dice.pick(&[
            Outcome::Passed,
            Outcome::Passed,
            Outcome::Failed,
            Outcome::Unclear,
            Outcome::Void,
        ]),
        other_crds: with_crds
            .filter(|_| dice.chance(50))
            .map(|module| module.name.clone())
            .collect(),
    });
    // Without this action the simulated judge rules as soon as no work fails any more.
    if dice.chance(70) {
        insert(dice, actions, Action::Judge);
    }
    if dice.chance(30) {
        insert(dice, actions, Action::Kill);
    }
}
