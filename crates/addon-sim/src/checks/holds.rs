//! W3: the reported reason of a module's wait is true.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Job, Notice};

use super::{SimStep, Violation, ensure};

/// The known states of enabled scripts.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Modules whose scripts failed or were too slow and have not answered since.
    silent: BTreeSet<String>,
}

impl Holds {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        for effect in step.effects {
            match effect {
                Effect::Tell(Notice::ScriptFailed { module, .. } | Notice::ScriptLate { module, .. }) => {
                    self.silent.insert(module.to_string());
                }
                Effect::Tell(Notice::ScriptAnswered { module, .. } | Notice::ModuleSwitched { module, .. }) => {
                    self.silent.remove(module.as_str());
                }
                Effect::Tell(Notice::ModuleHeld { module, reason }) => self.held(step, module.as_str(), reason)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// W3: a module whose script has not answered is reported so, and not as simply off.
    fn held(&self, step: &SimStep<'_>, module: &str, reason: &str) -> Result<(), Violation> {
        let asks = |effect: &Effect| matches!(effect, Effect::StartJob(Job::RunEnabledScript { .. }));
        let mut running = step.life.running.values();
        let asking = running.any(|running| matches!(running.job, Job::RunEnabledScript { .. }));
        let need = reason.rsplit('\'').nth(1).unwrap_or_default();
        if asking || step.effects.iter().any(asks) {
            return Ok(());
        }
        // The reason for which the other module is held was checked when that module was held.
        if reason.contains("which is held") {
            return Ok(());
        }
        let is_silent = self.silent.contains(need) && step.life.told.opinion(need) == Some(true);
        let is_off = reason.ends_with("which is disabled");
        ensure(!is_silent || !is_off, "W3", || {
            format!("{module} is held as {reason}, but the script of {need} has not answered")
        })
    }
}
