//! Which releases may be removed: only releases of ours, and only with positive evidence. And M4: while a module is being
//! removed, nothing else of it runs.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, HookRun, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::query::ModuleReport;

use super::needs::removals;
use super::{SimStep, Violation, ensure};
use crate::life::Seen;
use crate::told::Told;
use crate::world::World;

/// The reason of a converge that only removes modules.
const CERTAIN: &str = "ReloadAll-After-Removal-Became-Certain";

/// The evidence for removals, and the running removals.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Modules that a source switched off since they last ran.
    said_no: BTreeSet<String>,
    /// Releases whose modules are gone, or whose removal a person confirmed.
    gone: BTreeSet<String>,
    deleting: BTreeSet<String>,
}

impl Removals {
    /// Notes the evidence of this moment.
    pub(super) fn signs(&mut self, world: &World, told: &Told) {
        let Some((modules, complete)) = &told.modules else {
            return;
        };
        for name in modules.keys() {
            if told.says_no(name, &world.setup) {
                self.said_no.insert(name.clone());
            }
        }
        let ours = world.releases.iter().filter(|(_, release)| release.ours);
        let ignored = world.setup.ignore.as_ref();
        let orphans = ours
            .map(|(name, _)| name)
            .filter(|name| !modules.contains_key(*name) && Some(*name) != ignored);
        if *complete && !modules.is_empty() {
            self.gone.extend(orphans.cloned());
        }
    }

    /// Notes confirmed removals. Forgets removals that were given up before this step, because a later removal is another one.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        if let Event::PurgeConfirmed(names) = step.event {
            let held = step.before.status.held.iter().map(|held| &held.release);
            self.gone.extend(held.filter(|name| names.contains(*name)).cloned());
        }
        let modules = &step.before.modules;
        self.deleting
            .retain(|name| modules.get(name).is_none_or(|module| !is_taken_back(module)));
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(Job::DeleteRelease { release, .. }) => self.delete(step, release),
            Effect::StartJob(Job::SyncRelease { module, .. }) => {
                self.said_no.remove(module.as_str());
                self.taken_back(step, module.as_str());
                ensure(!self.deleting.contains(module.as_str()), "M4", || {
                    format!("the release of {module} is synced while the module is being removed")
                })
            }
            Effect::StartJob(Job::RunHook(HookRun { hook, labels, .. }, _)) => {
                let Some(module) = hook.owner.module() else {
                    return Ok(());
                };
                let of_removal = labels.cause.is_removal();
                if of_removal {
                    self.deleting.insert(module.to_string());
                } else {
                    self.taken_back(step, module.as_str());
                }
                ensure(of_removal || !self.deleting.contains(module.as_str()), "M4", || {
                    format!("{hook} runs for {} while its module is being removed", labels.cause)
                })
            }
            Effect::Tell(Notice::ModuleDeleted { module }) => {
                self.deleting.remove(module.as_str());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Forgets a failed removal whose module was switched on again.
    fn taken_back(&mut self, step: &SimStep<'_>, module: &str) {
        if step.after.modules.get(module).is_some_and(is_taken_back) {
            self.deleting.remove(module);
        }
    }

    fn delete(&mut self, step: &SimStep<'_>, name: &str) -> Result<(), Violation> {
        let foreign = step.world.releases.get(name).is_some_and(|release| !release.ours);
        ensure(!foreign || !was_foreign(step, name), "R1", || {
            format!("{name} is deleted and is not ours")
        })?;
        let ignored = step.world.setup.ignore.as_deref() == Some(name);
        ensure(!ignored, "R2", || format!("{name} is deleted and is to be ignored"))?;
        let Some(spec) = step.life.told.knows(name) else {
            // A release that another program has uninstalled meanwhile cannot be lost.
            let is_there = step.world.releases.contains_key(name);
            // People have taken its source out, so that no reading is needed.
            let is_ended = step.life.told.ended().contains(name);
            return ensure(self.gone.contains(name) || is_ended || !is_there, "R5", || {
                format!("{name} is deleted without a reading of the directories that says that its module is gone")
            });
        };
        let begun = !self.deleting.insert(name.to_owned());
        // A source may have named the module while the steps before this one were under way.
        let begun = begun || step.is_being_removed(name);
        ensure(!spec.broken || begun, "R3", || {
            format!("{name} is deleted and its directory is unusable")
        })?;
        ensure(self.said_no.contains(name), "R4", || {
            format!("{name} is deleted, and nobody who may have said that it is not to run")
        })
    }
}

fn is_taken_back(module: &ModuleReport) -> bool {
    module.enabled && module.state != "Deleting"
}

/// R7: a removal is begun only while a source switches the module off. C5: no converge is asked for because of removals
/// that are already running.
pub(super) fn begun(step: &SimStep<'_>) -> Result<(), Violation> {
    let before = removals(step.before);
    let told = &step.life.told;
    let mut begun = removals(step.after).into_iter().filter(|name| !before.contains(name));
    let unasked = begun.find(|name| !told.says_no(name, &step.world.setup));
    ensure(unasked.is_none(), "R7", || {
        format!("the removal of {unasked:?} is taken up, and nobody says that it is not to run")
    })?;
    let asks = |seen: &Seen| {
        let tasks = seen.queues.iter().flat_map(|queue| &queue.tasks);
        tasks.filter(|task| task.description.contains(CERTAIN)).count()
    };
    let starts =
        |effect: &Effect| matches!(effect, Effect::Tell(Notice::ConvergeStarted { reason }) if reason == CERTAIN);
    let is_new = asks(step.after) > asks(step.before) || asks(step.before) == 0 && step.effects.iter().any(starts);
    let wanted = |name: &String| told.says_no(name, &step.world.setup) && !before.contains(name);
    let modules = told.modules.iter().flat_map(|(modules, _)| modules.keys());
    ensure(!is_new || modules.into_iter().any(wanted), "C5", || {
        format!("a converge is asked for to remove what is being removed: {before:?}")
    })
}

/// Whether the release was foreign when the operator listed the releases, so that it could know that.
fn was_foreign(step: &SimStep<'_>, name: &str) -> bool {
    step.life.listed.get(name) == Some(&false)
}
