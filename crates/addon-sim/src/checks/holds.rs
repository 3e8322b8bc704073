//! W3: what a module is said to wait for is so.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Job, Notice};

use super::{SimStep, Violation, ensure};

/// What is known of enabled scripts.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// Modules whose scripts failed or took too long the last time, and have not answered since.
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

    /// One whose script is silent is not simply off.
    fn held(&self, step: &SimStep<'_>, module: &str, reason: &str) -> Result<(), Violation> {
        let asks = |effect: &Effect| matches!(effect, Effect::StartJob(Job::RunEnabledScript { .. }));
        let mut running = step.life.running.values();
        let asking = running.any(|running| matches!(running.job, Job::RunEnabledScript { .. }));
        let need = reason.rsplit('\'').nth(1).unwrap_or_default();
        if asking || step.effects.iter().any(asks) {
            return Ok(());
        }
        // What another one is held by was found out when that one was held.
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
