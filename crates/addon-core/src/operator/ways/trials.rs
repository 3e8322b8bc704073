//! The ways of a trial of our version: modules and sections that wait for its end.

use crate::artifact::trial::record::Ruling;
use crate::name::ModuleName;
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Notice;
use crate::operator::task::Lane;

impl Operator {
    /// A module waits with its CRDs for the end of the trial.
    pub(super) fn hold_for_crds(&mut self, name: &ModuleName, crds: &[String]) {
        let reason = format!(
            "this version of the operator is on trial, and does not change before it has passed: {}",
            crds.join(", ")
        );
        self.hold_for_trial(name, reason);
    }

    /// A module waits for the end of the trial.
    pub(super) fn hold_for_trial(&mut self, name: &ModuleName, reason: String) {
        let Some(unit) = self.modules.get_mut(name) else { return };
        unit.wait_for_trial(reason.clone());
        self.cx.tell(Notice::ModuleWaitsForTrial {
            module: name.clone(),
            reason,
        });
    }

    /// The run at the head of a lane ends here, as its module waits for something else than a next try.
    pub(super) fn end_run_for_trial(&mut self, lane: &Lane, name: &ModuleName, crds: &[String]) {
        self.lanes.succeeded(lane);
        self.lanes.finish(&self.cx, lane);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.drop_run();
        }
        self.apply_what_nothing_holds(name);
        self.hold_for_crds(name, crds);
    }

    /// Puts back or forgets what hooks saved on trial, as soon as it is known which, and nothing of it is on its way.
    pub(super) fn settle_sections(&mut self) {
        if self.probation.settles_by().is_some() && !self.commits.are_saving() {
            self.run_chore(Chore::SettleSections);
        }
    }

    /// The first converge does not begin with sections that are about to be put back. One attempt is waited for: they may be
    /// refused, and the others are to go on.
    pub(super) fn awaits_sections(&self) -> bool {
        let puts_back = match self.probation.settles_by() {
            Some(Ruling::Failed | Ruling::Unclear | Ruling::Void) => true,
            Some(Ruling::Passed) | None => false,
        };
        puts_back && self.chores.is_first_try(Chore::SettleSections)
    }
}
