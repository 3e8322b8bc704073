//! The ways of outcomes: each outcome goes to the part of the operator that its ticket names.
//!
//! Must never decide anything: the part that wants the outcome does.

use std::time::Duration;

use names::{HookName, ModuleName, Owner};

use crate::failure::{Class, Failure};
use crate::hook::config::HookConfig;
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::{Effect, Notice};
use crate::operator::event::{Finished, HookRan, ReviewId, SavedState, ScriptAnswer, Settled};
use crate::operator::policy::Mode;
use crate::operator::task::Lane;
use crate::operator::ticket::{AskFor, AtHead, RunFor, Ticket, VetFor, WatchFor};
use crate::operator::verdicts::Inputs;
use crate::review::response::AdmissionResponse;

impl Operator {
    /// Takes the end of a job. An unknown job changes nothing.
    pub(super) fn job_finished(&mut self, finished: Finished) {
        let Some(started) = self.jobs.end(finished.id()) else {
            return;
        };
        let took = self.cx.now.tick - started;
        match finished {
            Finished::StateLoaded(_, result) => self.chore_finished(Chore::LoadState, result, Self::state_loaded),
            Finished::StateSaved(_, result) => self.chore_finished(Chore::SaveState, result, Self::state_saved),
            Finished::ValuesFilesSaved(_, result) => {
                self.chore_finished(Chore::SaveValuesFiles, result, |this, ()| {
                    this.directories.sources_mut().saved();
                });
            }
            Finished::GivenSaved(_, result) => {
                self.chore_finished(Chore::SaveGiven, result, |this, ()| this.stand_ins.saved());
            }
            Finished::DirectoriesRead(_, result) => {
                let result = result.and_then(|outline| self.directories.rereading_mut().hear(outline));
                self.chore_finished(Chore::ReadDirectories, result, |_, ()| {});
            }
            Finished::ReleasesListed(_, result) => {
                self.chore_finished(Chore::ListReleases, result, |this, found| this.removal.listed(found));
            }
            Finished::ReleasesWatched(_, result) => self.chore_finished(Chore::WatchReleases, result, |_, ()| {}),
            Finished::SectionsSettled(_, result) => {
                self.chore_finished(Chore::SettleSections, result, Self::sections_settled);
            }
            Finished::HooksConfigured(ticket, result) => self.configure_finished(ticket, result),
            Finished::MonitorsStarted(ticket, result) => self.watch_finished(ticket, result, took),
            Finished::HookRan(ticket, result) => match ticket.wanted_by() {
                RunFor::Head(AtHead(lane)) => self.hook_finished(&self.lanes.lane_of(ticket.id(), lane), result),
                RunFor::Review(id) => self.review_ran(*id, result, took),
            },
            Finished::CrdsEnsured(ticket, result) => self.head_finished(ticket, result, Self::crds_ensured),
            Finished::ConversionsEnsured(ticket, result) => {
                self.head_finished(ticket, result, Self::conversions_ensured);
            }
            Finished::ReleaseSynced(ticket, result) => self.head_finished(ticket, result, |this, lane, synced| {
                this.release_synced(lane, &synced, took);
            }),
            Finished::ReleaseDeleted(ticket, result) => {
                self.head_finished(ticket, result, |this, lane, reworked| {
                    this.release_deleted(lane, reworked);
                });
            }
            Finished::WebhooksPublished(_, result) => self.reviews.published(&mut self.cx, result),
            Finished::EditJudged(ticket, result) => self.edit_judged(ticket.into_wanted_by(), result),
            Finished::ScriptAnswered(ticket, result) => self.script_answered(&ticket.into_wanted_by(), result),
            Finished::ConfigSaved(ticket, result) => self.save_finished(&ticket.into_wanted_by(), result),
            Finished::Vetted(ticket, result) => match ticket.into_wanted_by() {
                VetFor::Patches(owner) => self.patches_vetted(&owner, result),
                VetFor::Reading => {
                    self.reading_vetted(result);
                    self.advance_commits();
                }
            },
        }
    }

    fn review_ran(&mut self, id: ReviewId, result: Result<HookRan, Failure>, took: Duration) {
        let is_stopping = self.standing.is_stopping();
        self.reviews.ran(&mut self.cx, id, result, took, is_stopping);
    }

    fn edit_judged(&mut self, id: ReviewId, result: Result<AdmissionResponse, Failure>) {
        self.reviews.edits_mut().judged(&mut self.cx, id, result);
    }

    fn script_answered(&mut self, module: &ModuleName, result: Result<ScriptAnswer, Failure>) {
        let inputs = Inputs {
            modules: &self.modules,
            config: &self.config,
            supply: &self.supply,
            values: &self.values,
        };
        let failure = self.verdicts.script_finished(&mut self.cx, inputs, module, result);
        match failure {
            Some(failure) => {
                let judged = self.supply.failed(module, &failure);
                self.judge_files(module, judged);
            }
            None => self.settle_files(module),
        }
    }

