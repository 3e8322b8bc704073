//! The round that follows each event: it starts everything that can start.

use std::sync::Arc;

use names::HookId;

use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::operator::event::Event;
use crate::operator::modules::Unit;
use crate::operator::policy::Mode;
use crate::operator::schedule;
use crate::operator::task::{Lane, Reason, RunReason, Task};
use crate::operator::verdicts::Inputs;
use crate::operator::verdicts::Round;

impl Operator {
    /// Passes an event to the state machine that it concerns.
    pub(in crate::operator) fn take_event(&mut self, event: Event) {
        match event {
            Event::InventoryChanged(inventory) => self.take_inventory(inventory),
            Event::ModuleRead(edition, origin, found) => self.module_read(edition, origin, *found),
            Event::CopiesRead => self.supply.copies_read(),
            Event::ConfigChanged(read) => self.config_read(read),
            Event::HistoryWentBack => self.config.begin_anew(),
            Event::JobFinished(finished) => self.job_finished(finished),
            Event::ObjectChanged(change) => self.object_changed(change),
            Event::ReviewRequested(id, asked) => self.review_requested(id, asked),
            Event::LossConfirmed => self.loss_confirmed(),
            Event::WebhooksTouched => self.reviews.touched(&self.cx),
            Event::ReleaseSeen(sight) => self.release_seen(sight),
            Event::HealthSeen(sight) => self.health_seen(sight),
            Event::PurgeConfirmed(releases) => self.confirm_removals(&releases),
            Event::TrialSeen(stage) => self.trial_seen(stage),
            Event::LedByAnother => self.warmth.begin(),
            Event::Elected => self.lead(),
            Event::Deposed => self.stop_at_once(),
            Event::TimerFired => {}
            Event::ShutdownRequested => self.stop(),
        }
    }

    /// Starts everything that can start. Repeats until a round starts no job and moves no task.
    pub(in crate::operator) fn advance(&mut self) {
        if self.standing.is_stopping() {
            self.standing.advance_stop(&mut self.cx, &self.jobs);
            return;
        }
        if self.standing.is_standby() {
            self.advance_standby();
            return;
        }
        self.lanes.wake(&self.cx);
        self.lend_slots();
        self.advance_startup();
        if self.renew_modules() {
            // Sections may now be applied that have to be saved in the state Secret.
            self.advance_startup();
        }
        self.let_go_due();
        self.fire_schedules();
        self.advance_reviews();
        self.advance_health();
        loop {
            let before = self.lanes.ledger();
            let mut progress = self.advance_verdicts() | self.pass_failing_hooks();
            self.restore_releases();
            self.leave_unhealthy();
            // The converge becomes ready last, so that it sees the modules after their heads have got a slot or found
            // none free.
            self.lanes.wake_parked(&Lane::Global, Task::is_converge);
            progress |= self.advance_lanes();
            progress |= self.request_removals();
            if !progress && self.lanes.ledger() == before {
                break;
            }
        }
        self.confirm_directories();
        self.keep_sources();
        self.keep_given();
        self.watch_releases();
        // Modules may have become able to answer reviews in this round, or have lost that ability, and no other event may
        // come for long.
        self.advance_reviews();
        if self.startup.has_begun() {
            self.reviews.advance_publication(&mut self.cx, &mut self.jobs);
        }
    }

    /// Advances the round of verdicts, and runs modules or asks for a converge when it is over. True if something changed.
    fn advance_verdicts(&mut self) -> bool {
        let (jobs, cx) = (&mut self.jobs, &mut self.cx);
        let inputs = Inputs {
            modules: &self.modules,
            config: &self.config,
            supply: &self.supply,
            values: &self.values,
        };
        let (cause, touched) = match self.verdicts.advance(cx, jobs, inputs) {
            Round::Waits { moved } => return moved,
            Round::Over { cause, touched } => (cause, touched),
        };
        if self.converge.assesses_by_itself() {
            return true;
        }
        if self.verdicts.wanted() == self.modules.taken_up() {
            for module in touched {
                let is_renewed = self.modules.get(&module).is_some_and(Unit::is_renewed);
                let reason = if is_renewed {
                    RunReason::FilesRead
                } else {
                    RunReason::ConfigChanged
                };
                self.rerun(&module, reason);
            }
        } else {
            self.request_converge(cause.unwrap_or(Reason::ScriptAnswered), true);
        }
        true
    }

    /// Advances the heads of all lanes that can go on. False if none moved.
    fn advance_lanes(&mut self) -> bool {
        let mut progress = false;
        let mut free = self.jobs.free(&self.cx.policy);
        for (lane, lacked) in self.lanes.ready(&free) {
            // Heads before this one may have taken the last slot.
            let is_hopeless = lacked.is_some_and(|slot| !free.contains(&slot));
            if !is_hopeless && self.advance_lane(&lane) {
                progress = true;
                free = self.jobs.free(&self.cx.policy);
            }
        }
        progress
    }

    /// Advances the head of a lane. False if it did not move, for example for lack of a slot.
    fn advance_lane(&mut self, lane: &Lane) -> bool {
        let Some(head) = self.lanes.head(lane) else {
            return false;
        };
        match &head.task {
            Task::Hook(_) => self.advance_hook(lane),
            Task::EnableKubernetes(hook) => {
                let hook = hook.clone();
                self.advance_enable_kubernetes(lane, &hook)
            }
            Task::EnableSchedules(hook) => {
                let hook = hook.clone();
                self.advance_enable_schedules(lane, hook)
            }
            Task::AwaitFirstRuns => self.advance_await(lane),
            Task::Converge(_) => self.advance_converge(),
            Task::ModuleRun { module, .. } => {
                let module = module.clone();
                self.advance_run(lane, &module)
            }
            Task::ModuleDelete { module, .. } => {
                let module = module.clone();
                self.advance_delete(lane, &module)
            }
            Task::Purge { release } => {
                let release = release.clone();
                self.advance_purge(lane, release)
            }
        }
    }

    /// Puts the hooks whose schedules are due into their queues.
    fn fire_schedules(&mut self) {
        for due in self.schedules.due(&self.cx) {
            if !self.takes_schedules(&due.0) {
                continue;
            }
            let run = schedule::run_of(&self.cx, &self.bindings, due, self.converge.activation());
            if let Some((lane, task)) = run {
                self.lanes.push_hook(&mut self.cx, &self.bindings, &lane, task);
            }
        }
    }

    /// Whether the schedules of the hook may run it: after the end of the first converge, and for the hook of a module
    /// after the module's start-up. Without modules, enabled schedules may always run the hook.
    fn takes_schedules(&self, hook: &HookId) -> bool {
        match self.cx.policy.mode {
            Mode::Hooks => true,
            Mode::Addons => self.converge.is_first_over() && self.modules.take_events(hook),
        }
    }

    /// Reports new secrets before everything else that follows from the event, so that no text with a secret is shown.
    pub(in crate::operator) fn tell_secrets(&mut self) {
        if let Some(secrets) = self.values.take_new_secrets() {
            let notice = Notice::SecretsChanged(Arc::new(secrets));
            self.cx.tell_first(notice);
        }
    }

    /// Lends the slots of runs that have held them for long. At most a fixed number of slots is lent.
    fn lend_slots(&mut self) {
        let patience = self.cx.policy.patience;
        for id in self.jobs.grow_late(self.cx.now.tick, patience) {
            let Some(holder) = self.jobs.holder(id) else { continue };
            let notice = Notice::RunLate {
                run: holder.words.to_owned(),
                waited: self.cx.now.tick - holder.since,
            };
            self.cx.tell(notice);
        }
    }
}
