//! One run: a world, a history, lives of the operator, and the checks after every step.

mod effects;
mod events;
mod followers;
mod foretold;
mod healing;
mod lives;
mod lookout;
mod mend;
mod registry;
mod settle;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use addon_core::operator::effect::{Effect, Job, JobId, Notice, StandIn};
use addon_core::operator::event::Event;
use addon_core::operator::health::HealthSight;
use names::MonitorId;
use serde::{Deserialize, Serialize};

use crate::action::{Action, Timed};
use crate::checks::{Checks, SimStep, Violation};
use crate::life::{Life, Seen};
use crate::setup::Setup;
use crate::show;
use crate::world::World;

/// The inputs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The world at the beginning.
    pub setup: Setup,
    /// The history.
    pub actions: Vec<Timed>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// The number of events that the operator handled.
    pub steps: u64,
    /// The number of lives.
    pub lives: u64,
    /// The broken invariant, if there is one.
    pub violation: Option<Violation>,
    /// An entry for each event, if they were recorded.
    pub log: Vec<Entry>,
}

/// One step as texts.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The time of the world in seconds.
    pub at: f64,
    /// The event.
    pub event: String,
    /// The effects.
    pub effects: Vec<String>,
    /// The states of modules and the contents of queues.
    pub states: Vec<String>,
    /// The reasons of waits.
    pub waits: Vec<String>,
}

/// A future event.
#[derive(Debug, Clone)]
enum Due {
    Inventory(Option<crate::action::Misreading>),
    ModuleRead(String),
    FirstRead,
    News,
    Again,
    Writes(JobId),
    Reads(JobId),
    Change(MonitorId),
    Ends(JobId),
    Asks {
        which: u64,
        within: u64,
    },
    Wants(Action),
    Touched,
    Sight(String),
    Health(HealthSight),
    TriesAgain(String),
    Relapse(String),
    Acts(Action),
    Confirms(BTreeSet<String>),
    LossConfirmed,
    /// A late write of a replica that does not lead any more. It began at this version of the `ConfigMap`.
    Late(Box<Job>, u64),
    Trial,
    StandsBy,
    Leads,
    Deposed,
    Follower(followers::Deed),
    Stop,
}

/// The state of a run.
struct Run<'a> {
    case: &'a Case,
    world: World,
    clock: u64,
    life: Life,
    seen: Seen,
    future: BTreeMap<(u64, u64), Due>,
    sequence: u64,
    watch_delay: u64,
    last_read: Option<addon_core::operator::event::ConfigRead>,
    checks: Checks,
    steps: u64,
    /// The number of questions of the API server so far.
    asked: u64,
    /// Actions that wait for a hook before all modules.
    ambushes: VecDeque<Action>,
    /// Actions that wait for a save of a section.
    meddlers: VecDeque<Action>,
    /// Releases that are being repaired.
    repaired: BTreeSet<String>,
    idle_timers: u32,
    followers: followers::Followers,
    log: Option<Vec<Entry>>,
    deeds: Option<foretold::Deeds>,
}

/// More steps than a case needs to come to rest.
const MOST_STEPS: u64 = 20_000;