    /// Takes the end of a job that a lane's head started and that runs no hook. `take` handles the job's result.
    fn head_finished<T>(
        &mut self,
        ticket: Ticket<AtHead>,
        result: Result<T, Failure>,
        take: impl FnOnce(&mut Self, &Lane, T),
    ) {
        let AtHead(lane) = ticket.into_wanted_by();
        match result {
            Ok(found) => take(self, &lane, found),
            Err(failure) => self.lane_failed(&lane, failure),
        }
    }

    /// Takes the configurations of hooks.
    fn configure_finished(&mut self, ticket: Ticket<AskFor>, result: Result<Vec<(HookName, HookConfig)>, Failure>) {
        let id = ticket.id();
        let lane = match ticket.into_wanted_by() {
            AskFor::Start => {
                return self.chore_finished(Chore::ConfigureGlobalHooks, result, Self::global_hooks_configured);
            }
            AskFor::Head(AtHead(lane)) => lane,
            AskFor::Warmth(module) => match self.warmth.awaited_by(id) {
                Some(lane) => lane,
                None => return self.module_answered(&module, result),
            },
        };
        match result {
            Ok(hooks) => self.module_configured(&lane, hooks),
            Err(failure) => self.lane_failed(&lane, failure),
        }
    }

    /// Takes the end of a start of monitors.
    fn watch_finished(&mut self, ticket: Ticket<WatchFor>, result: Result<(), Failure>, took: Duration) {
        let id = ticket.id();
        match ticket.into_wanted_by() {
            WatchFor::Head(AtHead(lane), hook) => self.monitors_finished(&lane, &hook, result, took),
            WatchFor::Warmth(hook) => match self.warmth.awaited_by(id) {
                Some(lane) => self.monitors_finished(&lane, &hook, result, took),
                None => self.warmed(hook, &result),
            },
        }
    }

    /// Takes the end of a chore's job. `take` handles its result.
    fn chore_finished<T>(&mut self, chore: Chore, result: Result<T, Failure>, take: impl FnOnce(&mut Self, T)) {
        match result {
            Ok(found) => {
                take(self, found);
                self.chores.done(chore);
                if chore == Chore::ReadDirectories {
                    self.directories_confirmed();
                }
            }
            Err(failure) if self.cx.policy.mode == Mode::Hooks => self.give_up(failure),
            Err(failure) => self.chore_failed(chore, failure),
        }
    }

    fn chore_failed(&mut self, chore: Chore, failure: Failure) {
        match chore {
            Chore::SaveState if failure.class == Class::Refused => self.config.not_saved(),
            Chore::SaveValuesFiles if failure.class == Class::Refused => self.directories.sources_mut().not_saved(),
            Chore::SaveGiven if failure.class == Class::Refused => self.stand_ins.not_saved(),
            _ => {}
        }
        self.chores.failed(&mut self.cx, chore, failure);
    }

    /// Ends the process, because the configuration of a hook is missing. In the mode without modules the operator does
    /// not start then.
    fn give_up(&mut self, failure: Failure) {
        self.standing.stop_now(&self.cx);
        self.cx.effect(Effect::GiveUp(failure));
    }

    fn state_loaded(&mut self, state: SavedState) {
        self.probation.take_noted(state.trial_sections.keys());
        self.startup.state_loaded(state);
    }

    fn state_saved(&mut self, left_out: Vec<String>) {
        self.config.saved();
        self.config.sections_left_out(&mut self.cx, left_out);
    }

    fn sections_settled(&mut self, settled: Settled) {
        self.probation.settled();
        let Settled { put_back, edited, read } = settled;
        if !put_back.is_empty() || !edited.is_empty() {
            self.cx.tell(Notice::SectionsPutBack { keys: put_back, edited });
        }
        if let Some(read) = read {
            self.config_read(read);
        }
    }

    fn global_hooks_configured(&mut self, hooks: Vec<(HookName, HookConfig)>) {
        self.hooks_configured(&Owner::Global, hooks);
        if self.standing.is_standby() {
            self.global_hooks_answered();
        }
    }

    /// Takes the configurations of a module's hooks, for a run or for a removal.
    fn module_configured(&mut self, lane: &Lane, hooks: Vec<(HookName, HookConfig)>) {
        let Some(name) = self.lanes.module_at(lane) else { return };
        self.hooks_configured(&Owner::Module(name.clone()), hooks);
        self.modules.step_succeeded(&name);
        self.lanes.resume(lane);
    }
}
