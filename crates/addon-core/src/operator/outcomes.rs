//! The ways of outcomes: each goes to the part of the operator that its ticket names.
//!
//! Must never decide: that is done where the outcome is wanted.

use std::time::Duration;

use super::Operator;
use super::event::Finished;
use super::jobs::Chore;
use super::task::Lane;
use super::ticket::{AskFor, AtHead, RunFor, Ticket, VetFor, WatchFor};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::name::HookName;

impl Operator {
    /// A job ended. One that is not known changes nothing.
    pub(super) fn job_finished(&mut self, finished: Finished) {
        let Some(started) = self.jobs.end(finished.id()) else {
            return;
        };
        let took = self.cx.now.tick - started;
        match finished {
            Finished::StateLoaded(_, result) => self.chore_finished(Chore::LoadState, result, Self::state_loaded),
            Finished::StateSaved(_, result) => self.chore_finished(Chore::SaveState, result, Self::state_saved),
            Finished::ValuesFilesSaved(_, result) => {
                self.chore_finished(Chore::SaveValuesFiles, result, |this, ()| this.sources.saved());
            }
            Finished::DirectoriesRead(_, result) => {
                let result = result.and_then(|outline| self.rereading.hear(outline));
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
            Finished::HookRan(ticket, result) => match ticket.into_wanted_by() {
                RunFor::Head(AtHead(lane)) => self.hook_finished(&lane, result),
                RunFor::Review(id) => self.review_ran(id, result, took),
            },
            Finished::CrdsEnsured(ticket, result) => self.head_finished(ticket, result, Self::crds_ensured),
            Finished::ConversionsEnsured(ticket, result) => {
                self.head_finished(ticket, result, Self::conversions_ensured);
            }
            Finished::ReleaseSynced(ticket, result) => self.head_finished(ticket, result, |this, lane, synced| {
                this.release_synced(lane, &synced, took);
            }),
            Finished::ReleaseDeleted(ticket, result) => {
                self.head_finished(ticket, result, |this, lane, ()| this.release_deleted(lane));
            }
            Finished::WebhooksPublished(_, result) => self.published(result),
            Finished::EditJudged(ticket, result) => self.edit_judged(ticket.into_wanted_by(), result),
            Finished::ScriptAnswered(ticket, result) => self.script_finished(&ticket.into_wanted_by(), result),
            Finished::ConfigSaved(ticket, result) => self.save_finished(&ticket.into_wanted_by(), result),
            Finished::Vetted(ticket, result) => match ticket.into_wanted_by() {
                VetFor::Patches(owner) => self.patches_vetted(&owner, result),
                VetFor::Reading => self.reading_vetted(result),
            },
        }
    }

    /// A job of the head of a lane ended that is no hook; `take` takes in what it found.
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

    /// Hooks were asked for their configuration.
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

    /// The start of a hook's monitors ended.
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
}
