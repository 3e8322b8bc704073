//! C3: the conversion webhooks of a chart are published before its release. C4: each converge publishes them again. N3:
//! except for a module whose objects people maintain.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Conversions, Effect, Job, Notice};
use addon_core::operator::event::{Event, Finished};

use super::{SimStep, Violation, ensure};

/// The modules whose conversion webhooks were published.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// The modules whose conversion webhooks were published since the module was switched on.
    ever: BTreeSet<String>,
    /// The modules whose conversion webhooks were published since the last converge began.
    lately: BTreeSet<String>,
    /// Modules that were in maintenance at some time since the last converge began.
    in_hands: BTreeSet<String>,
}

impl Looked {
    /// Notes the facts in the event, before its effects.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        if let Event::JobFinished(Finished::ConversionsEnsured(_, Ok(outcomes))) = step.event {
            for (name, _) in outcomes.iter().filter(|(_, outcome)| outcome.is_ok()) {
                self.ever.insert(name.to_string());
                self.lately.insert(name.to_string());
            }
        }
        let told = &step.life.told;
        let modules = told.modules.iter().flat_map(|(modules, _)| modules.keys());
        self.in_hands
            .extend(modules.filter(|name| told.in_maintenance(name)).cloned());
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(Job::EnsureConversions(of, _)) => in_nobodys_hands(step, of),
            Effect::StartJob(Job::SyncRelease { module, .. }) => {
                let name = module.as_str();
                let bare = has_some(step, name) && !step.life.told.in_maintenance(name) && !self.ever.contains(name);
                ensure(!bare, "C3", || {
                    format!("{name} is released, and nobody looked after its conversions")
                })
            }
            Effect::Tell(Notice::ConvergeStarted { .. }) => {
                self.lately.clear();
                self.in_hands.clear();
                Ok(())
            }
            Effect::Tell(Notice::ConvergeFinished { reason, .. }) => self.finished(step, reason),
            Effect::Tell(Notice::ModuleDeleted { module }) => {
                self.ever.remove(module.as_str());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// C4: the conversion webhooks of all modules that are ready were published in this converge.
    fn finished(&self, step: &SimStep<'_>, reason: &str) -> Result<(), Violation> {
        // A converge that only runs hooks after all modules publishes none.
        if reason == "AfterAll-After-Recovery" {
            return Ok(());
        }
        let ready = step.after.modules.values().filter(|module| {
            module.enabled && module.state == "Ready" && module.waits_for.is_empty() && module.failures == 0
        });
        let mut names = ready.map(|module| &module.name).filter(|name| has_some(step, name));
        let left = names.find(|name| !self.lately.contains(*name) && !self.in_hands.contains(*name));
        ensure(left.is_none(), "C4", || {
            format!("a converge ended, and nobody looked after the conversions of {left:?}")
        })
    }
}

fn has_some(step: &SimStep<'_>, name: &str) -> bool {
    let spec = step.life.told.knows(name);
    spec.is_some_and(|spec| spec.chart && spec.conversions)
}

fn in_nobodys_hands(step: &SimStep<'_>, of: &[Conversions]) -> Result<(), Violation> {
    let theirs = of.iter().find(|one| step.life.told.in_maintenance(one.module.as_str()));
    ensure(theirs.is_none(), "N3", || {
        let name = theirs.map(|one| one.module.as_str());
        format!("conversions of {name:?} are looked after, which is in people's hands")
    })
}
