//! API discovery that is outdated or lacks a group for a while: charts that use it and watches of its kinds fail
//! together, and nothing else does. Added to a history.

use super::reviews::insert;
use super::{KINDS, Setup};
use crate::action::{Action, Timed};
use crate::dice::Dice;

/// In an eighth of all worlds, lets work that depends on the discovery of one kind fail for a while.
pub(super) fn fail(dice: &mut Dice, setup: &Setup, actions: &mut Vec<Timed>) {
    if !dice.chance(12) {
        return;
    }
    let kind = *dice.pick(&KINDS);
    let owners = setup.modules.iter().map(|module| (module.name.as_str(), &module.hooks));
    let mut jobs = Vec::new();
    for (owner, hooks) in owners.chain([("global", &setup.global_hooks)]) {
        let asks = hooks
            .iter()
            .filter(|hook| hook.watches.iter().any(|watch| watch.kind == kind));
        jobs.extend(asks.map(|hook| format!("watch/{owner}/{}", hook.name)));
    }
    for module in setup.modules.iter().filter(|module| module.chart) {
        let steps = ["helm", "crds", "conversions"].map(|step| format!("{step}/{}", module.name));
        jobs.extend(steps.into_iter().filter(|_| dice.chance(60)));
    }
    let Some(first) = jobs.pop() else { return };
    let times = u32::try_from(dice.between(1, 5)).unwrap_or(1);
    let place = insert(dice, actions, Action::Fault { what: first, times });
    for what in jobs {
        let (after, action) = (0, Action::Fault { what, times });
        actions.insert(place + 1, Timed { after, action });
    }
}
