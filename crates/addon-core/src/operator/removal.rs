//! What may be removed, and how. A release goes only on a positive sign: its module was switched off by somebody, or
//! is gone from directories that were read completely. A release that is not ours is never touched.

pub(super) mod brake;
mod certainty;
pub(super) mod rereading;

use std::collections::{BTreeMap, BTreeSet};

use self::brake::Brake;

use super::Operator;
use super::effect::{Job, Notice};
use super::event::ReleaseSummary;
use super::task::{Lane, Task};
use crate::failure::Failure;
use crate::module::lifecycle::Lifecycle;
use crate::name::{ModuleName, Owner};
use crate::release::ConfigTrace;

/// The releases of the namespace.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// Name, and whether it is ours. `None` until they were listed.
    releases: Option<BTreeMap<String, bool>>,
    /// The traces of the ConfigMap of which releases of ours were made, as far as they are marked with one.
    traces: BTreeMap<String, ConfigTrace>,
    /// Releases of ours that may exist because a helm failed. They are removed like others, but count for nothing.
    suspected: BTreeSet<String>,
    /// It keeps too much from going at once.
    pub(super) brake: Brake,
}

impl Removal {
    pub(super) fn listed(&mut self, releases: Vec<ReleaseSummary>) {
        let ours = releases.iter().filter(|release| release.ours);
        let traces = ours.filter_map(|release| Some((release.name.clone(), release.config?)));
        self.traces = traces.collect();
        self.releases = Some(
            releases
                .into_iter()
                .map(|release| (release.name, release.ours))
                .collect(),
        );
    }

    /// The traces of the ConfigMap on the releases of ours that were there at the start.
    pub(super) fn traces(&self) -> BTreeMap<String, ConfigTrace> {
        self.traces.clone()
    }

    pub(super) fn is_listed(&self) -> bool {
        self.releases.is_some()
    }

    /// A release of that name exists and is ours.
    pub(super) fn is_ours(&self, name: &str) -> bool {
        let known = self.releases.as_ref().and_then(|releases| releases.get(name));
        known.copied().unwrap_or_else(|| self.suspected.contains(name))
    }

    /// A release of ours exists now.
    pub(super) fn exists(&mut self, name: &str) {
        if let Some(releases) = &mut self.releases {
            releases.insert(name.to_owned(), true);
        }
    }

    /// A helm failed, and may have left a release of ours behind.
    pub(super) fn may_exist(&mut self, name: &str) {
        self.suspected.insert(name.to_owned());
    }

    /// A helm of ours was at work until its deadline: a release of others is refused before helm begins, so that there was none.
    pub(super) fn forget_foreign(&mut self, name: &str) {
        if let Some(releases) = &mut self.releases
            && releases.get(name) == Some(&false)
        {
            releases.remove(name);
        }
    }

    fn gone(&mut self, name: &str) {
        self.suspected.remove(name);
        if let Some(releases) = &mut self.releases {
            releases.remove(name);
        }
    }

    pub(super) fn ours(&self) -> impl DoubleEndedIterator<Item = &str> {
        let all = self.releases.iter().flatten();
        all.filter(|(_, ours)| **ours).map(|(name, _)| name.as_str())
    }
}

impl Operator {
    /// Lets the removal at the head of a module's lane go on. False if it must wait for a slot.
    pub(super) fn advance_delete(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if self.modules.get(name).is_none_or(|unit| unit.enabled) {
            self.lanes.finish(lane);
            return true;
        }
        // It hung when a converge began, which may want the module after all.
        if self.converge.assesses_by_itself() && self.lanes.head(lane).is_some_and(|head| !head.begun) {
            return false;
        }
        if self.lanes.begin_head(&mut self.cx, lane)
            && let Some(unit) = self.modules.get_mut(name)
        {
            unit.life.begin_delete(unit.hooks_known);
        }
        self.take_steps(lane, name).unwrap_or_else(|| {
            self.delete_succeeded(lane, name);
            true
        })
    }

