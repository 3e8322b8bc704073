//! Damage of releases between two runs of their modules, and when a run repairs it.
//!
//! Damage is a state and not a single event. It counts only while no run works on the module, because the changes of a
//! run are seen only after the run. Must never run a module because of a change that the operator itself made, and never
//! without a pause after a run that did not help.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Tick;
use names::ModuleName;

use super::event::Drift;
use super::query::Waiting;

/// The time for which damage must last. A person who deletes an object may be about to create it again, and the effects
/// of a run are seen a moment after its end.
const SETTLES: Duration = Duration::from_secs(1);
/// The pause after the first run that restored a release. Each further run doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause, about as long as the interval at which the original looks for damage.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// If no damage comes for this long, the pauses start at the shortest again.
const CALM: Duration = Duration::from_mins(10);

/// The damage of modules' releases.
#[derive(Debug, Clone, Default)]
pub(super) struct Drifts(BTreeMap<ModuleName, Seen>);

#[derive(Debug, Clone, Default)]
struct Seen {
    drift: Option<Drift>,
    /// The time before which the damage is not repaired.
    due: Tick,
    /// Whether this damage was reported. It is reported once for each repair.
    told: bool,
    /// The number of repairs in a row.
    restored: u32,
    /// The end of the last repair.
    last: Tick,
}

impl Seen {
    /// Forgets earlier repairs after a calm time.
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
    /// Notes a successful run of the module. If damage was reported, this run was its repair.
    pub(super) fn ran(&mut self, module: &ModuleName, now: Tick) {
        if let Some(seen) = self.0.get_mut(module) {
            if seen.told {
                seen.restored = seen.restored.saturating_add(1);
                seen.last = now;
            }
            seen.postpone(now);
        }
    }

    /// Notes the damage of a release, or that it has none.
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

    /// The modules whose damage has lasted long enough to be repaired.
    pub(super) fn due(&self, now: Tick) -> Vec<ModuleName> {
        let due = self.waiting().filter(|(_, seen)| seen.due <= now);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Begins a repair. Returns the damage to report, and how often in a row it has been repaired, this time included.
    pub(super) fn begin_repair(&mut self, name: &ModuleName) -> Option<(Drift, u32)> {
        let seen = self.0.get_mut(name)?;
        let drift = seen.drift.clone()?;
        seen.told = true;
        Some((drift, seen.restored + 1))
    }

    /// The time of the next repair among the modules that no job works on.
    pub(super) fn timeout(&self, is_left_alone: impl Fn(&ModuleName) -> bool) -> Option<(Tick, Waiting)> {
        let waiting = self.waiting().filter(|(name, _)| is_left_alone(name));
        let (name, seen) = waiting.min_by_key(|(_, seen)| seen.due)?;
        Some((seen.due, Waiting::Restoring(name.clone())))
    }

    /// Damaged releases that have not been reported.
    fn waiting(&self) -> impl Iterator<Item = (&ModuleName, &Seen)> {
        self.0.iter().filter(|(_, seen)| seen.drift.is_some() && !seen.told)
    }

    /// Forgets the module's release, which is gone and not wanted.
    pub(super) fn forget(&mut self, module: &ModuleName) {
        self.0.remove(module);
    }
}
