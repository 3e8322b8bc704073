//! The operator: one value that makes every decision of the program.
//!
//! It reads no clock, starts nothing and locks nothing. The driver tells it what happened (`handle`), carries out
//! what it asks for (`poll_effect`), wakes it when it wants to be woken (`poll_timeout`) and lets people look
//! (`answer`). This file only routes; each decision lives in the file of its own machine.

pub mod edit;
pub mod effect;
pub mod event;
pub mod health;
pub mod policy;
pub mod provenance;
pub mod query;
pub mod ticket;

mod alone;
mod assess;
mod bindings;
mod commit;
mod config;
mod converge;
mod conversions;
mod crds;
mod cx;
mod drift;
mod enable;
mod explain;
mod hooks;
mod jobs;
mod lanes;
mod modules;
mod monitors;
mod outcomes;
mod patience;
mod removal;
mod reviews;
mod run;
mod schedule;
mod secrets;
mod sources;
mod standing;
mod startup;
mod task;
mod trial;
mod warmth;
mod watching;
mod wave;

use std::collections::BTreeMap;

use self::assess::Assessment;
use self::bindings::Bindings;
use self::commit::Commits;
use self::config::Config;
use self::converge::Converge;
use self::cx::Cx;
use self::drift::Drifts;
use self::effect::Effect;
use self::event::Event;
use self::jobs::Jobs;
use self::lanes::Lanes;
use self::modules::Unit;
use self::monitors::Monitors;
use self::policy::Policy;
use self::query::{Answer, Query, Waiting};
use self::removal::Removal;
use self::removal::rereading::Rereading;
use self::reviews::Reviews;
use self::schedule::Schedules;
use self::sources::Sources;
use self::standing::{Standing, Stopping};
use self::startup::Startup;
use self::task::{Lane, Task};
use self::trial::Probation;
use self::warmth::Warmth;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::time::{Now, Tick};
use crate::values::Store;

/// The value that decides.
#[derive(Debug)]
pub struct Operator {
    cx: Cx,
    jobs: Jobs,
    lanes: Lanes,
    bindings: Bindings,
    values: Store,
    modules: BTreeMap<ModuleName, Unit>,
    monitors: Monitors,
    warmth: Warmth,
    reviews: Reviews,
    startup: Startup,
    config: Config,
    commits: Commits,
    assessment: Assessment,
    converge: Converge,
    removal: Removal,
    rereading: Rereading,
    sources: Sources,
    drifts: Drifts,
    schedules: Schedules,
    standing: Standing,
    probation: Probation,
    stopping: Option<Stopping>,
}

impl Operator {
    /// An operator that knows nothing yet. The seed spreads its back-offs; equal seeds and events give equal effects.
    pub fn new(seed: u64, policy: Policy) -> Self {
        Self {
            standing: Standing::at_start(&policy),
            probation: Probation::new(policy.on_trial),
            cx: Cx::new(seed, policy),
            jobs: Jobs::default(),
            lanes: Lanes::default(),
            bindings: Bindings::default(),
            values: Store::default(),
            modules: BTreeMap::new(),
            monitors: Monitors::default(),
            warmth: Warmth::default(),
            reviews: Reviews::default(),
            startup: Startup::default(),
            config: Config::default(),
            commits: Commits::default(),
            assessment: Assessment::default(),
            converge: Converge::default(),
            removal: Removal::default(),
            rereading: Rereading::default(),
            sources: Sources::default(),
            drifts: Drifts::default(),
            schedules: Schedules::default(),
            stopping: None,
        }
    }

