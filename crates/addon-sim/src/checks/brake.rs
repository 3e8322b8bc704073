//! R10: of the modules that no source names any more, at most as many are removed within ten minutes as the brake allows,
//! unless a person confirmed it. R11: a held release is not removed, a few removals are never held, and a confirmed
//! removal is not held any more.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{Effect, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::query::HeldBy;

use super::{SimStep, Violation, ensure};
use crate::life::Seen;

/// Ten minutes, in microseconds.
const WINDOW: u64 = 600_000_000;
/// The number of removals within `WINDOW` that need no confirmation.
const FEW: usize = 2;

/// The releases that were removed in this life although no source had switched them off, and those that a person confirmed.
#[derive(Debug, Default)]
pub(super) struct Brake {
    /// For each release, the time at which its removal began, in microseconds of the world.
    gone: BTreeMap<String, u64>,
    confirmed: BTreeSet<String>,
}

impl Brake {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        self.confirmed.extend(step.life.told.ended().iter().cloned());
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
        // A module that appeared in the directories after they were read stays, even if it is the only one.
        let has_come = |name: &String| step.life.told.knows(name).is_none() && step.world.module(name).is_some();
        let new = after.difference(&before).filter(|name| !has_come(name));
        let new: BTreeSet<_> = new.collect();
        let is_whole = step.life.told.modules.as_ref();
        let is_whole = is_whole.is_some_and(|(_, complete)| {
            // A module that has only a source has no directory.
            let mut directories = step.life.told.directories().keys();
            let is_left = directories.any(|name| step.world.module(name).is_some());
            *complete && step.life.told.found_any_directory() && is_left
        });
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
        // A removal that was begun for another reason goes on.
        let is_begun = |name: &String| {
            step.before
                .modules
                .get(name)
                .is_some_and(|module| module.state == "Deleting")
        };
        let new = removals(step.after).into_iter().chain(removed(step));
        let new: Vec<String> = new
            .filter(|name| !before.contains(name) && !is_begun(name))
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

    /// All releases of ours that exist, or existed a short time ago.
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

    /// The releases that no source names.
    fn unspoken(&self, step: &SimStep<'_>) -> BTreeSet<String> {
        let mut there = self.there(step);
        // While its script fails, a module keeps its last verdict, which may be off by silence.
        let stands_off = |name: &String| {
            let module = step.after.modules.get(name);
            module.is_some_and(|module| !module.enabled && module.enabled_by == "default")
        };
        there.retain(|name| is_unspoken(step, name) || stands_off(name) || self.gone.contains_key(name));
        there
    }
}

/// Whether no source says whether the module runs, or there is no such module.
fn is_unspoken(step: &SimStep<'_>, name: &str) -> bool {
    let told = &step.life.told;
    told.knows(name).is_none() || told.opinion(name).is_none()
}

fn held(seen: &Seen) -> BTreeSet<String> {
    let held = seen.status.held.iter().filter(|held| held.by == HeldBy::Brake);
    held.map(|held| held.release.clone()).collect()
}

/// Modules whose removals have ended. If nothing of a module exists, its removal ends in the step in which it begins.
fn removed(step: &SimStep<'_>) -> impl Iterator<Item = String> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Tell(Notice::ModuleDeleted { module }) => Some(module.to_string()),
        _ => None,
    })
}

/// The releases whose removals are queued, with a module or without one.
fn removals(seen: &Seen) -> BTreeSet<String> {
    let tasks = seen.queues.iter().flat_map(|queue| &queue.tasks);
    let name = |task: &addon_core::operator::query::TaskReport| match task.kind {
        "ModuleDelete" => Some(task.module.clone()),
        "ModulePurge" => task.description.split(':').nth(2).map(str::to_owned),
        _ => None,
    };
    tasks.filter_map(name).collect()
}
