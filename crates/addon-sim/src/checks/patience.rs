//! S1 and Z3: the slots of long runs are lent, up to a limit, and a converge stops waiting for long runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::operator::effect::{Effect, HookRun, Job, JobId};
use addon_core::operator::event::Event;
use addon_core::operator::policy::Policy;
use names::Owner;

use super::{SimStep, Violation, ensure};
use crate::world::asked_of;

/// The number of slots that are lent: of hooks, and of helm.
const LENT: (usize, usize) = (8, 1);

/// The starts of jobs, in microseconds of the world.
#[derive(Debug, Default)]
pub(super) struct Patience {
    began: BTreeMap<JobId, u64>,
    /// Jobs for conversion webhooks that began while all helm slots hung. A converge does not wait for them.
    beyond: BTreeSet<JobId>,
    /// The time since which a converge waits while all running jobs hang, in microseconds of the world.
    waits: Option<u64>,
}

/// The number of jobs that hold slots of a kind: for a short time, and for long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    timely: usize,
    late: usize,
}

pub(super) fn is_helm(job: &Job) -> bool {
    matches!(
        job,
        Job::SyncRelease { .. } | Job::DeleteRelease { .. } | Job::EnsureConversions(..)
    )
}

impl Patience {
    /// Notes the jobs that began and ended.
    pub(super) fn note(&mut self, step: &SimStep<'_>) {
        if let Event::JobFinished(finished) = step.event {
            self.began.remove(&finished.id());
            self.beyond.remove(&finished.id());
        }
        for effect in step.effects {
            if let Effect::StartJob(job) = effect {
                self.began.insert(job.id(), step.clock);
            }
        }
    }

    fn patience(step: &SimStep<'_>) -> u64 {
        let said = step.world.setup.patience.map(Duration::from_secs);
        let patience = said.unwrap_or(Policy::default().patience);
        u64::try_from(patience.as_micros()).unwrap_or(u64::MAX)
    }

    fn is_late(&self, step: &SimStep<'_>, id: JobId) -> bool {
        let patience = Self::patience(step);
        self.began.get(&id).is_some_and(|began| began + patience <= step.clock)
    }

    /// The slots that these jobs hold.
    pub(super) fn held<'a>(&self, step: &SimStep<'_>, jobs: impl Iterator<Item = (JobId, &'a Job)>) -> Held {
        let within = jobs.filter(|(id, _)| !self.beyond.contains(id));
        within.fold(Held::default(), |mut held, (id, _)| {
            if self.is_late(step, id) {
                held.late += 1;
            } else {
                held.timely += 1;
            }
            held
        })
    }

    /// S1: the numbers of hooks and helm jobs stay within the slots.
    pub(super) fn slots(&mut self, step: &SimStep<'_>, hooks: Held, mut helms: Held) -> Result<(), Violation> {
        let setup = &step.world.setup;
        let (hook_slots, helm_slots) = (setup.hook_slots.max(1), setup.helm_slots.max(1));
        let mut looks = step.effects.iter().filter_map(|effect| match effect {
            Effect::StartJob(job @ Job::EnsureConversions(..)) => Some(job.id()),
            _ => None,
        });
        let fits = helms.fits(helm_slots, LENT.1);
        if let Some(id) = looks.next_back().filter(|_| !fits && helms.timely == 1) {
            self.beyond.insert(id);
            helms.timely = 0;
        }
        ensure(hooks.fits(hook_slots, LENT.0), "S1", || {
            format!("{hooks:?} hooks run at a time")
        })?;
        ensure(helms.fits(helm_slots, LENT.1), "S1", || {
            format!("{helms:?} helm jobs run at a time")
        })
    }

    /// Z3: if only runs of modules are under way and all of them hang, the converge stops waiting for them.
    pub(super) fn nobody_waits(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        let starts = step.effects.iter().any(|effect| matches!(effect, Effect::StartJob(_)));
        let ends = matches!(step.event, Event::JobFinished(_));
        if starts || ends || !self.all_wait(step) {
            self.waits = None;
            return Ok(());
        }
        let since = *self.waits.get_or_insert(step.clock);
        let waited = step.clock - since;
        let due = step.after.timeout.as_ref().is_some_and(|(at, _)| *at <= step.clock);
        ensure(due || waited <= Self::patience(step), "Z3", || {
            format!("all have waited for {waited} µs for runs that hang")
        })
    }

    fn all_wait(&self, step: &SimStep<'_>) -> bool {
        let sleeps = step.after.queues.iter().any(|queue| queue.status.starts_with("sleep"));
        let is_free = sleeps || step.world.setup.strict || step.life.stopping.is_some();
        if is_free || !step.life.leads || step.life.running.is_empty() {
            return false;
        }
        let hangs = |(id, job): (JobId, &Job)| {
            let of_module = match job {
                Job::RunHook(run, _) if asked_of(run).is_some() => false,
                Job::RunHook(HookRun { hook, .. }, _) => matches!(hook.owner, Owner::Module(_)),
                // The converge itself has to handle conversion webhooks.
                job => is_helm(job) && !matches!(job, Job::EnsureConversions(..)),
            };
            of_module && self.is_late(step, id)
        };
        let mut running = step.life.running.iter().map(|(id, running)| (*id, &running.job));
        step.after.status.converge_tasks > 0 && running.all(hangs)
    }
}

impl Held {
    fn fits(self, slots: usize, lent: usize) -> bool {
        self.timely + self.late.saturating_sub(slots * lent) <= slots
    }
}
