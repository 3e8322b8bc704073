//! The look for outdated kinds in releases, for the metric: at the start, when a release changes, and every hour, because
//! the API server may be upgraded or a CRD may change. Must never disturb the work on releases: a failure is only logged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::release::kinds::{InUse, KindName, KubeVersion, Served, judge};
use kube_access::Cluster;
use kube_access::apis::Apis;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::{Board, Uses, Warnings};
use crate::drift::lookout::Lookout;

/// Changes of releases come in groups: a converge changes many of them.
const SETTLED: Duration = Duration::from_secs(2);
/// The time after which everything is asked anew.
const AGAIN: Duration = Duration::from_hours(1);
/// The pause before a failed look is repeated.
const RETRY: Duration = Duration::from_mins(1);

/// Keeps the board up to date.
pub async fn look(cluster: Cluster, lookout: Lookout, board: Board) {
    let mut changes = lookout.changes();
    let (mut warnings, mut due) = (Warnings::new(), Instant::now());
    loop {
        let is_due = due <= Instant::now();
        if is_due {
            warnings.clear();
            due = Instant::now() + AGAIN;
        }
        // The run that changed a release has asked for the APIs a moment ago.
        let seen = cluster.apis_seen().filter(|_| !is_due);
        match judged(&cluster, &lookout.uses(), &mut warnings, seen).await {
            Ok(in_use) => board.write(in_use),
            Err(failure) => {
                debug!(error = failure.report, "the kinds of releases cannot be judged");
                due = Instant::now() + RETRY;
            }
        }
        tokio::select! {
            // This is never an error: the lookout, which is held here, keeps the sender.
            _ = changes.changed() => {
                sleep(SETTLED).await;
                changes.mark_unchanged();
            }
            () = sleep_until(due) => {}
        }
    }
}

async fn judged(
    cluster: &Cluster,
    releases: &BTreeMap<String, Uses>,
    warnings: &mut Warnings,
    seen: Option<Arc<Apis>>,
) -> Result<Vec<InUse>, Failure> {
    let mut all = Uses::new();
    for (kind, used) in releases.values().flatten() {
        all.entry(kind.clone()).or_insert_with(|| used.clone());
    }
    warnings.retain(|kind, _| all.contains_key(kind));
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let apis = match seen {
        Some(seen) => seen,
        None => cluster.apis().await?,
    };
    let mut unasked = all.clone();
    unasked.retain(|kind, _| !warnings.contains_key(kind));
    warnings.extend(super::warnings(cluster, &unasked, &apis).await);
    let served = super::served(cluster, &all, warnings, &apis).await;
    // The announced ends of kinds are those of Kubernetes 1, so nothing is judged for another version.
    let version = apis.version.parse().ok();
    Ok(version.map_or_else(Vec::new, |version| in_use(releases, version, &served)))
}

fn in_use(releases: &BTreeMap<String, Uses>, version: KubeVersion, served: &BTreeMap<KindName, Served>) -> Vec<InUse> {
    let mut outdated = Vec::new();
    for (release, uses) in releases {
        for (kind, used) in uses {
            let Some(judgement) = judge(kind, version, served.get(kind)) else {
                continue;
            };
            outdated.push(InUse {
                module: release.clone(),
                kind: kind.clone(),
                state: judgement.state,
                objects: used.objects,
            });
        }
    }
    outdated
}
