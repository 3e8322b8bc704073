//! Why several objects in one namespace are not healthy: the namespace is read once, and not once for each of them.
//!
//! Must never take a list that is cut for the whole: then objects whose cause is not found are asked for alone.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::failure::Failure;
use health_core::why::{Around, why, witnesses};
use jiff::Timestamp;
use kube::api::ListParams;
use kube_access::Cluster;
use kube_access::error::RequestError;
use objects::key::ObjectKey;
use serde_json::Value;

use super::{Asking, Learned, MOST, OF_CLAIMS, is_explained, selector_of, waits_for_claims};

/// The smallest number of objects for which a namespace is read as a whole.
pub(crate) const CROWD: usize = 3;
/// The largest number of objects of a kind that are read.
const MOST_OF_NAMESPACE: u32 = 300;

/// Looks for the causes for which objects of one namespace are not healthy. None if the namespace is too full for that.
pub(crate) async fn of_all(
    cluster: &Cluster,
    keys: &[ObjectKey],
) -> Result<Option<BTreeMap<ObjectKey, Learned>>, Failure> {
    let Some(first) = keys.first() else { return Ok(None) };
    match Asking::of(cluster, first).causes(keys).await {
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(None),
        found => Ok(found?),
    }
}

impl Asking<'_> {
    async fn causes(&self, keys: &[ObjectKey]) -> Result<Option<BTreeMap<ObjectKey, Learned>>, RequestError> {
        let mut workloads = BTreeMap::new();
        let kinds: BTreeSet<_> = keys
            .iter()
            .map(|key| (key.api_version.as_str(), key.kind.as_str()))
            .collect();
        for (api_version, kind) in kinds
            .iter()
            .filter(|(api_version, kind)| is_explained(api_version, kind))
        {
            let Some(found) = self.whole(api_version, kind).await? else {
                return Ok(None);
            };
            workloads.extend(found.into_iter().map(|object| ((*kind, name_of(&object)), object)));
        }
        let Some(pods) = self.whole("v1", "Pod").await? else {
            return Ok(None);
        };
        let replica_sets = if kinds.contains(&("apps/v1", "Deployment")) {
            let Some(found) = self.whole("apps/v1", "ReplicaSet").await? else {
                return Ok(None);
            };
            found
        } else {
            Vec::new()
        };
        let (events, are_all) = self.warnings(&pods).await?;
        let mut learned = BTreeMap::new();
        for key in keys {
            let Some(workload) = workloads.get(&(key.kind.as_str(), key.name.clone())) else {
                learned.insert(key.clone(), Learned::Nothing);
                continue;
            };
            let pods = pods_of(&key.kind, workload, &pods);
            let sets = selected(workload, &replica_sets);
            let cause = self.told(workload, &pods, &sets, &events).await;
            if are_all || cause != Learned::Nothing {
                learned.insert(key.clone(), cause);
            }
        }
        Ok(Some(learned))
    }

    async fn told(&self, workload: &Value, pods: &[Value], replica_sets: &[Value], events: &[Value]) -> Learned {
        let now = Timestamp::now();
        let mut around = Around {
            replica_sets,
            pods,
            events,
            ..Around::default()
        };
        if let Some(words) = witnesses(workload, &around, now).last_words {
            around.last_lines = self.last_line(words).await;
        }
        why(workload, &around, now).map_or(Learned::Nothing, Learned::Cause)
    }

    /// The warnings of the namespace, with the Events about claims and about ended containers if pods have any; and whether these are
    /// all. Other Events are many, and nearly all of them tell of success.
    async fn warnings(&self, pods: &[Value]) -> Result<(Vec<Value>, bool), RequestError> {
        let asked = |fields: &str| ListParams::default().fields(fields).limit(MOST_OF_NAMESPACE);
        let (mut events, mut is_cut) = self.listed("v1", "Event", &asked("type=Warning")).await?;
        let waits = pods.iter().any(waits_for_claims).then_some(OF_CLAIMS);
        let restarts = pods.iter().any(has_restarted).then_some("reason=Killing");
        for fields in waits.into_iter().chain(restarts) {
            let (more, are_cut) = self.listed("v1", "Event", &asked(fields)).await?;
            events.extend(more);
            is_cut |= are_cut;
        }
        Ok((events, !is_cut))
    }

    /// All objects of a kind in the namespace; none if there are too many.
    async fn whole(&self, api_version: &str, kind: &str) -> Result<Option<Vec<Value>>, RequestError> {
        let params = ListParams::default().limit(MOST_OF_NAMESPACE);
        let (found, is_cut) = self.listed(api_version, kind, &params).await?;
        Ok((!is_cut).then_some(found))
    }
}

/// The pods that tell of a workload: a pod tells of itself.
fn pods_of(kind: &str, workload: &Value, all: &[Value]) -> Vec<Value> {
    match kind {
        "Pod" => vec![workload.clone()],
        _ => selected(workload, all),
    }
}

/// Whether a container of a pod was started again. A probe that ends one is told by an Event that is no warning.
fn has_restarted(pod: &Value) -> bool {
    let of = |list: &str| pod["status"][list].as_array().into_iter().flatten();
    let mut statuses = of("containerStatuses").chain(of("initContainerStatuses"));
    statuses.any(|status| status["restartCount"].as_u64().is_some_and(|count| count > 0))
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// The objects that the selector of a workload selects, as many as a look at it alone reads.
fn selected(workload: &Value, all: &[Value]) -> Vec<Value> {
    if selector_of(workload).is_none() {
        return Vec::new();
    }
    let Some(wanted) = workload["spec"]["selector"]["matchLabels"].as_object() else {
        return Vec::new();
    };
    let fits = |object: &&Value| {
        wanted
            .iter()
            .all(|(key, value)| object["metadata"]["labels"][key] == *value)
    };
    all.iter().filter(fits).take(MOST as usize).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_is_told_of_by_its_own_pods_and_a_pod_by_itself() {
        let pod = |name: &str| json!({"metadata": {"name": name, "labels": {"app": name}}});
        let all = [pod("web"), pod("other")];
        let deployment = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}});
        assert_eq!(pods_of("Deployment", &deployment, &all), [pod("web")]);
        assert_eq!(pods_of("Pod", &pod("alone"), &all), [pod("alone")]);
    }

    #[test]
    fn a_restart_of_any_container_counts() {
        let pod = |list: &str, count: u32| json!({"status": {list: [{"restartCount": count}]}});
        assert!(has_restarted(&pod("containerStatuses", 1)));
        assert!(has_restarted(&pod("initContainerStatuses", 2)));
        assert!(!has_restarted(&pod("containerStatuses", 0)));
        assert!(!has_restarted(&json!({})));
    }
}
