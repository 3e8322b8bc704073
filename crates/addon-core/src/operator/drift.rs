//! Damage of releases between two runs of their modules, and when a run repairs it.
//!
//! Damage is a state and not a single event. It counts only while no run works on the module, because a run leaves changes of its own that
//! are seen after it. Must never run a module for a change that the operator made to its release itself, nor without a pause after a run that
//! did not help.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::Drift;
use super::query::Waiting;
use crate::name::ModuleName;
use crate::time::Tick;

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

    /// The release of a module was looked at.
    pub(super) fn hear(&mut self, name: ModuleName, drift: Option<Drift>, now: Tick) {
        if drift.is_none() && !self.0.contains_key(&name) {
            return;
        }
        let seen = self.0.entry(name).or_default();
        if seen.drift.is_none() && drift.is_some() {
            seen.calm_down(now);
            seen.postpone(now);
        }
        seen.drift = drift;
    }

    /// The modules whose releases have been damaged for long enough.
    pub(super) fn due(&self, now: Tick) -> Vec<ModuleName> {
        let due = self.waiting().filter(|(_, seen)| seen.due <= now);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// A run restores the release: people are told of this damage, and for this number of times in a row.
    pub(super) fn begin_repair(&mut self, name: &ModuleName) -> Option<(Drift, u32)> {
        let seen = self.0.get_mut(name)?;
        let drift = seen.drift.clone()?;
        seen.told = true;
        Some((drift, seen.restored + 1))
    }

    /// When the next damaged release is restored, of the modules that are left alone.
    pub(super) fn timeout(&self, is_left_alone: impl Fn(&ModuleName) -> bool) -> Option<(Tick, Waiting)> {
        let waiting = self.waiting().filter(|(name, _)| is_left_alone(name));
        let (name, seen) = waiting.min_by_key(|(_, seen)| seen.due)?;
        Some((seen.due, Waiting::Restoring(name.clone())))
    }

    /// Damaged releases of which people have not been told.
    fn waiting(&self) -> impl Iterator<Item = (&ModuleName, &Seen)> {
        self.0.iter().filter(|(_, seen)| seen.drift.is_some() && !seen.told)
    }

    /// The module has no release any more, and is not to have one.
    pub(super) fn forget(&mut self, module: &ModuleName) {
        self.0.remove(module);
    }
}
