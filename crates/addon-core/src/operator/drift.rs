//! Releases that somebody damages between two runs of their modules, and when a run restores them.
//!
//! What is told of a release is a state and not a stroke, and it counts only while nobody of us works on the module: what
//! our own run leaves behind is seen after it. Must never run a module for what we do to its release ourselves, nor
//! without a pause after a run that did not help.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Operator;
use super::effect::Notice;
use super::event::{Drift, ReleaseSight};
use super::jobs::Chore;
use super::modules::{Turn, Unit};
use super::query::Waiting;
use super::task::{Lane, RunReason, Task};
use crate::name::ModuleName;
use crate::queue::Entry;
use crate::time::Tick;
use crate::values::section::Maintenance;

/// How long damage must last: who deletes an object may be about to make it anew, and what a run has done is seen a
/// moment after its end.
const SETTLES: Duration = Duration::from_secs(1);
/// The pause after the first run that restored something; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause, about as long as the original takes to look.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Damage that comes so long after the last is not the work of somebody who insists.
const CALM: Duration = Duration::from_mins(10);

/// What is known of the releases of modules.
#[derive(Debug, Default)]
pub(super) struct Drifts(BTreeMap<ModuleName, Seen>);

#[derive(Debug, Default)]
struct Seen {
    drift: Option<Drift>,
    /// Nothing is done about it before.
    due: Tick,
    /// It was told to people, once for each run that it takes.
    told: bool,
    /// Runs for its sake, one soon after the other.
    restored: u32,
    /// When the last of them ended.
    last: Tick,
}

impl Seen {
    /// What came before is forgotten after a while.
    fn calm_down(&mut self, now: Tick) {
        if now - self.last > CALM {
            self.restored = 0;
        }
    }

    fn pause(&self) -> Duration {
        match self.restored {
            0 => Duration::ZERO,
            times => (FIRST_PAUSE * (1 << (times - 1).min(6))).min(LONGEST_PAUSE),
        }
    }

    fn postpone(&mut self, now: Tick) {
        self.due = (now + SETTLES).max(self.last + self.pause());
        self.told = false;
    }
}

impl Drifts {
    /// A run of the module ended well. If people were told of damage, it has begun after that.
    pub(super) fn ran(&mut self, module: &ModuleName, now: Tick) {
        if let Some(seen) = self.0.get_mut(module) {
            if seen.told {
                seen.restored = seen.restored.saturating_add(1);
                seen.last = now;
            }
            seen.postpone(now);
        }
    }

    /// The module has no release any more, and is not to have one.
    pub(super) fn forget(&mut self, module: &ModuleName) {
        self.0.remove(module);
    }
}

fn is_released(unit: &Unit) -> bool {
    unit.turn == Turn::Passed && unit.found.has_chart
}

impl Operator {
    /// Releases are watched once there is one of ours and its module has passed: the runs before look for themselves.
    pub(super) fn watch_releases(&mut self) {
        if self.cx.policy.restores && self.modules.values().any(is_released) {
            self.run_chore(Chore::WatchReleases);
        }
    }

    /// The modules whose runs have left a release.
    pub(super) fn released(&self) -> Vec<ModuleName> {
        let released = self.modules.values().filter(|unit| is_released(unit));
        released.map(|unit| unit.found.name.clone()).collect()
    }

    pub(super) fn release_seen(&mut self, ReleaseSight { release, drift }: ReleaseSight) {
        let Ok(name) = ModuleName::parse(&release) else { return };
        if !self.modules.contains_key(&name) {
            return;
        }
        if drift.is_none() && !self.drifts.0.contains_key(&name) {
            return;
        }
        let now = self.cx.now.tick;
        let seen = self.drifts.0.entry(name).or_default();
        if seen.drift.is_none() && drift.is_some() {
            seen.calm_down(now);
            seen.postpone(now);
        }
        seen.drift = drift;
    }

    /// Lets those modules run whose releases have been damaged for long enough.
    pub(super) fn restore_releases(&mut self) {
        let now = self.cx.now.tick;
        let due = self.drifts.0.iter().filter(|(name, seen)| {
            let waits = seen.drift.is_some() && !seen.told && seen.due <= now;
            waits && self.is_left_alone(name)
        });
        let due: Vec<ModuleName> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(seen) = self.drifts.0.get_mut(&name) else {
                continue;
            };
            let Some(drift) = seen.drift.clone() else { continue };
            seen.told = true;
            let times = seen.restored + 1;
            let reason = match drift {
                Drift::Absent(_) => RunReason::ObjectAbsent,
                Drift::Altered { .. } => RunReason::ObjectAltered,
                Drift::Status(_) => RunReason::UnexpectedStatus,
            };
            self.cx.tell(Notice::ReleaseDrifted {
                module: name.clone(),
                drift,
                times,
            });
            self.rerun(&name, reason);
        }
    }

    /// The module is to have a release, its objects are in nobody's hands, and nobody of us works on it or is about to.
    fn is_left_alone(&self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name) else {
            return false;
        };
        let has_release = unit.enabled && unit.found.has_chart && unit.found.broken.is_none();
        let is_ours_to_keep = self.config.maintenance(name) == Maintenance::Managed;
        if !has_release || !is_ours_to_keep || unit.turn.is_to_come() || self.converge.assesses_by_itself() {
            return false;
        }
        let lane = Lane::Module(name.clone());
        let deletes = |entry: &Entry<Task>| entry.task.is_removal();
        let busy = |head: &Entry<Task>| {
            let run = head.task.is_run();
            head.is_active() || deletes(head) || run && head.begun
        };
        !self.lanes.head(&lane).is_some_and(busy) && !self.lanes.behind_head(&lane).any(deletes)
    }

    pub(super) fn drift_timeout(&self) -> Option<(Tick, Waiting)> {
        let waiting = self
            .drifts
            .0
            .iter()
            .filter(|(name, seen)| seen.drift.is_some() && !seen.told && self.is_left_alone(name));
        let (name, seen) = waiting.min_by_key(|(_, seen)| seen.due)?;
        Some((seen.due, Waiting::Restoring(name.clone())))
    }
}
