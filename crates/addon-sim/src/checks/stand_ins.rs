//! G3 and G4: values of earlier runs serve only for global hooks that have succeeded before, and remove nothing.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Job, Notice, StandIn};
use addon_core::operator::event::{Event, Finished};
use addon_core::operator::policy::OnTrial;
use names::HookName;

use super::{SimStep, Violation, ensure};

/// The global hooks whose values are known, from the state Secret or from this life.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    known: BTreeSet<HookName>,
}

impl StandIns {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        if let Event::JobFinished(Finished::StateLoaded(_, Ok(state))) = step.event {
            self.known.extend(state.given.keys().cloned());
        }
        step.effects.iter().try_for_each(|effect| self.effect(step, effect))
    }

    fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Tell(Notice::HookSucceeded { hook, .. }) if hook.owner.module().is_none() => {
                self.known.insert(hook.name.clone());
                Ok(())
            }
            Effect::Tell(Notice::StandIn(StandIn::Serves { hook, .. })) => {
                let may = !step.world.setup.strict && step.life.on_trial == OnTrial::No;
                ensure(may && self.known.contains(&hook.name), "G3", || {
                    format!("old values serve for {hook}, of which none are known, or in strict order, or on trial")
                })
            }
            Effect::StartJob(Job::DeleteRelease { release, .. }) => nothing_goes(step, release),
            _ => Ok(()),
        }
    }
}

/// G4: while old values serve for a hook, only the ConfigMap removes a module.
fn nothing_goes(step: &SimStep<'_>, release: &str) -> Result<(), Violation> {
    let serve = !step.before.status.old_values.is_empty();
    let Some(module) = step.before.modules.get(release).filter(|_| serve) else {
        return Ok(());
    };
    // The removal may begin in the step in which the ConfigMap switches the module off.
    let after = step.after.modules.get(release);
    let by_config_map = |by: &str| by == "ConfigMap";
    let says_so = by_config_map(&module.enabled_by) || after.is_some_and(|after| by_config_map(&after.enabled_by));
    let may = says_so || step.is_being_removed(release);
    ensure(may, "G4", || {
        format!("{release} is removed by {}, while old values serve", module.enabled_by)
    })
}
