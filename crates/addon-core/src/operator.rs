//! The operator: one value that makes every decision of the program.
//!
//! It reads no clock, starts nothing and locks nothing. The driver tells it what happened (`handle`), carries out
//! what it asks for (`poll_effect`), wakes it when it wants to be woken (`poll_timeout`) and lets people look
//! (`answer`). Here are its machines and its five methods: each decision lives in the file of
//! its own machine, and `ways` leads from one machine to the next.

pub mod edit;
pub mod effect;
pub mod event;
pub mod explain;
pub mod health;
pub mod policy;
pub mod provenance;
pub mod query;
pub mod ticket;

mod bindings;
mod certainty;
mod chores;
mod commits;
mod config;
mod converge;
mod cx;
mod directories;
mod drift;
mod jobs;
mod lanes;
mod modules;
mod monitors;
mod patience;
mod removal;
mod reviews;
mod schedule;
mod standing;
mod startup;
mod survey;
mod task;
mod trial;
mod verdicts;
mod warmth;
mod ways;

use self::bindings::Bindings;
use self::chores::Chores;
use self::commits::Commits;
use self::config::Config;
use self::converge::Converge;
use self::cx::Cx;
use self::directories::Directories;
use self::drift::Drifts;
use self::effect::Effect;
use self::event::Event;
use self::explain::Query;
use self::jobs::Jobs;
use self::lanes::Lanes;
use self::modules::Modules;
use self::monitors::Monitors;
use self::policy::Policy;
use self::query::Waiting;
use self::removal::Removal;
use self::reviews::Reviews;
use self::schedule::Schedules;
use self::standing::Standing;
use self::startup::Startup;
use self::survey::Survey;
use self::trial::Probation;
use self::verdicts::Verdicts;
use self::warmth::Warmth;
use crate::time::{Now, Tick};
use crate::values::Store;

/// The value that decides.
#[derive(Debug)]
pub struct Operator {
    cx: Cx,
    jobs: Jobs,
    bindings: Bindings,
    lanes: Lanes,
    monitors: Monitors,
    schedules: Schedules,
    values: Store,
    modules: Modules,
    directories: Directories,
    removal: Removal,
    commits: Commits,
    config: Config,
    verdicts: Verdicts,
    converge: Converge,
    drifts: Drifts,
    warmth: Warmth,
    reviews: Reviews,
    chores: Chores,
    startup: Startup,
    probation: Probation,
    standing: Standing,
}

impl Operator {
    /// An operator that knows nothing yet. The seed spreads its back-offs; equal seeds and events give equal effects.
    pub fn new(seed: u64, policy: Policy) -> Self {
        Self {
            standing: Standing::at_start(&policy),
            verdicts: Verdicts::new(policy.extenders.clone()),
            probation: Probation::new(policy.on_trial),
            cx: Cx::new(seed, policy),
            jobs: Jobs::default(),
            bindings: Bindings::default(),
            lanes: Lanes::default(),
            monitors: Monitors::default(),
            schedules: Schedules::default(),
            values: Store::default(),
            modules: Modules::default(),
            directories: Directories::default(),
            removal: Removal::default(),
            commits: Commits::default(),
            config: Config::default(),
            converge: Converge::default(),
            drifts: Drifts::default(),
            warmth: Warmth::default(),
            reviews: Reviews::default(),
            chores: Chores::default(),
            startup: Startup::default(),
        }
    }

    /// Takes in what happened, and decides everything that follows from it.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.cx.now = now;
        self.schedules.look_at_clock(now, &self.cx.policy);
        self.take_event(event);
        self.advance();
        self.tell_secrets();
    }

    /// The next thing to do; `None` when there is nothing more to do before the next event.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.cx.poll_effect()
    }

    /// When to call `handle` with `TimerFired` if nothing else happens before, and why.
    pub fn poll_timeout(&self) -> Option<(Tick, Waiting)> {
        let cx = &self.cx;
        if self.standing.is_stopping() {
            return self.standing.timeout(cx);
        }
        if self.standing.is_standby() {
            let timeouts = [self.chores.timeout(self.cx.policy.mode), self.warmth.timeout(cx)];
            return timeouts.into_iter().flatten().min_by_key(|(at, _)| *at);
        }
        let survey = Survey::of(self);
        [
            self.lanes.timeout(cx),
            self.verdicts.timeout(cx),
            self.chores.timeout(self.cx.policy.mode),
            self.schedules.timeout(cx),
            self.reviews.timeout(cx, &self.lanes, &self.bindings),
            self.drifts.timeout(|name| survey.is_left_alone(name)),
            survey.patience_timeout(),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    /// What people want to know, of this very moment.
    pub fn answer<Q: Query>(&self, query: &Q) -> Q::Answer {
        query.answer(&Survey::of(self))
    }
}

#[cfg(test)]
mod tests;
