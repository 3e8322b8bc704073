//! The operator: one value that makes every decision of the program.
//!
//! It reads no clock, starts no process and takes no lock. The driver passes events in (`handle`), carries out the
//! effects that come out (`poll_effect`), calls `handle` again at the time that the operator asks for (`poll_timeout`)
//! and passes questions of people on (`answer`). This file has the operator's machines and these methods. Each decision
//! lies in the file of its machine, and `ways` connects the machines.

pub mod edit;
pub mod effect;
pub mod event;
pub mod explain;
pub mod health;
pub mod policy;
pub mod preview;
pub mod provenance;
pub mod pulse;
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
mod loops;
mod modules;
mod monitors;
mod patience;
mod removal;
mod reviews;
mod schedule;
mod stand_ins;
mod standing;
mod startup;
mod supply;
mod survey;
mod task;
mod trial;
mod verdicts;
mod warmth;
mod ways;

use clock::{Now, Tick};

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
use self::health::Healths;
use self::jobs::Jobs;
use self::lanes::Lanes;
use self::loops::Loops;
use self::modules::Modules;
use self::monitors::Monitors;
use self::policy::Policy;
use self::query::Waiting;
use self::removal::Removal;
use self::reviews::Reviews;
use self::schedule::Schedules;
use self::stand_ins::StandIns;
use self::standing::Standing;
use self::startup::Startup;
use self::supply::Supply;
use self::survey::Survey;
use self::trial::Probation;
use self::verdicts::Verdicts;
use self::warmth::Warmth;
use crate::values::Store;

/// The state machine that makes every decision. Its fields are the machines that own the parts of the state.
#[derive(Debug, Clone)]
pub struct Operator {
    cx: Cx,
    jobs: Jobs,
    bindings: Bindings,
    lanes: Lanes,
    loops: Loops,
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
    healths: Healths,
    warmth: Warmth,
    reviews: Reviews,
    chores: Chores,
    startup: Startup,
    supply: Supply,
    probation: Probation,
    stand_ins: StandIns,
    standing: Standing,
}

impl Operator {
    /// An operator that has seen no event yet. The seed spreads its back-off delays. Equal seeds and equal events give
    /// equal effects.
    pub fn new(seed: u64, policy: Policy) -> Self {
        Self {
            standing: Standing::at_start(&policy),
            verdicts: Verdicts::new(policy.extenders.clone()),
            probation: Probation::new(policy.on_trial),
            cx: Cx::new(seed, policy),
            jobs: Jobs::default(),
            bindings: Bindings::default(),
            lanes: Lanes::default(),
            loops: Loops::default(),
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
            healths: Healths::default(),
            warmth: Warmth::default(),
            reviews: Reviews::default(),
            chores: Chores::default(),
            startup: Startup::default(),
            supply: Supply::default(),
            stand_ins: StandIns::default(),
        }
    }

    /// Takes in one event, and decides everything that follows from it.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.cx.now = now;
        self.schedules.look_at_clock(now, &self.cx.policy);
        self.take_event(event);
        self.advance();
        self.tell_secrets();
    }

    /// The next effect to carry out; `None` when no effect is left until the next event.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.cx.poll_effect()
    }

    /// The time at which to call `handle` with `TimerFired` unless another event comes first, and the reason for that time.
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
            self.loops.timeout(),
            self.drifts.timeout(|name| survey.is_left_alone(name)),
            self.healths.timeout(cx.policy.patience, cx.now.tick),
            survey.patience_timeout(),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    /// The answer to a question of a person, from the state of this moment.
    pub fn answer<Q: Query>(&self, query: &Q) -> Q::Answer {
        query.answer(&Survey::of(self))
    }
}

#[cfg(test)]
mod tests;
