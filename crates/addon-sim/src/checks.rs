//! The invariants that must hold after every step. They use only what can be seen from outside: events, effects, answers
//! and the world.
//!
//! Every invariant has a short name, which a violation carries. Must never look into the operator.

mod backoff;
mod brake;
mod conversions;
mod edits;
mod end;
mod holds;
mod jobs;
mod limit;
mod loops;
mod lost;
mod monitors;
mod needs;
mod order;
mod patience;
mod releases;
mod removal;
mod reviews;
mod scripts;
mod sources;
mod stand_ins;
mod standing;
mod trial;
mod values;
mod waits;

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Job, Notice};
use addon_core::operator::event::{ConfigRead, Drift, Event, Finished, Saved};
use addon_core::operator::policy::OnTrial;
use names::HookId;

pub use end::check_end;
pub use values::check_edits_kept;

use crate::life::{Life, Seen};
use crate::told::Told;
use crate::world::{COMMON_FILE, Misdeed, World};

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The short name of the invariant.
    pub invariant: &'static str,
    /// The observation that breaks the invariant.
    pub text: String,
}

impl Violation {
    /// A violation.
    pub fn new(invariant: &'static str, text: impl Into<String>) -> Self {
        Self {
            invariant,
            text: text.into(),
        }
    }
}

/// An error unless the condition holds.
pub(crate) fn ensure(holds: bool, invariant: &'static str, text: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(invariant, text()))
    }
}

/// One handled event, before its effects begin.
#[derive(Debug, Clone, Copy)]
pub struct SimStep<'a> {
    /// The time of the simulated world in microseconds.
    pub clock: u64,
    /// The event.
    pub event: &'a Event,
    /// The job whose end the event reports.
    pub ended: Option<&'a Job>,
    /// The effects of the event.
    pub effects: &'a [Effect],
    /// The world.
    pub world: &'a World,
    /// The life, with its running jobs.
    pub life: &'a Life,
    /// The operator's answers before the event.
    pub before: &'a Seen,
    /// The operator's answers after the event.
    pub after: &'a Seen,
}

impl SimStep<'_> {
    /// Whether modules need not wait for some global hook, because a stand-in serves for it.
    fn has_stand_ins(&self) -> bool {
        [self.before, self.after]
            .iter()
            .any(|seen| !seen.status.old_values.is_empty())
    }

    fn has_stand_in(&self, hook: &HookId) -> bool {
        hook.owner.module().is_none() && self.is_passed_over(hook.name.as_str())
    }

    /// Whether modules need not wait for the global hook of this name.
    fn is_passed_over(&self, hook: &str) -> bool {
        let quoted = format!("'{hook}'");
        let old = [self.before, self.after]
            .into_iter()
            .flat_map(|seen| &seen.status.old_values);
        old.into_iter().any(|text| text.contains(&quoted))
    }

    /// Whether no timer was due at that moment, so that all effects follow from the event. A clock that was set is
    /// noticed with the next event and may make schedules due, so it counts as a timer.
    fn is_alone(&self) -> bool {
        let is_due = self.before.timeout.as_ref().is_some_and(|(at, _)| *at <= self.clock);
        !is_due && !self.life.clock_was_set
    }

    /// Whether the module's removal had begun before this step.
    fn is_being_removed(&self, module: &str) -> bool {
        let before = self.before.modules.get(module);
        before.is_some_and(|module| module.state == "Deleting")
    }

    /// Whether the module waits for people to decide about a lost configuration, or for the end of a trial.
    fn is_held_back(&self, module: &str) -> bool {
        let mut lost = self.after.status.config_lost.iter();
        lost.any(|release| release == module) || self.waits_for_trial(module)
    }

    /// Whether the module waits for the end of a trial, because its CRDs exist in another form.
    fn waits_for_trial(&self, module: &str) -> bool {
        self.life.on_trial == OnTrial::Yes && self.world.trial.other_crds.contains(module)
    }
}

/// All checks, with the facts of a life that they remember.
#[derive(Debug, Default)]
pub struct Checks {
    /// The forbidden deed of the hook that just ended.
    pub misdeed: Option<Misdeed>,
    /// Whether the next reading of the `ConfigMap` has nothing new.
    echo: bool,
    globals: values::Globals,
    backoff: backoff::Backoffs,
    brake: brake::Brake,
    conversions: conversions::Looked,
    edits: edits::Edits,
    holds: holds::Holds,
    jobs: jobs::Jobs,
    limits: limit::Limits,
    lives: values::Lives,
    loops: loops::Loops,
    monitored: monitors::Monitored,
    order: order::Order,
    releases: releases::Releases,
    removal: removal::Removals,
    reviews: reviews::Reviews,
    sources: sources::Sources,
    stand_ins: stand_ins::StandIns,
    standbys: standing::Standbys,
}

