//! Keeps the label of the leader on our pod while we lead, and off it otherwise, so that the Services of webhooks lead to the
//! replica that answers.
//!
//! Nothing waits for it. A leader that was cut off cannot take its label back: the next one does.

use std::time::Duration;

use addon_core::failure::Failure;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::app::parts::Parts;
use crate::cluster::Cluster;
use crate::cluster::error::RequestError;
use crate::cluster::leader::Mark;
use crate::serve::standing::Standing;
use crate::settings::leadership::LeaderLabel;

/// How often a leader looks whether somebody has moved the label.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// How soon an attempt that failed is made again. Each further one takes twice as long, up to the time between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// What the end may take.
const FAREWELL: Duration = Duration::from_secs(3);

/// Follows the election, if there is a label.
pub(super) fn start(
    label: Option<&LeaderLabel>,
    cluster: &Cluster,
    standing: watch::Receiver<Standing>,
    parts: &mut Parts,
) {
    let Some(label) = label else {
        return;
    };
    let bearer = Bearer {
        label: label.clone(),
        cluster: cluster.clone(),
        standing,
        trouble: None,
        failures: 0,
    };
    let stopping = parts.stopping().clone();
    parts.spawn_graceful("the label of the leader", async move {
        let mut bearer = bearer;
        tokio::select! {
            () = stopping.cancelled() => {}
            () = bearer.follow() => {}
        }
        // Who does not come in time is relieved by the next leader.
        let _ = timeout(FAREWELL, bearer.bring(Mark::Absent)).await;
    });
}

struct Bearer {
    label: LeaderLabel,
    cluster: Cluster,
    standing: watch::Receiver<Standing>,
    /// Why the label is not where it should be.
    trouble: Option<String>,
    /// How often in a row it could not be brought there.
    failures: u32,
}

impl Bearer {
    /// Never ends.
    async fn follow(&mut self) {
        loop {
            let wanted = match &*self.standing.borrow_and_update() {
                Standing::Leads => Mark::Carried,
                Standing::Seeks { .. } | Standing::Standby(_) => Mark::Absent,
            };
            let pause = match (self.bring(wanted).await, wanted) {
                (Err(()), _) => Some((PAUSE * (1 << self.failures.min(8))).min(LOOK_EVERY)),
                (Ok(()), Mark::Carried) => Some(LOOK_EVERY),
                (Ok(()), Mark::Absent) => None,
            };
            tokio::select! {
                Ok(()) = self.standing.changed() => {}
                () = pause_of(pause) => {}
            }
        }
    }

    async fn bring(&mut self, wanted: Mark) -> Result<(), ()> {
        let LeaderLabel { pod, key } = &self.label;
        let brought = self.cluster.mark_leader(key, pod, wanted).await;
        let done = brought.map_err(|error| self.complain(error))?;
        (self.trouble, self.failures) = (None, 0);
        for (pod, mark) in done {
            match mark {
                Mark::Carried => info!(pod, label = self.label.key, "Our pod carries the label of the leader"),
                Mark::Absent => info!(
                    pod,
                    label = self.label.key,
                    "The label of the leader is taken from a pod"
                ),
            }
        }
        Ok(())
    }

    /// The same trouble is told once.
    fn complain(&mut self, error: RequestError) {
        let Failure { report, hints, .. } = Failure::from(error);
        if self.trouble.as_ref() != Some(&report) {
            let hint = (!hints.is_empty()).then(|| hints.join("; "));
            warn!(
                error = report,
                hint, "The label of the leader is not where it should be: webhooks may not reach us"
            );
        }
        self.trouble = Some(report);
        self.failures += 1;
    }
}

async fn pause_of(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}