    /// Takes in what happened, and decides everything that follows from it.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.take_time(now);
        match event {
            Event::InventoryChanged(inventory) => self.take_inventory(inventory),
            Event::ConfigChanged(read) => self.config_read(read),
            Event::HistoryWentBack => self.config.begin_anew(),
            Event::JobFinished(finished) => self.job_finished(finished),
            Event::ObjectChanged(change) => self.object_changed(change),
            Event::ReviewRequested(id, asked) => self.review_requested(id, asked),
            Event::LossConfirmed => self.loss_confirmed(),
            Event::WebhooksTouched => self.reviews.publication.is_touched(self.cx.now.tick),
            Event::ReleaseSeen(sight) => self.release_seen(sight),
            Event::PurgeConfirmed(releases) => self.confirm_removals(&releases),
            Event::TrialSeen(stage) => self.trial_seen(stage),
            Event::LedByAnother => self.warmth.begin(),
            Event::Elected => self.lead(),
            Event::Deposed => self.stop_at_once(),
            Event::TimerFired => {}
            Event::ShutdownRequested => self.stop(),
        }
        self.advance();
        self.tell_secrets();
    }

    /// The next thing to do; `None` when there is nothing more to do before the next event.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.cx.poll_effect()
    }

    /// When to call `handle` with `TimerFired` if nothing else happens before, and why.
    pub fn poll_timeout(&self) -> Option<(Tick, Waiting)> {
        if let Some(stopping) = self.stopping {
            let grace = self.cx.policy.shutdown_grace;
            return (!stopping.cancelled).then_some((stopping.deadline, Waiting::Shutdown(grace)));
        }
        if self.standing == Standing::Standby {
            let timeouts = [self.startup.timeout(), self.warmth_timeout()];
            return timeouts.into_iter().flatten().min_by_key(|(at, _)| *at);
        }
        [
            self.lanes.timeout(&self.cx),
            self.assessment_timeout(),
            self.startup.timeout(),
            self.schedule_timeout(),
            self.reviews_timeout(),
            self.drift_timeout(),
            self.patience_timeout(),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    /// What people want to know, of this very moment.
    pub fn answer(&self, query: &Query) -> Answer {
        self.explain(query)
    }

    /// Starts everything that can start. Ends because a round that starts no job and moves no task is the last.
    fn advance(&mut self) {
        if self.stopping.is_some() {
            self.advance_stop();
            return;
        }
        if self.standing == Standing::Standby {
            self.advance_standby();
            return;
        }
        self.lanes.wake(&self.cx);
        self.lend_slots();
        self.advance_startup();
        self.fire_schedules();
        self.advance_reviews();
        loop {
            let before = self.lanes.ledger();
            let mut progress = self.advance_assessment();
            self.restore_releases();
            self.lanes.wake_parked(&Lane::Global, Task::is_converge);
            for lane in self.lanes.ready() {
                progress |= self.advance_lane(&lane);
            }
            progress |= self.request_removals();
            if !progress && self.lanes.ledger() == before {
                break;
            }
        }
        self.confirm_directories();
        self.keep_sources();
        self.watch_releases();
        // Modules may have come to answer meanwhile, or ceased to, and nothing else need happen for long.
        self.advance_reviews();
        self.advance_publication();
    }

    /// Lets the head of a lane go on. False if it stays where it is, for want of a slot.
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
            Task::ModuleDelete { module } => {
                let module = module.clone();
                self.advance_delete(lane, &module)
            }
            Task::Purge { release } => {
                let release = release.clone();
                self.advance_purge(lane, release)
            }
        }
    }

    /// The head of a lane failed at something other than a hook.
    fn lane_failed(&mut self, lane: &Lane, failure: Failure) {
        match self.lanes.head(lane).map(|head| head.task.clone()) {
            Some(Task::ModuleRun { module, .. }) => self.run_failed(lane, &module, failure),
            Some(Task::ModuleDelete { module }) => self.delete_failed(lane, &module, failure),
            Some(Task::Purge { release }) => self.purge_failed(lane, release, failure),
            Some(Task::Converge(_) | Task::Hook(_) | Task::EnableKubernetes(_)) => {
                self.lanes.back_off(&mut self.cx, lane, &failure);
            }
            Some(Task::EnableSchedules(_) | Task::AwaitFirstRuns) | None => {}
        }
    }
}

#[cfg(test)]
mod tests;