impl Checks {
    /// Forgets the facts of the life before.
    pub fn new_life(&mut self) {
        *self = Self::default();
    }

    /// Notes a change of the world that is no event.
    pub fn world(&mut self, world: &World, told: &Told) -> Result<(), Violation> {
        self.removal.signs(world, told);
        Ok(())
    }

    /// Finds out whether a reading of the `ConfigMap` is outdated or shows only our own writes.
    pub fn own_echo(&mut self, life: &Life, read: &ConfigRead) {
        let ConfigRead::Present { version, data, .. } = read else {
            return;
        };
        let data = &life.told.with_own(*version, data);
        let mut known = life.told.raw.clone();
        for running in life.running.values() {
            if let (Job::SaveConfig { key, text, .. }, Some(Finished::ConfigSaved(_, Ok(Saved::Written { .. })))) =
                (&running.job, &running.finished)
            {
                known.get_or_insert_default().insert(key.clone(), text.clone());
            }
        }
        self.echo = life.told.raw.is_some() && (known.as_ref() == Some(data) || life.told.is_stale(read));
    }

    /// Checks one handled event.
    pub fn step(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        self.removal.signs(step.world, &step.life.told);
        self.removal.event(step);
        step.effects.iter().try_for_each(|effect| lost::check(step, effect))?;
        if !self.edits.event(step) {
            self.reviews.event(step);
        }
        self.echo_causes_nothing(step)?;
        values::check(step, self.misdeed.take(), &self.lives)?;
        self.lives.note(step);
        values::check_new_lives(step)?;
        self.globals.note(step);
        self.monitored.event(step);
        self.conversions.event(step);
        releases::check(step)?;
        standing::check(step)?;
        trial::check(step)?;
        self.stand_ins.check(step)?;
        self.standbys.check(step)?;
        self.loops.event(step);
        self.order.healths.event(step);
        let mut starts = Vec::new();
        for (index, effect) in step.effects.iter().enumerate() {
            if !self.edits.effect(step, effect)? {
                self.reviews.effect(step, effect)?;
            }
            // The run of a review is in no queue, and is no step of a task.
            if !reviews::is_of_review(effect) {
                self.backoff.effect(step, effect)?;
                self.order.effect(step, effect)?;
                self.monitored.effect(step, effect)?;
            }
            self.limits.effect(step, effect)?;
            self.loops.effect(step, effect)?;
            self.conversions.effect(step, effect)?;
            self.releases.effect(step, effect)?;
            self.removal.effect(step, effect)?;
            self.globals.effect(effect);
            if let Effect::StartJob(job) = effect {
                self.globals.job(step, job, &step.effects[index + 1..])?;
                starts.push(job);
            }
        }
        self.order.event(step);
        self.backoff.over(step);
        self.monitored.over(step);
        removal::begun(step)?;
        self.brake.check(step)?;
        self.reviews.over(step, &starts)?;
        self.edits.over(step, &starts)?;
        needs::check(step)?;
        if step.life.stopping.is_none() {
            waits::check(step.after)?;
        }
        self.sources.check(step)?;
        self.holds.check(step)?;
        self.jobs.check(step, &starts)
    }

    /// Checks the world when nothing is left to do.
    pub fn at_rest(&self, world: &World, life: &Life, seen: &Seen, stuck: &BTreeSet<String>) -> Result<(), Violation> {
        trial::at_rest(world, seen)?;
        waits::check(seen)?;
        self.sources.at_rest(world, life, seen)?;
        self.monitored.at_rest(life, seen, stuck)?;
        self.reviews.at_rest(world, seen, stuck)
    }

    /// Notes a report about a release that is about to reach the operator.
    pub fn sighted(&mut self, clock: u64, release: &str, drift: Option<&Drift>) {
        self.releases.sighted(clock, release, drift);
    }

