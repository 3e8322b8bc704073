//! Q6: if a module is reported to wait because of a loop of its hook, it is not upgraded before the wait ends, unless
//! an event comes from outside, or another hook has run.

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::operator::effect::{Effect, Job, Notice, Slowed};
use addon_core::operator::event::Event;
use names::{HookId, ModuleName};

use super::{SimStep, Violation, ensure};

/// The ends of the reported waits, in microseconds of the world.
#[derive(Debug, Default)]
pub(super) struct Loops {
    until: BTreeMap<ModuleName, (HookId, u64)>,
}

impl Loops {
    /// Forgets the waits before an event that another program or a person may have caused.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        if let Some(Job::RunHook(run, _)) = step.ended {
            self.until.retain(|_, (hook, _)| *hook == run.hook);
        }
        match step.event {
            Event::JobFinished(finished) if finished.failure().is_none() && step.is_alone() => {}
            Event::TimerFired => {}
            _ => self.until.clear(),
        }
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Tell(Notice::Slowed(Slowed::Hook { hook, next_in, .. })) => {
                if let Some(module) = hook.owner.module() {
                    let until = step.clock + micros(*next_in);
                    self.until.insert(module.clone(), (hook.clone(), until));
                }
            }
            // The health comes from outside, and counts only once it has lasted.
            Effect::StartJob(Job::SyncRelease {
                module,
                unhealthy: Some(_),
                ..
            }) => {
                self.until.remove(module);
            }
            Effect::StartJob(Job::SyncRelease { module, .. }) => {
                let until = self.until.remove(module).map_or(0, |(_, until)| until);
                // Hooks of modules cause no converge, and a converge runs all modules.
                let converges = step.before.status.converge_tasks > 0;
                ensure(step.clock >= until || converges, "Q6", || {
                    format!("{module} is upgraded, and its hook was said to wait until {until}")
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
