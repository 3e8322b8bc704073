//! Charts whose files are missing for a while, without an error.

use super::Setup;
use super::reviews::insert;
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In a fifth of the generated cases with charts, hides files of charts for a while. A start mostly follows, which reads
/// all charts.
pub(super) fn add(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    let charts: Vec<&str> = setup
        .modules
        .iter()
        .filter(|module| module.chart)
        .map(|module| module.name.as_str())
        .collect();
    if setup.alone || charts.is_empty() || !dice.chance(20) {
        return;
    }
    for _ in 0..dice.count(1, 3) {
        let half = Action::Fault {
            what: format!("half/{}", dice.pick(&charts)),
            times: u32::try_from(dice.between(1, 5)).unwrap_or(1),
        };
        let place = insert(dice, actions, half);
        if dice.chance(70) {
            let (after, action) = (0, Action::Kill);
            actions.insert(place + 1, Timed { after, action });
        }
    }
}