    pub(super) fn start_uninstall(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.jobs.helm_slot(&self.cx.policy) {
            return false;
        }
        let release = name.to_string();
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::DeleteRelease {
                release,
                ticket,
            });
        true
    }

    fn delete_succeeded(&mut self, lane: &Lane, name: &ModuleName) {
        self.lanes.succeeded(lane);
        self.lanes.finish(lane);
        let owner = Owner::Module(name.clone());
        self.apply_deferred(name);
        self.stop_monitors(&owner);
        self.end_hooks(&owner, "their module was removed");
        // Without patches the layers are those that were accepted before, so this cannot be refused.
        let _ = self.values.forget_patches(&owner);
        self.values.forget_empty_config(&owner);
        self.bindings.forget(&owner);
        self.schedules.rebuild(&self.cx, &self.bindings);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.life = Lifecycle::Disabled;
            unit.hooks_known = false;
            unit.crds_ensured = false;
            unit.last_failure = None;
            unit.failures = 0;
            unit.upgrade_held = false;
        }
        self.drifts.forget(name);
        self.config.forget_confirmation(name);
        self.cx.tell(Notice::ModuleDeleted { module: name.clone() });
    }

    /// A life of the module is over, and with it all that its hooks had to do in whichever queue.
    pub(super) fn end_hooks(&mut self, owner: &Owner, reason: &'static str) {
        self.lanes.forsake_hooks(owner);
        let of_owner = |task: &Task| task.as_hook().is_some_and(|task| task.hook.owner == *owner);
        self.lanes.drop_tasks(&mut self.cx, reason, of_owner);
    }

    pub(super) fn delete_failed(&mut self, lane: &Lane, name: &ModuleName, failure: Failure) {
        let (_, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.last_failure = Some(failure.report.clone());
            unit.failures = unit.failures.saturating_add(1);
        }
        // Its section may be what is wrong, and mended by now.
        self.apply_what_nothing_holds(name);
        self.cx.tell(Notice::ModuleDeleteFailed {
            module: name.clone(),
            failure,
            retry_in,
        });
    }

    /// helm uninstalled the release at the head of a lane.
    pub(super) fn release_deleted(&mut self, lane: &Lane) {
        if let Some(name) = self.lanes.module_at(lane) {
            self.step_succeeded(&name);
            self.removal.gone(name.as_str());
            self.lanes.resume(lane);
        } else if let Some(Task::Purge { release }) = self.lanes.finish(lane) {
            self.lanes.close(lane);
            self.removal.gone(&release);
            self.cx.tell(Notice::ReleasePurged { release });
        }
    }

    /// After the first converge: releases of ours whose modules are gone, as far as nothing holds them.
    pub(super) fn purge(&mut self) {
        // A module that is held for a lost configuration goes on when people have spoken, and all of them when a trial is passed.
        if !self.config.losses.releases().is_empty() || self.is_on_trial() {
            return;
        }
        self.brake();
        let goes = |release: &String| !self.removal.brake.holds(release) && !self.lanes.is_purged(release);
        let mut orphans: Vec<String> = self.orphans().filter(goes).collect();
        if !orphans.is_empty() && !self.rereading.is_confirmed() {
            self.rereading.purge_waits = true;
            return;
        }
        let has_come = |release: &mut String| {
            !self.removal.brake.is_confirmed(release) && !self.rereading.confirms_absence(release)
        };
        let come = orphans.extract_if(.., has_come);
        let come: Vec<String> = come.collect();
        self.hold_what_has_come(come);
        for release in orphans.into_iter().rev() {
            self.removal.brake.passes(&release, self.cx.now.tick);
            let lane = Lane::Release(release.clone());
            self.lanes.push(&self.cx, lane, Task::Purge { release });
        }
    }

    pub(super) fn advance_purge(&mut self, lane: &Lane, release: String) -> bool {
        if !self.jobs.helm_slot(&self.cx.policy) {
            return false;
        }
        self.lanes.begin_head(&mut self.cx, lane);
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::DeleteRelease {
                release,
                ticket,
            });
        true
    }

    pub(super) fn purge_failed(&mut self, lane: &Lane, release: String, failure: Failure) {
        let (_, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        self.cx.tell(Notice::PurgeFailed {
            release,
            failure,
            retry_in,
        });
    }
}
