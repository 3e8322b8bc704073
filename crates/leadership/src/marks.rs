//! Keeps the marks of the leader up to date, so that webhooks reach it: the endpoints of Services, or a label on the
//! pod.
//!
//! No other part waits for this part. A leader that was cut off cannot remove its mark; the next leader removes it.

use std::time::Duration;

use addon_core::failure::Failure;
use kube_access::Cluster;
use kube_access::error::RequestError;
use parts::Parts;
use settings::Settings;
use settings::leadership::{LeaderLabel, LeaderServices};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::endpoints::{self, Lead};
use crate::leader::{self, Mark};
use crate::standing::ActingRole;

/// The time between two checks by a leader whether its mark is still right.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The pause before a failed attempt is repeated. It doubles each time, up to the interval of checks.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the removal of the mark may delay the end of the process.
const FAREWELL: Duration = Duration::from_secs(3);

/// Keeps the marks of the leader in line with the election.
pub(super) fn start(settings: &Settings, cluster: &Cluster, standing: &watch::Receiver<ActingRole>, parts: &mut Parts) {
    if let Some(label) = &settings.leader_label {
        follow(
            "the label of the leader",
            Sign::Label(label.clone()),
            cluster,
            standing,
            parts,
        );
    }
    if let Some(services) = &settings.leader_services {
        let sign = Sign::Services(services.clone());
        follow("the services of the leader", sign, cluster, standing, parts);
    }
}

fn follow(
    name: &'static str,
    sign: Sign,
    cluster: &Cluster,
    standing: &watch::Receiver<ActingRole>,
    parts: &mut Parts,
) {
    let mut bearer = Bearer {
        sign,
        cluster: cluster.clone(),
        standing: standing.clone(),
        trouble: None,
        failures: 0,
    };
    let stopping = parts.stopping().clone();
    parts.spawn_graceful(name, async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = bearer.follow() => {}
        }
        // A mark that is not removed in time is removed by the next leader.
        let _ = timeout(FAREWELL, bearer.bring(Mark::Absent)).await;
    });
}

/// The label or the Services by which clients find the leader.
enum Sign {
    Label(LeaderLabel),
    Services(LeaderServices),
}

struct Bearer {
    sign: Sign,
    cluster: Cluster,
    standing: watch::Receiver<ActingRole>,
    /// The last reason why the mark is not as it should be.
    trouble: Option<String>,
    /// The number of failed attempts in a row.
    failures: u32,
}

impl Bearer {
    /// Applies every change of the role; never ends.
    async fn follow(&mut self) {
        loop {
            let wanted = match &*self.standing.borrow_and_update() {
                ActingRole::Leads => Mark::Carried,
                ActingRole::Seeks { .. } | ActingRole::Standby(_) => Mark::Absent,
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
        let brought = match &self.sign {
            Sign::Label(label) => mark(&self.cluster, label, wanted).await,
            Sign::Services(services) => lead(&self.cluster, services, wanted).await,
        };
        brought.map_err(|error| self.complain(error))?;
        (self.trouble, self.failures) = (None, 0);
        Ok(())
    }

    /// Logs a failure; a failure that repeats is logged once.
    fn complain(&mut self, error: RequestError) {
        let Failure { report, hints, .. } = Failure::from(error);
        if self.trouble.as_ref() != Some(&report) {
            let hint = (!hints.is_empty()).then(|| hints.join("; "));
            match self.sign {
                Sign::Label(_) => warn!(
                    error = report,
                    hint, "The label of the leader cannot be set or removed: webhooks may not reach the leader"
                ),
                Sign::Services(_) => warn!(
                    error = report,
                    hint,
                    "The endpoints of Services cannot be changed to the leader: webhooks may not reach the leader"
                ),
            }
        }
        self.trouble = Some(report);
        self.failures += 1;
    }
}

async fn mark(cluster: &Cluster, LeaderLabel { pod, key }: &LeaderLabel, wanted: Mark) -> Result<(), RequestError> {
    for (pod, mark) in leader::mark_leader(cluster, key, pod, wanted).await? {
        match mark {
            Mark::Carried => info!(pod, label = key, "Our pod carries the label of the leader"),
            Mark::Absent => info!(pod, label = key, "The label of the leader is removed from a pod"),
        }
    }
    Ok(())
}

/// Writes the endpoints of all Services. A failure with one does not stop the others; the first failure is returned.
async fn lead(cluster: &Cluster, services: &LeaderServices, wanted: Mark) -> Result<(), RequestError> {
    let LeaderServices { pod, address, names } = services;
    let mut outcome = Ok(());
    for service in names {
        let lead = Lead {
            service,
            pod,
            address: *address,
        };
        let done = match wanted {
            Mark::Carried => endpoints::lead_here(cluster, lead).await,
            Mark::Absent => endpoints::lead_away(cluster, lead).await,
        };
        match (done, wanted) {
            (Ok(true), Mark::Carried) => info!(service, pod, "The endpoints of a Service name our pod"),
            (Ok(true), Mark::Absent) => info!(service, pod, "The endpoints of a Service no longer name our pod"),
            (Ok(false), _) => {}
            (Err(error), _) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

async fn pause_of(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}
