//! K1: a module whose hook is said to wait is not upgraded before that time, unless an event of the outer world comes.

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::name::ModuleName;
use addon_core::operator::effect::{Effect, Job, Notice, Slowed};
use addon_core::operator::event::Event;

use super::{SimStep, Violation, ensure};

/// The ends of the waits that were told of, in microseconds of the world.
#[derive(Debug, Default)]
pub(super) struct Loops {
    until: BTreeMap<ModuleName, u64>,
}

impl Loops {
    /// Forgets the waits before an event that another program or a person may have caused.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
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
                    self.until.insert(module.clone(), step.clock + micros(*next_in));
                }
            }
            Effect::StartJob(Job::SyncRelease { module, .. }) => {
                let until = self.until.remove(module).unwrap_or_default();
                ensure(step.clock >= until, "K1", || {
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
