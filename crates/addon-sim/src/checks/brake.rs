//! R10: of the modules that nobody names any more only so many go within ten minutes as the brake lets pass, unless a person
//! confirmed it. R11: nothing goes while it is held, a few are never held, and what is confirmed is held no more.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{Effect, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::query::HeldBy;

use super::{SimStep, Violation, ensure};
use crate::life::Seen;

/// Ten minutes, in microseconds.
const WINDOW: u64 = 600_000_000;
/// So many go in any case.
const FEW: usize = 2;

/// The releases that went in this life although nobody had said so, and those that a person wants gone.
#[derive(Debug, Default)]
pub(super) struct Brake {
    /// When each was taken up.
    gone: BTreeMap<String, u64>,
    confirmed: BTreeSet<String>,
}

impl Brake {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        self.confirmed.retain(|name| is_unspoken(step, name));
        self.gone.retain(|_, at| step.clock - *at < WINDOW);
        let (before, after) = (held(step.before), held(step.after));
        self.confirmations(step, &before, &after)?;
        for effect in step.effects {
            if let Effect::StartJob(Job::DeleteRelease { release, .. }) = effect {
                ensure(!after.contains(release), "R11", || {
                    format!("{release} is deleted while its removal is held")
                })?;
            }
        }
        self.taken_up(step)?;
        // A module that has come into the directories since they were read stays, were it the only one.
        let has_come = |name: &String| step.life.told.knows(name).is_none() && step.world.module(name).is_some();
        let new = after.difference(&before).filter(|name| !has_come(name));
        let new: BTreeSet<_> = new.collect();
        let is_whole = step.life.told.modules.as_ref();
        let is_whole = is_whole.is_some_and(|(modules, complete)| *complete && !modules.is_empty());
        let is_whole = is_whole && !step.world.is_common_file_gone();
        let unspoken = self.unspoken(step);
        ensure(new.is_empty() || !is_whole || unspoken.len() > FEW, "R11", || {
            format!("{new:?} are held, and no more than {unspoken:?} would go")
        })
    }

    fn confirmations(
        &mut self,
        step: &SimStep<'_>,
        before: &BTreeSet<String>,
        after: &BTreeSet<String>,
    ) -> Result<(), Violation> {
        let Event::PurgeConfirmed(names) = step.event else {
            return Ok(());
        };
        let confirmed: BTreeSet<String> = names.intersection(before).cloned().collect();
        let still: Vec<_> = confirmed.intersection(after).collect();
        ensure(still.is_empty(), "R11", || {
            format!("{still:?} are confirmed, and still held")
        })?;
        self.confirmed.extend(confirmed);
        Ok(())
    }

    fn taken_up(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        let before = removals(step.before);
        let new = removals(step.after).into_iter().chain(removed(step));
        let new: Vec<String> = new
            .filter(|name| !before.contains(name))
            .filter(|name| is_unspoken(step, name) && !self.confirmed.contains(name))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.gone.extend(new.into_iter().map(|name| (name, step.clock)));
        let there = self.there(step);
        let goes = self.gone.len();
        ensure(goes <= FEW || goes * 3 < there.len(), "R10", || {
            format!("{:?} go, of {there:?}, and nobody said so", self.gone)
        })
    }

    /// All that is there of ours, or was a while ago.
    fn there(&self, step: &SimStep<'_>) -> BTreeSet<String> {
        let listed = step.life.listed.iter().filter(|(_, ours)| **ours).map(|(name, _)| name);
        let releases = step.world.releases.iter().filter(|(_, release)| release.ours);
        let modules = step.before.modules.values().chain(step.after.modules.values());
        let modules = modules
            .filter(|module| module.state != "Disabled")
            .map(|module| &module.name);
        let known = listed.chain(releases.map(|(name, _)| name)).chain(modules);
        known.chain(self.gone.keys()).cloned().collect()
    }

    /// The releases that would go if silence were an answer.
    fn unspoken(&self, step: &SimStep<'_>) -> BTreeSet<String> {
        let mut there = self.there(step);
        // As long as its script fails a module keeps the verdict of before, which may be silence.
        let stands_off = |name: &String| {
            let module = step.after.modules.get(name);
            module.is_some_and(|module| !module.enabled && module.enabled_by == "default")
        };
        there.retain(|name| is_unspoken(step, name) || stands_off(name) || self.gone.contains_key(name));
        there
    }
}

/// Nobody says whether it is to run, or it is no module any more.
fn is_unspoken(step: &SimStep<'_>, name: &str) -> bool {
    let told = &step.life.told;
    told.knows(name).is_none() || told.opinion(name).is_none()
}

fn held(seen: &Seen) -> BTreeSet<String> {
    let held = seen.status.held.iter().filter(|held| held.by == HeldBy::Brake);
    held.map(|held| held.release.clone()).collect()
}

/// Modules whose removals have ended, be it as soon as they were taken up, as of some nothing is there.
fn removed(step: &SimStep<'_>) -> impl Iterator<Item = String> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Tell(Notice::ModuleDeleted { module }) => Some(module.to_string()),
        _ => None,
    })
}

/// The releases that stand in a queue to be removed, with a module or without one.
fn removals(seen: &Seen) -> BTreeSet<String> {
    let tasks = seen.queues.iter().flat_map(|queue| &queue.tasks);
    let name = |task: &addon_core::operator::query::TaskReport| match task.kind {
        "ModuleDelete" => Some(task.module.clone()),
        "ModulePurge" => task.description.split(':').nth(2).map(str::to_owned),
        _ => None,
    };
    tasks.filter_map(name).collect()
}
