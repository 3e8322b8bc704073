//! The state of the world as this replica observes it, put together from all sources; and the stage of the trial for
//! the loop.
//!
//! During a trial an old observation must never count as a new one.

use addon_core::operator::event::TrialStage;
use channel_core::trial::sight::Sight;
use clock::Tick;
use tokio::time::Instant;

use super::Trying;
use crate::installation::watching::Seen;

impl Trying {
    pub(super) fn sight(&mut self) -> Sight {
        let is_watchful = self.is_watchful();
        let seen = self.seen.borrow_and_update().clone();
        let heard = if is_watchful {
            // The older of the two times counts.
            self.shelf
                .as_of()
                .zip(seen.heard)
                .map(|(records, cluster)| records.min(cluster))
        } else {
            // Without a trial the watches are enough: a silent watch means no change, and a failed watch shows no
            // objects at all.
            Some(Instant::now())
        };
        // The time must not go back, because a judge would then begin its waiting time anew.
        let heard = heard.map_or(Tick::ZERO, |heard| self.clock.tick(heard));
        self.heard = self.heard.max(heard);
        let Seen {
            deployment,
            replicas,
            trial,
            heard: _,
        } = seen;
        Sight {
            heard: self.heard,
            deployment: deployment.there().cloned(),
            replicas,
            set: trial,
            lease: Some(self.lease.borrow_and_update().clone()),
            trial: self.shelf.known_trial(),
            report: self.shelf.known_report(),
            remembered: self.shelf.remembered().cloned(),
        }
    }

    /// Publishes the stage of the trial. At the end of the trial the loop starts the work that waited for it.
    pub(super) fn tell_operator(&self) {
        let stage = self.shelf.trial().map(|trial| match &trial.verdict {
            None => TrialStage::Open,
            Some(verdict) => TrialStage::Ended(verdict.ruling),
        });
        if stage.is_some() {
            self.outside.stage.send_if_modified(|told| {
                let differs = *told != stage;
                *told = stage;
                differs
            });
        }
    }
}
