//! The report that a version on trial writes about itself, and the log records about trials.
//!
//! A version must never judge itself: it reports facts, and the other replicas judge.

use std::time::Duration;

use addon_core::operator::pulse::Pulse;
use channel_core::trial::news::TrialNews;
use channel_core::trial::record::Report;
use channel_core::trial::replica::Me;
use jiff::Timestamp;
use kube_access::Cluster;
use report::Chain;
use tokio::time::Instant;
use tracing::{info, warn};

use saved_state::trial;

/// The interval at which an unchanged report is written again.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Reporter {
    last: Option<(Report, Instant)>,
    number: u64,
    converged: Option<Timestamp>,
}

impl Reporter {
    /// Writes the report of the version on trial if one is due.
    pub(super) async fn report(&mut self, is_on_trial: bool, me: &Me, pulse: Option<&Pulse>, cluster: &Cluster) {
        let Some(pulse) = pulse.filter(|_| is_on_trial) else {
            return;
        };
        if pulse.converged {
            self.converged.get_or_insert_with(Timestamp::now);
        }
        let report = Report {
            of: me.digest.clone(),
            pod: me.pod.clone(),
            number: self.number,
            converged: self.converged,
            failing: pulse.failing.clone(),
            hindered: pulse.hindered.clone(),
            unhealthy: pulse.unhealthy.clone(),
        };
        let is_due = self.last.as_ref().is_none_or(|(last, at)| {
            let is_known = last.converged == report.converged
                && last.failing == report.failing
                && last.hindered == report.hindered
                && last.unhealthy == report.unhealthy;
            !is_known || at.elapsed() >= PAUSE
        });
        if !is_due {
            return;
        }
        self.number += 1;
        let report = Report {
            number: self.number,
            ..report
        };
        match trial::write_report(cluster, &report).await {
            Ok(()) => self.last = Some((report, Instant::now())),
            Err(error) => warn!(error = %Chain(&error), "The report on our own trial could not be written"),
        }
    }
}

/// Logs the news about trials.
pub(super) fn tell(news: &TrialNews) {
    match news {
        TrialNews::Pinned(image) => info!(image, "The Deployment names the digest of our image beside its tag now"),
        TrialNews::PutBack { image, manager } => {
            warn!(
                image,
                manager, "Another field manager has put back the image of the Deployment"
            );
        }
        TrialNews::Begun(target) => info!(digest = target.digest.as_str(), "The trial of a version begins"),
        TrialNews::Ended(target, verdict) => {
            let (digest, why) = (target.digest.as_str(), &verdict.why);
            info!(digest, ruling = %verdict.ruling, why, "The trial of a version is over");
        }
        TrialNews::Promoted(image) => info!(image, "The Deployment names the version that has passed"),
        TrialNews::Sticks(target, why) => {
            let digest = target.digest.as_str();
            warn!(
                digest,
                why, "The rollout of the version that passed its trial does not progress"
            );
        }
        TrialNews::Stopped(why) => warn!(
            why,
            "No version is tried until a person runs `addon-operator channel resume`"
        ),
        TrialNews::Held(image) => info!(
            image,
            "A person has put this image into the Deployment, the channel does not replace it"
        ),
        TrialNews::Resumed => info!("A person has resumed the channel"),
    }
}
