//! Why an object of a release is not healthy: asks for the pods and the Events around it.
//!
//! It makes at most six requests, each with a bounded answer. Must never fail a module because the account may not read
//! these objects: then there is no cause to tell.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use health_core::why::{Around, ContainerName, why};
use jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, LogParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_access::Cluster;
use kube_access::error::RequestError;
use objects::key::ObjectKey;
use serde_json::{Map, Value, json};

/// The largest number of pods, ReplicaSets or Events that a look reads.
const MOST: u32 = 30;
/// The part of a container's log that is read, in bytes.
const LOG_BYTES: i64 = 1024;

/// The cause in one sentence; `None` if there is none to see, or if the kind has no pods.
pub(crate) async fn of(cluster: &Cluster, key: &ObjectKey) -> Result<Option<String>, Failure> {
    if !has_pods(key) {
        return Ok(None);
    }
    match Asking::of(cluster, key).cause(key).await {
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(None),
        other => Ok(other?),
    }
}

fn has_pods(key: &ObjectKey) -> bool {
    matches!(
        (key.api_version.as_str(), key.kind.as_str()),
        ("apps/v1", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch/v1", "Job")
            | ("v1", "Pod" | "PersistentVolumeClaim")
    )
}

struct Asking<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
}

impl<'a> Asking<'a> {
    fn of(cluster: &'a Cluster, key: &'a ObjectKey) -> Self {
        let namespace = key.namespace.as_deref().unwrap_or(cluster.namespace());
        Self { cluster, namespace }
    }

    async fn cause(&self, key: &ObjectKey) -> Result<Option<String>, RequestError> {
        let api = self.api(&key.api_version, &key.kind);
        let attempt = self.attempt("get", &key.kind, &key.name);
        let workload = json!(self.cluster.ask(attempt, api.get(&key.name)).await?);
        let selector = selector_of(&workload);
        let pods = match (&selector, key.kind.as_str()) {
            (_, "Pod") => vec![workload.clone()],
            (Some(selector), _) => self.list("v1", "Pod", &by_labels(selector)).await?,
            (None, _) => Vec::new(),
        };
        let replica_sets = match &selector {
            Some(selector) if key.kind == "Deployment" => {
                self.list("apps/v1", "ReplicaSet", &by_labels(selector)).await?
            }
            Some(_) | None => Vec::new(),
        };
        let events = self.events(&workload, &replica_sets, &pods).await?;
        let last_lines = self.last_lines(&pods).await;
        let around = Around {
            replica_sets: &replica_sets,
            pods: &pods,
            events: &events,
            last_lines,
        };
        Ok(why(&workload, &around, Timestamp::now()))
    }

    /// The warnings about the object that makes the pods, and about the first pod that is not ready.
    async fn events(
        &self,
        workload: &Value,
        replica_sets: &[Value],
        pods: &[Value],
    ) -> Result<Vec<Value>, RequestError> {
        let newest = |sets: &[Value]| {
            let made = |set: &Value| set["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
            sets.iter().max_by_key(|set| made(set)).cloned()
        };
        let maker = newest(replica_sets).unwrap_or_else(|| workload.clone());
        let lacking = pods.iter().find(|pod| !is_ready(pod)).cloned();
        let mut events = Vec::new();
        for object in [Some(maker), lacking].into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let fields = format!("type=Warning,involvedObject.name={name}");
            events.extend(self.list("v1", "Event", &ListParams::default().fields(&fields)).await?);
        }
        Ok(events)
    }

    /// The last line of the first container that crashes. Its log may not be readable.
    async fn last_lines(&self, pods: &[Value]) -> BTreeMap<ContainerName, String> {
        let crashing = pods.iter().find_map(|pod| {
            let name = pod["metadata"]["name"].as_str()?;
            let statuses = pod["status"]["containerStatuses"].as_array()?;
            let waits = |status: &&Value| status["state"]["waiting"]["reason"] == "CrashLoopBackOff";
            let container = statuses.iter().find(waits)?["name"].as_str()?;
            Some((name.to_owned(), container.to_owned()))
        });
        let Some((pod, container)) = crashing else {
            return BTreeMap::new();
        };
        let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(self.cluster.client(), self.namespace);
        let params = LogParams {
            container: Some(container.clone()),
            previous: true,
            tail_lines: Some(1),
            limit_bytes: Some(LOG_BYTES),
            ..LogParams::default()
        };
        let attempt = self.attempt("get", "pods/log", &pod);
        let log = self
            .cluster
            .ask(attempt, api.logs(&pod, &params))
            .await
            .unwrap_or_default();
        let line = log.lines().last().map(str::trim).filter(|line| !line.is_empty());
        line.map(|line| (ContainerName { pod, container }, line.to_owned()))
            .into_iter()
            .collect()
    }

    async fn list(&self, api_version: &str, kind: &str, params: &ListParams) -> Result<Vec<Value>, RequestError> {
        let params = params.clone().limit(MOST);
        let api = self.api(api_version, kind);
        let found = self
            .cluster
            .ask(self.attempt("list", kind, ""), api.list(&params))
            .await?;
        Ok(found.items.into_iter().map(|object| json!(object)).collect())
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.cluster.client(), self.namespace, &resource)
    }

    fn attempt(&self, verb: &'static str, kind: &str, name: &str) -> kube_access::error::Attempt {
        self.cluster.attempt_in(Some(self.namespace), verb, kind, name)
    }
}

fn by_labels(selector: &str) -> ListParams {
    ListParams::default().labels(selector)
}

/// The selector of the pods, as a request takes it.
fn selector_of(workload: &Value) -> Option<String> {
    let labels: &Map<String, Value> = workload["spec"]["selector"]["matchLabels"].as_object()?;
    let pairs: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let is_met = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_met))
}
