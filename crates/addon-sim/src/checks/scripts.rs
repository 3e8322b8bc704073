//! Z2: the round does not wait for a script for longer than the reported time, and a script that was not slow is not
//! reported as late. That a script is not running twice, Z1, is checked with the other jobs.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{Effect, Job, JobId, Notice};
use addon_core::operator::event::Event;
use names::ModuleName;

use super::{SimStep, Violation, ensure};

/// The time for which all modules wait for one script, in microseconds.
const PATIENCE: u64 = 10_000_000;

/// The running scripts.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    began: BTreeMap<JobId, u64>,
    late: BTreeSet<ModuleName>,
}

impl Scripts {
    /// Whether the round has gone on without the script of this module.
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

    /// The start of this module's script, if it is running.
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

    /// Z2: if only scripts are running and all of them have had their time, the converge has gone on without them.
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
        // A module may wait for the health of another one for longer than for a script.
        let busy = step.after.status.converge_tasks > 0 && !step.after.heals();
        ensure(!busy || !held_up, "Z2", || {
            format!("all wait for the scripts of {scripts:?}, which had their time")
        })
    }
}
