//! The health of each new revision: most are healthy soon, some after a long time, some fail until a person cures them.

use addon_core::operator::event::Event;
use addon_core::operator::health::{HealthSight, Seen};
use addon_core::release::Status;

use super::{Due, Run};
use crate::checks::Violation;

impl Run<'_> {
    /// Draws the health of each revision that the lookout has not seen, and plans its reports.
    pub(super) fn draw_healths(&mut self) {
        // The revisions of a release that is made again begin anew.
        let there = &self.world.releases;
        self.life.healths.retain(|name, _| there.contains_key(name));
        let seen = &self.life.healths;
        let is_new = |name: &String, revision: u32| seen.get(name) != Some(&revision);
        let all = self.world.releases.iter();
        let deployed = all.filter(|(_, release)| release.ours && release.status == Status::Deployed);
        let new = deployed.filter(|(name, release)| is_new(name, release.revision));
        let new: Vec<(String, u32)> = new.map(|(name, release)| (name.clone(), release.revision)).collect();
        for (name, revision) in new {
            self.life.healths.insert(name.clone(), revision);
            let is_retried = self.world.releases.get(&name).is_some_and(|release| release.is_retried);
            let mut dice = self.world.dice("health");
            let (first, at) = match dice.between(0, 99) {
                // A person lets an upgrade be tried again once the cause is gone.
                _ if is_retried => (Seen::Healthy, dice.between(0, 2_000)),
                0..60 => (Seen::Healthy, dice.between(0, 2_000)),
                60..83 => (
                    Seen::InProgress("Deployment web: 0 of 1 pods are ready".to_owned()),
                    dice.between(0, 1_000),
                ),
                83..95 => (
                    Seen::Failed("Job move: it has failed".to_owned()),
                    dice.between(0, 3_000),
                ),
                _ => (Seen::Unknown, dice.between(0, 2_000)),
            };
            let cure = match &first {
                Seen::Healthy | Seen::Unknown => None,
                Seen::InProgress(_) => Some(at + dice.between(1_000, 400_000)),
                Seen::Failed(_) => Some(at + dice.between(10_000, 900_000)),
            };
            let sight = |seen| HealthSight {
                release: name.clone(),
                revision,
                seen,
            };
            self.plan(at, Due::Health(sight(first)));
            if let Some(cure) = cure {
                self.plan(cure, Due::Health(sight(Seen::Healthy)));
            }
        }
    }

    /// Plans that a person lets upgrades be tried again that were taken back.
    pub(super) fn mend_what_stays_back(&mut self) {
        let releases = self.world.releases.iter().filter(|(_, release)| release.stays_back());
        let all: Vec<(String, u32)> = releases
            .map(|(name, release)| (name.clone(), release.revision))
            .collect();
        for (name, revision) in all {
            if self.life.mended.insert((name.clone(), revision)) {
                let after = self.world.dice("again").between(20_000, 300_000);
                self.plan(after, Due::TriesAgain(name));
            }
        }
    }

    /// Reports the health of a revision, unless a newer one has come.
    pub(super) fn see_health(&mut self, sight: HealthSight) -> Result<(), Violation> {
        let newest = self.world.releases.get(&sight.release);
        if newest.is_none_or(|release| release.revision != sight.revision) {
            return Ok(());
        }
        let is_healthy = sight.seen == Seen::Healthy;
        self.world.note_health(&sight.release, sight.revision, is_healthy);
        self.tell(&Event::HealthSeen(sight), None)
    }
}
