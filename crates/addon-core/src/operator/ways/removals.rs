//! The ways of removals: the brake, releases whose modules are gone, and the confirmations of people.

use std::collections::{BTreeSet, VecDeque};

use names::ModuleName;

use crate::module::enabling::Source;
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::converge::Phase;
use crate::operator::effect::{HeldFor, Notice};
use crate::operator::event::TrialStage;
use crate::operator::removal::brake::too_many;
use crate::operator::task::{Lane, Reason, Task};

impl Operator {
    /// Holds removals by silence if there would be too many at once. Must be called before any removal begins.
    pub(super) fn brake(&mut self) {
        // The share of the removals is unknown before the releases were listed.
        if !self.removal.is_listed() {
            return;
        }
        let unspoken = self.certainty().unspoken();
        let brake = self.removal.brake_mut();
        brake.forget(&unspoken, self.cx.now.tick);
        let by_edit = unspoken
            .iter()
            .filter(|name| self.certainty().is_confirmed_by_edit(name));
        let by_edit: BTreeSet<String> = by_edit.cloned().collect();
        self.removal.brake_mut().confirm_at_once(by_edit);
        let (brake, certainty) = (self.removal.brake(), self.certainty());
        let unasked = unspoken.iter().filter(|name| !brake.is_confirmed(name));
        let is_new = |name: &&String| !brake.holds(name) && certainty.is_next(name);
        let new: Vec<String> = unasked.clone().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        let reason = if self.directories.are_complete() {
            let certain = unasked.filter(|name| brake.holds(name) || certainty.is_certain(name));
            let (goes, of) = brake.share(certain, &certainty.all_there());
            if !too_many(goes, of) {
                return;
            }
            HeldFor::Confirmation { goes, of }
        } else {
            HeldFor::Directories
        };
        self.hold_removals(new, reason);
    }

    /// Whether the removals of these modules, whose directories are gone, would be held until a person confirms them.
    pub fn would_hold<'a>(&self, gone: impl IntoIterator<Item = &'a String>) -> bool {
        let there = self.certainty().all_there();
        let goes = gone.into_iter().filter(|name| there.contains(*name)).count();
        too_many(goes, there.len())
    }

    fn hold_removals(&mut self, releases: Vec<String>, reason: HeldFor) {
        self.removal.brake_mut().hold(&releases, reason);
        self.cx.tell(Notice::PurgeHeld { releases, reason });
    }

    /// Counts a begun removal in the brake, unless a source switched the module off.
    pub(super) fn count_removal(&mut self, name: &ModuleName) {
        let verdict = self.verdicts.on(name);
        if verdict.is_some_and(|verdict| verdict.source == Source::Default) {
            self.removal.brake_mut().passes(name.as_str(), self.cx.now.tick);
        }
    }

    /// Asks for another converge if a removal has become certain after the converge that looked at it. True if a
    /// converge was asked for.
    pub(super) fn request_removals(&mut self) -> bool {
        if self.converge.first_took_up() && self.verdicts.is_known() {
            self.brake();
        }
        let nothing = VecDeque::new();
        let planned = match self.converge.phase() {
            None => Some(&nothing),
            // In strict order this phase lasts until all modules have succeeded, and that may depend on this removal.
            Some(Phase::Modules(wave)) if self.cx.policy.strict_order && !self.converge.restarts() => {
                Some(wave.removals())
            }
            Some(_) => None,
        };
        let planned = planned.filter(|_| self.converge.first_took_up() && self.verdicts.is_known());
        let overdue = planned.is_some_and(|planned| {
            let certainty = self.certainty();
            let is_due = |name: &ModuleName| {
                let waits = self.lanes.is_being_deleted(name) || planned.contains(name);
                !waits && certainty.outlived_by(name).is_none()
            };
            certainty.removable().any(is_due)
        });
        let before = self.lanes.ledger();
        if overdue {
            self.request_converge(Reason::RemovalCertain, true);
        }
        self.lanes.ledger() != before || overdue && self.converge.restarts()
    }

    /// Purges the releases of ours whose modules are gone, except held ones. This happens only after the first
    /// converge. Later purges can follow the end of a source whose files never came.
    pub(super) fn purge(&mut self) {
        // No purge while a configuration is lost or this version is on trial. This method is called again after both.
        if !self.config.losses().releases().is_empty() || self.probation.is_on_trial() {
            return;
        }
        if self.config.are_sources_unknown() {
            // Each of the releases may belong to a module that a source names.
            return;
        }
        self.brake();
        let (brake, rereading) = (self.removal.brake(), self.directories.rereading());
        let goes = |release: &&str| !brake.holds(release) && !self.lanes.is_purged(release);
        let orphans = self.certainty().orphans().filter(goes).map(str::to_owned);
        let mut orphans: Vec<String> = orphans.collect();
        if !orphans.is_empty() && !rereading.is_confirmed() {
            self.directories.rereading_mut().have_purge_wait();
            return;
        }
        // The directories lacked these modules at the first reading, and may hold them by now.
        let has_come = |release: &mut String| !brake.is_confirmed(release) && !rereading.confirms_absence(release);
        let come: Vec<String> = orphans.extract_if(.., has_come).collect();
        if !come.is_empty() {
            self.hold_removals(come, HeldFor::Changed);
        }
        for release in orphans.into_iter().rev() {
            self.removal.brake_mut().passes(&release, self.cx.now.tick);
            let lane = Lane::Release(release.clone());
            self.lanes.push(&self.cx, lane, Task::Purge { release });
        }
    }

    /// Confirms the removals that are held now. Other removals do not change, nor does the hold of a trial.
    pub(super) fn confirm_removals(&mut self, names: &BTreeSet<String>) {
        let releases = self.removal.brake_mut().confirm(names);
        if releases.is_empty() || self.standing.is_stopping() {
            return;
        }
        self.cx.tell(Notice::PurgeConfirmed { releases });
        if self.converge.is_first_over() {
            self.purge();
        }
    }

    /// Continues the held modules, because people have decided about the lost configuration.
    pub(super) fn loss_answered(&mut self) {
        self.request_converge(Reason::ConfigChanged, true);
        if self.converge.is_first_over() {
            self.purge();
        }
    }

    /// Takes a person's confirmation that the lost configuration is gone for good.
    pub(super) fn loss_confirmed(&mut self) {
        if self.config.answer_loss(&mut self.cx) {
            self.loss_answered();
        }
    }

    /// Takes the stage of a trial. If it was the trial of this version and is passed, the waiting work goes on.
    pub(super) fn trial_seen(&mut self, stage: TrialStage) {
        if !self.probation.hear(stage) {
            return;
        }
        self.cx.tell(Notice::TrialPassed);
        if self.standing.is_stopping() {
            return;
        }
        let waits = self.modules.iter().any(|unit| unit.turn().waits_for_trial());
        if waits && self.converge.has_begun() {
            self.request_converge(Reason::TrialPassed, true);
        }
        if self.converge.is_first_over() {
            self.purge();
        }
    }

    /// Reads the directories a second time if a removal waits for the second reading.
    pub(super) fn confirm_directories(&mut self) {
        let rereading = self.directories.rereading();
        if rereading.is_confirmed() {
            return;
        }
        if rereading.purge_waits() || self.certainty().some_wait_for_rereading() {
            self.run_chore(Chore::ReadDirectories);
        } else {
            self.chores.give_up(Chore::ReadDirectories);
        }
    }

    /// Takes a second reading of the directories that equals the first.
    pub(super) fn directories_confirmed(&mut self) {
        if self.directories.rereading_mut().end_wait_of_purge() {
            self.purge();
        }
    }
}
