//! Z2: nobody waits for an enabled script for longer than is told, and nobody is told of one that was not slow. That only
//! one of a script runs at a time, Z1, is seen where all jobs are.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::name::ModuleName;
use addon_core::operator::effect::{Effect, Job, JobId, Notice};
use addon_core::operator::event::Event;

use super::{SimStep, Violation, ensure};

/// So long all modules wait for one script, in microseconds.
const PATIENCE: u64 = 10_000_000;

/// The scripts that run.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    began: BTreeMap<JobId, u64>,
    late: BTreeSet<ModuleName>,
}

impl Scripts {
    /// Nobody waits for the script of this module any more.
    pub(super) fn is_late(&self, module: &ModuleName) -> bool {
        self.late.contains(module)
    }

    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        if let (Event::JobFinished(finished), Some(Job::RunEnabledScript { module, .. })) = (step.event, step.ended) {
            self.began.remove(&finished.id());
            self.late.remove(module);
        }
        for effect in step.effects {
            match effect {
                Effect::StartJob(job @ Job::RunEnabledScript { .. }) => {
                    self.began.insert(job.id(), step.clock);
                }
                Effect::Tell(Notice::ScriptLate { module, .. }) => self.told(step, module)?,
                _ => {}
            }
        }
        self.nobody_waits(step)
    }

    /// When the script of this module began, if it runs.
    fn since(&self, step: &SimStep<'_>, module: &ModuleName) -> Option<u64> {
        let of_module = |job: &Job| matches!(job, Job::RunEnabledScript { module: other, .. } if other == module);
        let running = step.life.running.iter().find(|(_, running)| of_module(&running.job));
        self.began.get(running?.0).copied()
    }

    fn told(&mut self, step: &SimStep<'_>, module: &ModuleName) -> Result<(), Violation> {
        let since = self.since(step, module);
        let is_slow = since.is_some_and(|since| since + PATIENCE <= step.clock);
        ensure(is_slow && !step.world.setup.strict, "Z2", || {
            format!("the script of {module} is called late, and runs since {since:?}")
        })?;
        ensure(self.late.insert(module.clone()), "Z2", || {
            format!("the script of {module} is called late twice")
        })
    }

    /// Where nothing else is under way, a script that runs is waited for by all.
    fn nobody_waits(&self, step: &SimStep<'_>) -> Result<(), Violation> {
        let starts = step.effects.iter().any(|effect| matches!(effect, Effect::StartJob(_)));
        let sleeps = step.after.queues.iter().any(|queue| queue.status.starts_with("sleep"));
        if starts || sleeps || step.world.setup.strict || step.life.stopping.is_some() {
            return Ok(());
        }
        let mut scripts = Vec::new();
        for running in step.life.running.values() {
            let Job::RunEnabledScript { module, .. } = &running.job else {
                return Ok(());
            };
            scripts.push(module);
        }
        let has_had_time = |module: &&ModuleName| {
            self.since(step, module)
                .is_some_and(|since| since + PATIENCE <= step.clock)
        };
        let held_up = !scripts.is_empty() && scripts.iter().all(has_had_time);
        let busy = step.after.status.converge_tasks > 0;
        ensure(!busy || !held_up, "Z2", || {
            format!("all wait for the scripts of {scripts:?}, which had their time")
        })
    }
}
