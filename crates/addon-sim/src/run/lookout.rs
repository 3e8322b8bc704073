//! The watch of releases, which reports a release whenever it differs from the last report.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Notice};
use addon_core::operator::event::{Event, ReleaseSight};

use super::{Due, Run};
use crate::action::{Action, Harm};
use crate::checks::Violation;

/// The time after a repair from which on new damage begins a new series of pauses, in milliseconds.
const CALM: u64 = 600_000;

impl Run<'_> {
    /// Begins the list of releases with these. Releases that appear later are added.
    pub(super) fn list_releases(&mut self, expected: Vec<String>) {
        self.life.lookout = expected.into_iter().map(|name| (name, None)).collect();
        self.spread_sights();
    }

    /// Begins the reports about all releases.
    pub(super) fn begin_lookout(&mut self) {
        self.life.watches_releases = true;
        self.spread_sights();
    }

    /// Checks all releases, because they may have changed, and reports those that differ from the last report.
    pub(super) fn spread_sights(&mut self) {
        let lookout = &mut self.life.lookout;
        for name in self.world.releases.keys() {
            if !lookout.contains_key(name) {
                lookout.insert(name.clone(), None);
            }
        }
        if !self.life.watches_releases {
            return;
        }
        let due: BTreeSet<&String> = self
            .future
            .values()
            .filter_map(|due| match due {
                Due::Sight(name) => Some(name),
                _ => None,
            })
            .collect();
        let news = lookout.iter().filter(|(name, told)| {
            let (drift, again) = self.world.drift(name);
            !due.contains(name) && (drift != **told || again.is_some())
        });
        let news: Vec<String> = news.map(|(name, _)| name.clone()).collect();
        for name in news {
            let delay = self.world.dice("sight").between(0, 300);
            self.plan(delay, Due::Sight(name));
        }
        self.draw_healths();
        self.mend_what_stays_back();
    }

    /// Damages a repaired release once more, mostly right when the pauses are about to start again.
    pub(super) fn threaten(&mut self, effect: &Effect) {
        match effect {
            Effect::Tell(Notice::ReleaseDrifted { module, .. }) => {
                self.repaired.insert(module.to_string());
            }
            Effect::Tell(Notice::ModuleReady { module, .. })
                if self.repaired.remove(module.as_str()) && self.world.dice("relapse").chance(25) =>
            {
                self.plan(CALM, Due::Relapse(module.to_string()));
            }
            _ => {}
        }
    }

    pub(super) fn relapse(&mut self, release: String) -> Result<(), Violation> {
        let harm = Harm::Object;
        self.world.suffer(&Action::Damage {
            release: release.clone(),
            harm,
        });
        self.look_at_release(release)
    }

    /// Checks one release.
    pub(super) fn look_at_release(&mut self, release: String) -> Result<(), Violation> {
        let (drift, again) = self.world.drift(&release);
        if let Some(again) = again {
            self.plan(again.saturating_sub(self.clock) / 1000, Due::Sight(release.clone()));
        }
        if self.life.lookout.insert(release.clone(), drift.clone()) == Some(drift.clone()) {
            return Ok(());
        }
        self.checks.sighted(self.clock, &release, drift.as_ref());
        self.tell(&Event::ReleaseSeen(ReleaseSight { release, drift }), None)
    }
}