/// Runs a case to its end or to the first broken invariant.
pub fn run(case: &Case, record: bool) -> Report {
    let mut run = Run::new(case, record);
    let violation = run.play().and_then(|()| run.settle()).err();
    let mut log = run.log.unwrap_or_default();
    if let (Some(violation), true) = (&violation, record) {
        log.push(Entry {
            at: show::seconds(run.clock),
            event: format!("VIOLATION {}: {}", violation.invariant, violation.text),
            effects: Vec::new(),
            states: show::states(&run.seen),
            waits: Vec::new(),
        });
    }
    Report {
        steps: run.steps,
        lives: run.life.number + 1,
        violation,
        log,
    }
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, record: bool) -> Self {
        let mut world = World::new(case.seed, &case.setup);
        let on_trial = world.on_trial();
        let life = Life::new(case.seed, 0, 0, &world.setup, on_trial, case.seed.is_multiple_of(4));
        let seen = life.look();
        let mut run = Self {
            case,
            world,
            clock: 0,
            life,
            seen,
            future: BTreeMap::new(),
            sequence: 0,
            watch_delay: 20,
            last_read: None,
            checks: Checks::default(),
            steps: 0,
            asked: 0,
            ambushes: VecDeque::new(),
            meddlers: VecDeque::new(),
            repaired: BTreeSet::new(),
            idle_timers: 0,
            followers: followers::Followers::default(),
            log: record.then(Vec::new),
            deeds: None,
        };
        run.begin_life();
        run
    }

    /// Plays the whole history.
    fn play(&mut self) -> Result<(), Violation> {
        let mut at = 0;
        for Timed { after, action } in &self.case.actions {
            at += after * 1000;
            while self.next_at().is_some_and(|next| next <= at) {
                self.step()?;
            }
            self.move_clock(at);
            self.act(action)?;
        }
        Ok(())
    }

    fn move_clock(&mut self, to: u64) {
        self.clock = self.clock.max(to);
        self.world.clock = self.clock;
    }

    fn plan(&mut self, millis: u64, due: Due) {
        self.sequence += 1;
        self.future.insert((self.clock + millis * 1000, self.sequence), due);
    }

    fn act(&mut self, action: &Action) -> Result<(), Violation> {
        self.note(format!("action: {action:?}"));
        self.world.suffer(action);
        match action {
            Action::SetClock(seconds) => {
                self.life.skew += seconds;
                self.life.clock_was_set = true;
            }
            Action::WatchDelay(millis) => self.watch_delay = *millis,
            Action::Coalesce => {
                let news = &mut self.world.config.news;
                news.drain(..news.len().saturating_sub(1));
            }
            Action::Redeliver if !self.world.setup.alone => self.plan(0, Due::Again),
            // A second reading can come only after the first.
            Action::Reread(misreading) if self.life.told.modules.is_some() => {
                self.plan(0, Due::Inventory(misreading.clone()));
            }
            Action::ReadAgain(name) if self.life.told.modules.is_some() => self.plan(0, Due::ModuleRead(name.clone())),
            Action::Object { kind, name, .. } => self.spread_change(kind, name),
            Action::Ask { which, times, within } => {
                for nth in 0..*times {
                    let (which, within) = (which + nth, *within);
                    self.plan(nth * 2, Due::Asks { which, within });
                }
            }
            Action::Want { .. } if self.world.setup.edits => self.plan(0, Due::Wants(action.clone())),
            Action::Confirm(names) => self.plan(0, Due::Confirms(names.iter().cloned().collect())),
            Action::ConfirmLoss => self.plan(0, Due::LossConfirmed),
            Action::TouchWebhooks { takes: false } => self.plan(0, Due::Touched),
            Action::Ambush(action) => self.ambushes.push_back(Action::clone(action)),
            Action::Meddle(action) => self.meddlers.push_back(Action::clone(action)),
            Action::Kill => self.restart(),
            Action::DeleteState => {
                self.restart();
                self.world.lose_state();
            }
            Action::Shutdown if self.life.stopping.is_none() => self.plan(0, Due::Stop),
            Action::Publish { .. } | Action::RegistryAnswers(true) => self.plan_fetches(),
            Action::Depose if self.world.setup.elected => self.plan(0, Due::Deposed),
            Action::Judge => self.judge(),
            _ => {}
        }
        self.spread_news(0);
        self.spread_touch();
        self.spread_sights();
        self.checks.world(&self.world, &self.life.told)
    }

    /// The time of the next event, unless an action comes before the event.
    fn next_at(&self) -> Option<u64> {
        let due = self.future.keys().next().map(|(at, _)| *at);
        let timer = self.seen.timeout.as_ref().map(|(at, _)| (*at).max(self.clock));
        due.into_iter().chain(timer).min()
    }

    /// Lets the next event happen.
    fn step(&mut self) -> Result<(), Violation> {
        let due = self.future.keys().next().copied();
        let timer = self.seen.timeout.as_ref().map(|(at, _)| (*at).max(self.clock));
        match (due, timer) {
            (Some((at, sequence)), timer) if timer.is_none_or(|timer| at <= timer) => {
                self.move_clock(at);
                let Some(due) = self.future.remove(&(at, sequence)) else {
                    return Ok(());
                };
                self.happen(due)
            }
            (_, Some(timer)) => {
                self.move_clock(timer);
                self.tell(&Event::TimerFired, None)
            }
            (_, None) => Ok(()),
        }
    }

    /// Passes an event to the operator, and starts its effects.
    fn tell(&mut self, event: &Event, ended: Option<&Job>) -> Result<(), Violation> {
        self.steps += 1;
        let effects = self
            .life
            .handle(self.clock, event)
            .map_err(|text| Violation::new("L5", text));
        let effects = match effects {
            Ok(effects) => effects,
            Err(violation) => {
                self.note(show::event(event, ended));
                return Err(violation);
            }
        };
        self.nothing_is_left(&effects)?;
        for effect in &effects {
            match effect {
                Effect::Tell(Notice::HookSucceeded { hook, labels, .. }) => self.life.told.hook_counts(hook, labels),
                Effect::Tell(Notice::StandIn(StandIn::Moves { job, .. })) => {
                    self.life.moved.insert(*job);
                }
                Effect::TakeUpFiles(_, edition) => self.life.told.took_up(*edition),
                _ => {}
            }
        }
        let after = self.life.look();
        self.life.told.settle(&after);
        let before = std::mem::replace(&mut self.seen, after);
        self.record(event, ended, &effects);
        let step = SimStep {
            clock: self.clock,
            event,
            ended,
            effects: &effects,
            world: &self.world,
            life: &self.life,
            before: &before,
            after: &self.seen,
        };
        self.checks.step(&step)?;
        self.life.clock_was_set = false;
        self.timers(event, &effects)?;
        self.watch_sources();
        for effect in effects {
            self.threaten(&effect);
            self.carry_out(effect);
        }
        if self.life.exited {
            self.note("the process has ended and is started again".to_owned());
            self.restart();
            return Ok(());
        }
        self.checks
            .rest(&self.world, &self.life, &self.seen, self.future.is_empty())
    }

    /// T2: an event is handled to its end: a timer event right after it would change nothing. Checked in a quarter of all
    /// worlds.
    fn nothing_is_left(&mut self, effects: &[Effect]) -> Result<(), Violation> {
        let due = self.life.timeout().is_some_and(|(at, _)| at <= self.clock);
        let over = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Exit | Effect::GiveUp(_)));
        if self.case.seed % 4 != 2 || due || over {
            return Ok(());
        }
        let more = self.life.handle(self.clock, &Event::TimerFired);
        match more.map_err(|text| Violation::new("L5", text))?.first() {
            None => Ok(()),
            Some(left) => {
                let text = format!("a timer that nobody had set led to: {}", show::effect(left));
                Err(Violation::new("T2", text))
            }
        }
    }

    /// T1: the timer does not fire again and again without effects.
    fn timers(&mut self, event: &Event, effects: &[Effect]) -> Result<(), Violation> {
        let due = self.seen.timeout.as_ref().is_some_and(|(at, _)| *at <= self.clock);
        let idle = matches!(event, Event::TimerFired) && effects.is_empty() && due;
        self.idle_timers = if idle { self.idle_timers + 1 } else { 0 };
        if self.idle_timers > 2 {
            let timer = &self.seen.timeout;
            let text = format!("the timer for {timer:?} fires again and again and changes nothing");
            return Err(Violation::new("T1", text));
        }
        Ok(())
    }

    fn note(&mut self, event: String) {
        let at = show::seconds(self.clock);
        if let Some(log) = &mut self.log {
            log.push(Entry {
                at,
                event,
                effects: Vec::new(),
                states: Vec::new(),
                waits: Vec::new(),
            });
        }
    }

    fn record(&mut self, event: &Event, ended: Option<&Job>, effects: &[Effect]) {
        let at = show::seconds(self.clock);
        if let Some(log) = &mut self.log {
            log.push(Entry {
                at,
                event: show::event(event, ended),
                effects: effects.iter().map(show::effect).collect(),
                states: show::states(&self.seen),
                waits: show::waits(&self.seen, self.clock, &self.life.running),
            });
        }
    }
}
