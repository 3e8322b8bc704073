//! U1: nothing of a module is removed while it waits for files of its source, or while the sources cannot be read. U2:
//! a module with a source works only with the files of its source, and a module without a source never works with files
//! of a source. U3: files are judged once, for a reason. U4: the first converge waits for the kept copies. U5: in the
//! end the newest good version is in use. U6: the operator names the sources that are applied. U7: the end of a source
//! is never held as a loss.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::failure::Class;
use addon_core::module::{Edition, Origin};
use addon_core::operator::effect::{Effect, FilesVerdict, HookRun, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::health::Health;
use addon_core::operator::query::{HeldBy, ModuleReport};
use names::ModuleName;
use serde_json::Value;

use super::{SimStep, Violation, ensure};
use crate::life::{Life, Seen};
use crate::sources::{MARK, Quality, version_in};
use crate::world::{World, document};

/// The health of a module after the step.
fn health_of(step: &SimStep<'_>, module: &ModuleName) -> Health {
    let report = step.after.modules.get(module.as_str());
    report.map_or(Health::Unknown, |report| report.health)
}

/// The number of failures in a row after which files are given up.
const MOST: u32 = 3;

/// The judgements on files, and whether the kept copies were read.
#[derive(Debug, Default)]
pub(super) struct Sources {
    trials: BTreeMap<String, Trial>,
    /// The modules whose enabled scripts failed last.
    failing_scripts: BTreeSet<String>,
    has_read_copies: bool,
    /// The number of readings of the ConfigMap. A source that only the second reading names may come after the start.
    readings: u32,
}

/// The files in use that were not judged yet.
#[derive(Debug)]
struct Trial {
    edition: Edition,
    failures: u32,
    /// Whether other files did well before.
    has_former: bool,
    /// Whether the module did well just before, so that too many failures must be told.
    must: bool,
}

impl Sources {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        if step.world.shelves.is_empty() {
            return Ok(());
        }
        self.has_read_copies |= matches!(step.event, Event::CopiesRead);
        self.readings += u32::from(matches!(step.event, Event::ConfigChanged(..)));
        for effect in step.effects {
            match effect {
                Effect::StartJob(job) => {
                    keeps(step, job)?;
                    works_with_its_files(step, job)?;
                }
                Effect::TakeUpFiles(module, edition) => self.taken_up(step, module, *edition),
                Effect::Tell(Notice::ModuleFailed { module, failure, .. }) => {
                    self.failed(step, module, failure.class)?;
                }
                Effect::Tell(Notice::ScriptFailed { module, failure, .. }) => {
                    self.failing_scripts.insert(module.to_string());
                    self.failed(step, module, failure.class)?;
                }
                Effect::Tell(Notice::ScriptAnswered { module, .. }) => {
                    self.failing_scripts.remove(module.as_str());
                }
                Effect::Tell(Notice::ModuleReady { module, .. }) => self.succeeded(step, module)?,
                Effect::Tell(Notice::ConvergeStarted { .. })
                    if step.before.status.not_started && self.readings <= 1 =>
                {
                    ensure(self.has_read_copies || step.life.told.named().is_empty(), "U4", || {
                        "the first converge begins before the kept copies were read".to_owned()
                    })?;
                }
                _ => {}
            }
        }
        let judged = step.effects.iter().filter_map(|effect| match effect {
            Effect::JudgeFiles(module, edition, verdict) => Some((module, *edition, verdict)),
            _ => None,
        });
        for (module, edition, verdict) in judged {
            self.judged(step, module, edition, verdict)?;
        }
        none_begins_without_files(step)?;
        no_end_is_held(step)
    }

    fn taken_up(&mut self, step: &SimStep<'_>, module: &ModuleName, edition: Edition) {
        self.trials.remove(module.as_str());
        let reading = step.life.told.reading(edition);
        if let Some(Origin::Source { has_former }) = reading.map(|reading| reading.origin) {
            let before = step.before.modules.get(module.as_str());
            let was_well = before.is_none_or(|module| module.state == "Ready" || module.state == "Disabled");
            // A run that has failed may have begun in the same step.
            let is_plain = step.is_alone() && matches!(step.event, Event::ModuleRead(..));
            let trial = Trial {
                edition,
                failures: 0,
                has_former,
                must: has_former && was_well && is_plain,
            };
            self.trials.insert(module.to_string(), trial);
        }
    }

    fn failed(&mut self, step: &SimStep<'_>, module: &ModuleName, class: Class) -> Result<(), Violation> {
        if matches!(class, Class::Unavailable | Class::Held) {
            return Ok(());
        }
        let Some(trial) = self.trials.get_mut(module.as_str()) else {
            return Ok(());
        };
        trial.failures += 1;
        let edition = trial.edition;
        let is_judged = step
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::JudgeFiles(_, other, FilesVerdict::Bad(_)) if *other == edition));
        ensure(!trial.must || trial.failures != MOST || is_judged, "U3", || {
            format!("{module} failed {MOST} times with new files, and they are kept")
        })
    }

    fn succeeded(&mut self, step: &SimStep<'_>, module: &ModuleName) -> Result<(), Violation> {
        let Some(Trial { edition, .. }) = self.trials.get(module.as_str()) else {
            return Ok(());
        };
        let is_judged = step
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::JudgeFiles(_, other, _) if other == edition));
        let waits = self.failing_scripts.contains(module.as_str()) || health_of(step, module) > Health::Healthy;
        // The source may have ended while the run was under way, even if it was named again since.
        let are_in_use = step.life.told.has_files_of_source(module.as_str());
        ensure(is_judged || waits || !are_in_use, "U3", || {
            format!("{module} ran with new files, and they are not called good")
        })
    }

    fn judged(
        &mut self,
        step: &SimStep<'_>,
        module: &ModuleName,
        edition: Edition,
        verdict: &FilesVerdict,
    ) -> Result<(), Violation> {
        let is_refusal = |effect: &Effect| matches!(effect, Effect::Tell(Notice::FilesRefused { module: other, .. }) if other == module);
        let is_refused = step.effects.iter().any(is_refusal);
        let trial = self.trials.remove(module.as_str());
        let of_trial = trial.as_ref().is_some_and(|trial| trial.edition == edition);
        let failed = trial
            .as_ref()
            .is_some_and(|trial| trial.has_former && trial.failures >= MOST);
        let health = health_of(step, module);
        let gets_unhealthy = trial.as_ref().is_some_and(|trial| trial.has_former) && health == Health::Unhealthy;
        let is_right = match verdict {
            FilesVerdict::Good => of_trial && health <= Health::Healthy,
            FilesVerdict::Bad(_) => is_refused || of_trial && (failed || gets_unhealthy),
        };
        if !of_trial {
            self.trials.extend(trial.map(|trial| (module.to_string(), trial)));
        }
        ensure(is_right, "U3", || {
            format!("the files {edition:?} of {module} are judged {verdict:?}")
        })
    }

    /// U5, U6: the world at rest.
    pub(super) fn at_rest(&self, world: &World, life: &Life, seen: &Seen) -> Result<(), Violation> {
        let told = &life.told;
        if world.shelves.is_empty() {
            return Ok(());
        }
        let known = (!told.are_sources_unknown()).then(|| told.named().clone());
        ensure(life.sources() == known, "U6", || {
            format!("the sources are {:?}, but should be {known:?}", life.sources())
        })?;
        ensure(self.has_read_copies || known.is_none(), "U5", || {
            "no copies were read".to_owned()
        })?;
        for name in told.named().keys() {
            let Some(shelf) = world.shelves.get(name) else { continue };
            let spec = told.knows(name).filter(|_| told.has_files_of_source(name));
            let in_use = spec.and_then(|spec| usize::try_from(*spec.values.get(MARK)?).ok());
            let wanted = match shelf.offered() {
                Some(newest) if shelf.quality(newest) == Quality::Mistake => None,
                Some(newest) => Some(newest),
                None => shelf.record.good,
            };
            ensure(wanted.is_none() || in_use == wanted, "U5", || {
                format!("{name} has version {in_use:?}, but should have {wanted:?}: {shelf:?}")
            })?;
            let runs = seen.modules.get(name).is_some_and(|module| module.state == "Ready");
            let is_bad = in_use.is_some_and(|version| shelf.quality(version) == Quality::FailsHelm);
            ensure(!runs || !is_bad || !shelf.module.chart, "U5", || {
                format!("{name} is ready with version {in_use:?}, which cannot work")
            })?;
        }
        Ok(())
    }
}

