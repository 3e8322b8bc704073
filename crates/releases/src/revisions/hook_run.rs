//! The helm hook that a release waits for: helm notes in the record which of its hooks is under way. It only reads.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::revisions;

/// A helm hook that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRun {
    kind: String,
    name: String,
    /// The events of the hook, as in `post-install`.
    events: Vec<String>,
    weight: i64,
    /// The seconds since helm began it, by the clock of helm's machine.
    seconds: Option<i64>,
    /// The state of its pod, if that can be read.
    pod: Option<String>,
    /// The number of seconds after which helm gives it up.
    limit: u64,
}

impl fmt::Display for HookRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            events,
            weight,
            seconds,
            pod,
            limit,
        } = self;
        write!(f, "helm hook {kind}/{name} ({}, weight {weight})", events.join(", "))?;
        if let Some(seconds) = seconds {
            write!(f, ", begun {seconds}s ago and given up after {limit}s")?;
        }
        if let Some(pod) = pod {
            write!(f, ", its pod is {pod}")?;
        }
        Ok(())
    }
}

/// A hook in helm's record.
#[derive(Debug, Deserialize)]
struct Hook {
    name: String,
    kind: String,
    #[serde(default)]
    weight: i64,
    #[serde(default)]
    events: Vec<String>,
    last_run: Option<LastRun>,
}

#[derive(Debug, Deserialize)]
struct LastRun {
    #[serde(default)]
    phase: String,
    /// Empty for a hook that was not begun.
    #[serde(default)]
    started_at: String,
}

/// The helm hook that the newest revision of a release waits for, if it is unfinished. `limit` is helm's time limit.
pub async fn running_hook(cluster: &Cluster, release: &str, limit: Duration) -> Result<Option<HookRun>, RequestError> {
    let newest = revisions::newest_revision(cluster, release).await?;
    let Some(revision) = newest.filter(|revision| revision.newest.status.is_unfinished()) else {
        return Ok(None);
    };
    let (_, content) = revisions::content(cluster, &revision).await?;
    let hooks = content.get("hooks").map(|raw| hooks(raw)).unwrap_or_default();
    let Some((hook, begun)) = hooks.into_iter().find_map(under_way) else {
        return Ok(None);
    };
    let pod = match hook.kind.as_str() {
        "Pod" => {
            pods_with(
                cluster,
                ListParams::default().fields(&format!("metadata.name={}", hook.name)),
            )
            .await
        }
        "Job" => {
            pods_with(
                cluster,
                ListParams::default().labels(&format!("batch.kubernetes.io/job-name={}", hook.name)),
            )
            .await
        }
        _ => None,
    };
    Ok(Some(HookRun {
        kind: hook.kind,
        name: hook.name,
        events: hook.events,
        weight: hook.weight,
        seconds: begun.map(|begun| Timestamp::now().as_second().saturating_sub(begun.as_second()).max(0)),
        pod,
        limit: limit.as_secs(),
    }))
}

/// The state of the newest of these pods; none if there is none, or pods may not be read.
async fn pods_with(cluster: &Cluster, wanted: ListParams) -> Option<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    let found = cluster
        .ask(cluster.attempt("list", "pods", ""), pods.list(&wanted))
        .await
        .ok()?;
    let newest = found
        .items
        .into_iter()
        .max_by_key(|pod| pod.metadata.creation_timestamp.clone())?;
    state_of(&newest)
}

fn hooks(raw: &RawValue) -> Vec<Hook> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The hook and its start, if helm has begun it and not ended it.
fn under_way(hook: Hook) -> Option<(Hook, Option<Timestamp>)> {
    let run = hook.last_run.as_ref()?;
    let begun = run.started_at.parse().ok();
    (run.phase == "Running").then_some((hook, begun))
}

/// The phase of a pod, with the reason for which it does not get on.
fn state_of(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let phase = status.phase.as_deref()?;
    let waiting = || {
        let all = status.init_container_statuses.iter().flatten();
        let mut all = all.chain(status.container_statuses.iter().flatten());
        let waits = all.find_map(|container| container.state.as_ref()?.waiting.as_ref())?;
        Some((waits.reason.clone()?, waits.message.clone()))
    };
    let unscheduled = || {
        let conditions = status.conditions.iter().flatten();
        let mut failed = conditions.filter(|condition| condition.status == "False");
        let failed = failed.find(|condition| condition.type_ == "PodScheduled")?;
        Some((failed.reason.clone()?, failed.message.clone()))
    };
    Some(match waiting().or_else(unscheduled) {
        Some((reason, Some(message))) => format!("{phase}: {reason}: {message}"),
        Some((reason, None)) => format!("{phase}: {reason}"),
        None => phase.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_of_a_pod_has_the_reason_for_which_it_does_not_get_on() {
        let pod = |status| serde_json::from_value::<Pod>(json!({"metadata": {"name": "p"}, "status": status})).unwrap();
        let waits = json!({"reason": "ErrImagePull", "message": "not found"});
        for (status, expected) in [
            (json!({"phase": "Running"}), Some("Running")),
            (
                json!({"phase": "Pending", "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": waits}}]}),
                Some("Pending: ErrImagePull: not found"),
            ),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}),
                Some("Pending: Unschedulable: 0/1 nodes"),
            ),
            (json!({}), None),
        ] {
            assert_eq!(state_of(&pod(status)).as_deref(), expected);
        }
    }

    #[test]
    fn the_hook_that_helm_has_begun_is_found() {
        let record = json!([
            {"name": "done", "kind": "Job", "weight": -1, "events": ["post-install"], "last_run": {"phase": "Succeeded"}},
            {"name": "runs", "kind": "Pod", "weight": 5, "events": ["post-install"], "last_run": {"started_at": "2026-11-28T03:00:00.123+00:00", "completed_at": "", "phase": "Running"}},
            {"name": "later", "kind": "Pod", "events": ["post-install"], "last_run": {"started_at": "", "completed_at": "", "phase": ""}},
        ]);
        let raw = serde_json::value::to_raw_value(&record).unwrap();
        let (hook, begun) = hooks(&raw).into_iter().find_map(under_way).unwrap();
        assert_eq!((hook.name.as_str(), hook.weight, begun.is_some()), ("runs", 5, true));
    }
}
