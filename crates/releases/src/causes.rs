//! Why an object of a release is not healthy: asks for the pods and Events around it.
//!
//! A look at one object makes at most seven requests, each with a bounded answer. Must never fail a module because the account may not read
//! some of these objects: then it tells what the others say.

pub(crate) mod crowd;
mod pruned;

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use health_core::waits_for_consumer;
use health_core::why::{Around, ContainerName, LastWords, Witnesses, why, witnesses};
use jiff::Timestamp;
use kube::api::{ListParams, LogParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, ObjectList, Request};
use kube::{Api, Resource as _};
use kube_access::Cluster;
use kube_access::error::RequestError;
use objects::key::ObjectKey;
use serde_json::{Map, Value, json};

use pruned::Pruned;

/// The largest number of pods, ReplicaSets or Events that a look reads.
const MOST: u32 = 30;
/// The largest number of Events about one object that a look reads: the newest come last.
const MOST_EVENTS: u32 = 100;
/// The part of a container's log that is read, in bytes.
const LOG_BYTES: i64 = 1024;

/// The result of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Learned {
    /// There is no cause to see, or the kind has none.
    Nothing,
    /// The cause in one sentence.
    Cause(String),
    /// The object is well, by facts that it does not show itself.
    Well,
}

/// Looks for the cause for which an object is not healthy.
pub(crate) async fn of(cluster: &Cluster, key: &ObjectKey) -> Result<Learned, Failure> {
    let asking = Asking::of(cluster, key);
    let is_claim = key.kind == CLAIM && key.api_version == "v1";
    if !is_claim && !is_explained(&key.api_version, &key.kind) {
        return Ok(Learned::Nothing);
    }
    match asking.cause(key).await {
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Learned::Nothing),
        other => Ok(other?),
    }
}

/// Whether the causes of a kind are found at pods.
pub(crate) fn is_explained(api_version: &str, kind: &str) -> bool {
    matches!(
        (api_version, kind),
        ("apps/v1", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch/v1", "Job") | ("v1", "Pod")
    )
}

/// The kind of claims. A look at one asks for the Events about it alone.
pub(crate) const CLAIM: &str = "PersistentVolumeClaim";

struct Asking<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
}

impl<'a> Asking<'a> {
    fn of(cluster: &'a Cluster, key: &'a ObjectKey) -> Self {
        let namespace = key.namespace.as_deref().unwrap_or(cluster.namespace());
        Self { cluster, namespace }
    }

    async fn cause(&self, key: &ObjectKey) -> Result<Learned, RequestError> {
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
        let now = Timestamp::now();
        let mut around = Around {
            replica_sets: &replica_sets,
            pods: &pods,
            ..Around::default()
        };
        let witnesses = witnesses(&workload, &around, now);
        let events = self.events(&witnesses).await?;
        let last_lines = match witnesses.last_words {
            Some(words) => self.last_line(words).await,
            None => BTreeMap::new(),
        };
        if key.kind == CLAIM && waits_for_consumer(&workload, &events) {
            return Ok(Learned::Well);
        }
        around.events = &events;
        around.last_lines = last_lines;
        Ok(why(&workload, &around, now).map_or(Learned::Nothing, Learned::Cause))
    }

    /// The Events about the object that makes the pods, about the pod that tells most, and about claims if it has no
    /// node. Not only warnings: that a probe ends a container, or that a claim has no class, is a normal Event.
    async fn events(&self, witnesses: &Witnesses<'_>) -> Result<Vec<Value>, RequestError> {
        let named = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            format!("involvedObject.name={name}")
        };
        let mut asked = vec![named(witnesses.maker)];
        asked.extend(witnesses.pod.map(named));
        asked.extend(
            witnesses
                .pod
                .filter(|pod| waits_for_claims(pod))
                .map(|_| OF_CLAIMS.to_owned()),
        );
        asked.dedup();
        let mut events = Vec::new();
        for fields in asked {
            let params = ListParams::default().fields(&fields).limit(MOST_EVENTS);
            events.extend(self.list("v1", "Event", &params).await?);
        }
        Ok(events)
    }

    /// The last line that a container wrote. Its log may not be readable.
    async fn last_line(&self, words: LastWords) -> BTreeMap<ContainerName, String> {
        let LastWords {
            container,
            is_before_restart,
        } = words;
        let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(self.cluster.client(), self.namespace);
        let params = LogParams {
            container: Some(container.container.clone()),
            previous: is_before_restart,
            tail_lines: Some(1),
            limit_bytes: Some(LOG_BYTES),
            ..LogParams::default()
        };
        let attempt = self.attempt("get", "pods/log", &container.pod);
        let log = self
            .cluster
            .ask(attempt, api.logs(&container.pod, &params))
            .await
            .unwrap_or_default();
        let line = log.lines().last().map(str::trim).filter(|line| !line.is_empty());
        line.map(|line| (container, line.to_owned())).into_iter().collect()
    }

    /// The objects of a kind; none if they may not be read, because the others tell something without them.
    async fn list(&self, api_version: &str, kind: &str, params: &ListParams) -> Result<Vec<Value>, RequestError> {
        let mut params = params.clone();
        params.limit.get_or_insert(MOST);
        Ok(self.listed(api_version, kind, &params).await?.0)
    }

    /// The objects of a kind, and whether there are more of them.
    async fn listed(
        &self,
        api_version: &str,
        kind: &str,
        params: &ListParams,
    ) -> Result<(Vec<Value>, bool), RequestError> {
        let path = DynamicObject::url_path(&resource(api_version, kind), Some(self.namespace));
        let request = Request::new(path)
            .list(params)
            .expect("the parameters of a list are plain");
        let client = self.cluster.client();
        let asked = client.request::<ObjectList<Pruned>>(request);
        match self.cluster.ask(self.attempt("list", kind, ""), asked).await {
            Ok(found) => {
                let is_cut = found.metadata.continue_.is_some_and(|rest| !rest.is_empty());
                let items = found.items.into_iter().map(|Pruned(item)| item);
                Ok((items.collect(), is_cut))
            }
            Err(error) if error.is_forbidden() => Ok((Vec::new(), false)),
            Err(error) => Err(error),
        }
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster.client(), self.namespace, &resource(api_version, kind))
    }

    fn attempt(&self, verb: &'static str, kind: &str, name: &str) -> kube_access::error::Attempt {
        self.cluster.attempt_in(Some(self.namespace), verb, kind, name)
    }
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
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

/// The field selector for the Events about claims.
const OF_CLAIMS: &str = "involvedObject.kind=PersistentVolumeClaim";

/// Whether a pod has claims and no node, so that a claim may be why.
fn waits_for_claims(pod: &Value) -> bool {
    let volumes = pod["spec"]["volumes"].as_array();
    let is_claim = |volume: &Value| volume["persistentVolumeClaim"].is_object();
    pod["spec"]["nodeName"].is_null() && volumes.is_some_and(|volumes| volumes.iter().any(is_claim))
}
