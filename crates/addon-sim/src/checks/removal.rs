//! What may be removed: a release of ours, and only on a positive sign. And M4: a module that is being removed does
//! nothing else.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, HookRun, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::query::ModuleReport;

use super::needs::removals;
use super::{SimStep, Violation, ensure};
use crate::life::Seen;
use crate::told::Told;
use crate::world::World;

/// Why a converge begins that only removes.
const CERTAIN: &str = "ReloadAll-After-Removal-Became-Certain";

/// Signs that were given, and removals under way.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Modules that somebody switched off since they last ran.
    said_no: BTreeSet<String>,
    /// Releases whose modules are gone, or that a person wants gone.
    gone: BTreeSet<String>,
    deleting: BTreeSet<String>,
}

impl Removals {
    /// Takes note of the signs that stand at this moment.
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

    /// A removal that was given up before this step is none any more, whatever runs before the next one begins.
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

    /// A removal that failed is given up when its module is switched on again.
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
            // One that somebody has uninstalled meanwhile cannot be taken from anybody.
            let is_there = step.world.releases.contains_key(name);
            return ensure(self.gone.contains(name) || !is_there, "R5", || {
                format!("{name} is deleted without a reading of the directories that says that its module is gone")
            });
        };
        let begun = !self.deleting.insert(name.to_owned());
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

/// R7: a removal is taken up only while somebody says so. C5: nobody asks for a converge for the sake of removals that are
/// under way.
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

/// The release was foreign already when the operator listed the releases, so it could know.
fn was_foreign(step: &SimStep<'_>, name: &str) -> bool {
    step.life.listed.get(name) == Some(&false)
}
