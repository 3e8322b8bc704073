//! The ways of the trial of this version: modules and sections that wait for its end.

use channel_core::trial::record::Ruling;
use names::ModuleName;

use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Notice;
use crate::operator::task::Lane;

impl Operator {
    /// Makes a module wait for the end of the trial, because its CRDs must not be changed before that end.
    pub(super) fn hold_for_crds(&mut self, name: &ModuleName, crds: &[String]) {
        let reason = format!(
            "this version of the operator is on trial, and does not change before it has passed: {}",
            crds.join(", ")
        );
        self.hold_for_trial(name, reason);
    }

    /// Makes a module wait for the end of the trial.
    pub(super) fn hold_for_trial(&mut self, name: &ModuleName, reason: String) {
        let Some(unit) = self.modules.get_mut(name) else { return };
        unit.wait_for_trial(reason.clone());
        self.cx.tell(Notice::ModuleWaitsForTrial {
            module: name.clone(),
            reason,
        });
    }

    /// Ends the run at the head of a lane, because its module waits for the end of the trial and not for a retry.
    pub(super) fn end_run_for_trial(&mut self, lane: &Lane, name: &ModuleName, crds: &[String]) {
        self.lanes.succeeded(lane);
        self.lanes.finish(&self.cx, lane);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.drop_run();
        }
        self.apply_what_nothing_holds(name);
        self.hold_for_crds(name, crds);
    }

    /// Puts back or forgets the sections that hooks saved on trial, once the ruling is known and no save is under way.
    pub(super) fn settle_sections(&mut self) {
        if self.probation.settles_by().is_some() && !self.commits.are_saving() {
            self.run_chore(Chore::SettleSections);
        }
    }

    /// Whether the first converge has to wait until sections are put back. It waits for one attempt only: the write may
    /// be refused, and other modules must go on.
    pub(super) fn awaits_sections(&self) -> bool {
        let puts_back = match self.probation.settles_by() {
            Some(Ruling::Failed | Ruling::Unclear | Ruling::Void) => true,
            Some(Ruling::Passed) | None => false,
        };
        puts_back && self.chores.is_first_try(Chore::SettleSections)
    }
}