/// U1.
fn keeps(step: &SimStep<'_>, job: &Job) -> Result<(), Violation> {
    let name = match job {
        Job::DeleteRelease { release, .. } => release.as_str(),
        Job::RunHook(HookRun { hook, labels, .. }, _) if labels.cause.is_removal() => {
            hook.owner.module().map(ModuleName::as_str).unwrap_or_default()
        }
        _ => return Ok(()),
    };
    let told = &step.life.told;
    ensure(!told.lacks_files(name) || step.is_being_removed(name), "U1", || {
        format!("{name} is removed while it waits for its files")
    })?;
    let is_known = told.knows(name).is_some();
    ensure(is_known || !told.are_sources_unknown(), "U1", || {
        format!("{name} is removed while nobody can read whether it has a source")
    })?;
    // Deleting the ConfigMap takes no source out.
    let was_ours = step
        .world
        .shelves
        .get(name)
        .is_some_and(|shelf| shelf.record.good.is_some());
    ensure(is_known || !was_ours || !told.is_lost(), "U1", || {
        format!("{name} came from a source, and is removed because the ConfigMap is lost")
    })
}

/// U2.
fn works_with_its_files(step: &SimStep<'_>, job: &Job) -> Result<(), Violation> {
    let told = &step.life.told;
    let (name, values): (&ModuleName, Value) = match job {
        Job::SyncRelease { module, values, .. } => (module, document(values)),
        Job::RunEnabledScript { module, values, .. } => (module, document(values)),
        _ => return Ok(()),
    };
    let name = name.as_str();
    // A run that was under way when a source came or went goes on to its end, and so do the hooks of the files in use.
    if matches!(job, Job::SyncRelease { .. }) && !step.before.modules.get(name).is_some_and(is_idle) {
        return Ok(());
    }
    let version = version_in(name, &values);
    let spec = told
        .knows(name)
        .filter(|_| told.has_files_of_source(name) || told.is_withdrawn(name));
    let allowed = spec.and_then(|spec| usize::try_from(*spec.values.get(MARK)?).ok());
    ensure(version == allowed, "U2", || {
        format!("{name} works with version {version:?}, and may use {allowed:?}")
    })?;
    ensure(!told.lacks_files(name), "U2", || {
        format!("{name} begins to work while it waits for its files")
    })
}

/// U2: no run begins while its module waits for its files.
fn none_begins_without_files(step: &SimStep<'_>) -> Result<(), Violation> {
    let told = &step.life.told;
    let begins = |after: &&ModuleReport| {
        let before = step.before.modules.get(&after.name);
        let runs = !is_idle(after) && after.state != "Deleting";
        runs && before.is_some_and(is_idle) && told.lacks_files(&after.name)
    };
    let begun = step.after.modules.values().find(begins).map(|module| &module.name);
    ensure(begun.is_none(), "U2", || {
        format!("a run of {begun:?} begins, and it waits for its files")
    })
}

/// Whether neither a run nor a removal of the module is under way.
fn is_idle(module: &ModuleReport) -> bool {
    module.state == "Ready" || module.state == "Disabled"
}

/// U7.
fn no_end_is_held(step: &SimStep<'_>) -> Result<(), Violation> {
    let told = &step.life.told;
    let held = step.after.status.held.iter().filter(|held| held.by == HeldBy::Brake);
    let mut ended = held.filter(|held| told.is_withdrawn(&held.release) || told.ended().contains(&held.release));
    let ended = ended.next();
    ensure(ended.is_none(), "U7", || {
        format!("people took its source out, and {ended:?} is held as a loss")
    })
}