    /// M6: our own writes, and readings without news, cause nothing.
    fn echo_causes_nothing(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        if !std::mem::take(&mut self.echo) || !step.is_alone() {
            return Ok(());
        }
        let tasks = |seen: &Seen| seen.queues.iter().map(|queue| queue.tasks.len()).sum::<usize>();
        let caused = step.effects.iter().find(|effect| match effect {
            Effect::StartJob(job) => !matches!(
                job,
                Job::SaveState { .. } | Job::ReadDirectories(_) | Job::PublishWebhooks(..)
            ),
            Effect::Tell(notice) => matches!(notice, Notice::ConvergeStarted { .. }),
            Effect::CancelJob(_)
            | Effect::Reply(..)
            | Effect::TakeUpFiles(..)
            | Effect::JudgeFiles(..)
            | Effect::StopMonitors(_)
            | Effect::Exit
            | Effect::GiveUp(_) => true,
        });
        ensure(caused.is_none(), "M6", || {
            format!("a ConfigMap without news set off {caused:?}")
        })?;
        ensure(tasks(step.after) <= tasks(step.before), "M6", || {
            "a ConfigMap without news filled a queue".to_owned()
        })
    }

    /// L2: if no job runs and no event is to come, no task may be pending. Checked once the effects have begun.
    pub fn rest(&mut self, world: &World, life: &Life, seen: &Seen, no_future: bool) -> Result<(), Violation> {
        waits_are_true(life, seen)?;
        if let Some(at) = life.stopping {
            let late = seen.timeout.is_none() && life.running.is_empty() && !life.exited;
            return ensure(!late, "L2", || {
                format!("asked to stop at {at}, nothing runs, and it does not end")
            });
        }
        // A wait for health ends after a time. If it did not, its module would not be ready at rest.
        let hidden = seen.sleeps() || seen.heals() || !seen.status.waiting.is_empty();
        let awaited = match seen.timeout {
            None => false,
            Some(_) if seen.is_looked_after() => hidden,
            Some(_) => true,
        };
        if !life.running.is_empty() || !no_future || awaited {
            return Ok(());
        }
        Self::nothing_pending(world, life, seen)
    }

    fn nothing_pending(world: &World, life: &Life, seen: &Seen) -> Result<(), Violation> {
        let stuck = life.told.modules.as_ref().is_some_and(|(modules, _)| {
            let enabled = seen
                .modules
                .values()
                .filter(|module| module.enabled)
                .map(|module| module.name.clone());
            let setup = crate::setup::Setup {
                modules: modules.values().cloned().collect(),
                ..Default::default()
            };
            !crate::model::stuck(&setup, &enabled.collect()).is_empty()
        });
        // In strict order everything waits for a person who decides about a lost configuration, or for the end of a trial.
        let stuck = stuck || !seen.status.config_lost.is_empty() || !life.told.without_values().is_empty();
        let is_held = |module: &String| seen.modules.get(module).is_some_and(|module| module.enabled);
        let stuck = stuck || life.on_trial == OnTrial::Yes && world.trial.other_crds.iter().any(is_held);
        if world.setup.strict && stuck {
            return Ok(());
        }
        let pending: Vec<_> = seen
            .queues
            .iter()
            .flat_map(|queue| &queue.tasks)
            .map(|task| &task.description)
            .collect();
        ensure(pending.is_empty(), "L2", || {
            format!("nothing runs and nothing is awaited, but queued is {pending:?}")
        })?;
        // A person has to put a lost file back.
        let of_file = |line: &&String| life.told.is_common_file_gone() && line.starts_with(COMMON_FILE);
        let waiting: Vec<_> = seen.status.waiting.iter().filter(|line| !of_file(line)).collect();
        ensure(waiting.is_empty(), "L2", || {
            format!("nothing runs and nothing is awaited, but it waits for {waiting:?}")
        })?;
        let lost = seen
            .modules
            .values()
            .find(|module| module.enabled && module.state != "Ready" && module.waits_for.is_empty());
        ensure(lost.is_none(), "L2", || {
            format!("a module is neither ready nor waits for anything: {lost:?}")
        })
    }
}

/// W1: a queue that waits for a save or for a check against schemas waits for a running job.
fn waits_are_true(life: &Life, seen: &Seen) -> Result<(), Violation> {
    let runs = |wanted: fn(&Job) -> bool| life.running.values().any(|running| wanted(&running.job));
    let waits = |words: &str| seen.queues.iter().find(|queue| queue.status.starts_with(words));
    let saved = waits("waits for the section");
    ensure(
        saved.is_none() || runs(|job| matches!(job, Job::SaveConfig { .. })),
        "W1",
        || format!("nothing is being saved, but {saved:?}"),
    )?;
    let vetted = waits("waits for the ConfigMap to be held against schemas");
    ensure(
        vetted.is_none() || runs(|job| matches!(job, Job::Vet(..))),
        "W1",
        || format!("nothing is held against schemas, but {vetted:?}"),
    )
}
