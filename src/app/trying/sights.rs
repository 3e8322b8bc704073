//! The world as this replica sees it at one moment, put together of all that it hears; and the news of trials for the operator.
//!
//! Must never show an old sight as a new one while a version is on trial.

use addon_core::artifact::trial::sight::Sight;
use addon_core::operator::event::TrialStage;
use addon_core::time::Tick;
use tokio::time::Instant;

use super::Trying;
use crate::cluster::installation::watching::Seen;

impl Trying {
    pub(super) fn sight(&mut self) -> Sight {
        let is_watchful = self.is_watchful();
        let seen = self.seen.borrow_and_update().clone();
        let heard = if is_watchful {
            // The older of both counts.
            self.shelf
                .as_of()
                .zip(seen.heard)
                .map(|(records, cluster)| records.min(cluster))
        } else {
            // A silent watch means that nothing has changed, and a failing one shows nothing.
            Some(Instant::now())
        };
        // A time that goes back would begin the watch of a judge anew.
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

    /// By this the operator starts work that waited for the end of a trial.
    pub(super) fn tell_operator(&self) {
        let stage = self.shelf.trial().map(|trial| match &trial.verdict {
            None => TrialStage::Open,
            Some(verdict) => TrialStage::Ended(verdict.ruling),
        });
        if stage.is_some() {
            self.outside.trial.send_if_modified(|told| {
                let differs = *told != stage;
                *told = stage;
                differs
            });
        }
    }
}
