//! Kubernetes Events of the operator: each is written once, and its count grows when the same thing happens again.
//!
//! The name of an Event is derived from its contents, so that the next process finds it. Nothing important may wait for
//! an Event: Events are for people.

use std::time::Duration;

use addon_core::digest::Digest;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use serde_json::json;

use crate::Cluster;
use crate::error::RequestError;

/// The reporting controller of all Events of the operator, for field selectors.
const CONTROLLER: &str = "addon-operator";
const RESOURCE: &str = "events.events.k8s.io";
/// The timeout of a request for one Event, because the next Events wait for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The API server accepts no longer reporter name.
const INSTANCE_LIMIT: usize = 128;

/// The contents of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saying<'a> {
    /// A text that distinguishes Events with otherwise equal contents.
    pub subject: &'a str,
    pub reason: &'a str,
    pub action: &'a str,
    /// `Normal` or `Warning`.
    pub weight: &'a str,
    /// The text for people, at most 1 KiB.
    pub note: &'a str,
    /// The time of the Event's last occurrence.
    pub last: Timestamp,
}

/// An object that Events may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    ConfigMap(&'a str),
    Deployment(&'a str),
    Pod(&'a str),
}

impl<'a> Object<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::ConfigMap(name) | Self::Deployment(name) | Self::Pod(name) => name,
        }
    }

    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap(_) => ("v1", "ConfigMap"),
            Self::Deployment(_) => ("apps/v1", "Deployment"),
            Self::Pod(_) => ("v1", "Pod"),
        }
    }
}

/// The object that Events are about, and the pod that writes them, if the operator runs in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regarding {
    kind: (&'static str, &'static str),
    name: String,
    uid: Option<String>,
    pod: Option<String>,
}

impl Regarding {
    /// The name of the Event with these contents: the program's name and a digest.
    fn name_of(&self, saying: &Saying<'_>) -> String {
        let uid = self.uid.as_deref().unwrap_or_default();
        let parts = [&self.name, uid, saying.subject, saying.reason, saying.note];
        let digest = Digest::of_bytes(parts.join("\0").as_bytes()).to_string();
        format!("{CONTROLLER}.{digest}")
    }

    fn event(&self, namespace: &str, saying: &Saying<'_>, count: u32) -> Event {
        let last = MicroTime(saying.last);
        let reference = |(api_version, kind): (&str, &str), name: &str, uid: Option<&String>| ObjectReference {
            api_version: Some(api_version.to_owned()),
            kind: Some(kind.to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: uid.cloned(),
            ..ObjectReference::default()
        };
        let mut instance = self.pod.clone().unwrap_or_else(|| CONTROLLER.to_owned());
        instance.truncate(INSTANCE_LIMIT);
        Event {
            metadata: ObjectMeta {
                name: Some(self.name_of(saying)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(last.clone()),
            series: (count > 1).then(|| EventSeries {
                count: number(count),
                last_observed_time: last,
            }),
            regarding: Some(reference(self.kind, &self.name, self.uid.as_ref())),
            related: self
                .pod
                .as_ref()
                .map(|pod| reference(Object::Pod(pod).kind(), pod, None)),
            reason: Some(saying.reason.to_owned()),
            action: Some(saying.action.to_owned()),
            type_: Some(saying.weight.to_owned()),
            note: Some(saying.note.to_owned()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(instance),
            ..Event::default()
        }
    }
}

impl Cluster {
    /// Reads the object that Events are about. Kubectl finds Events by the object's UID.
    pub async fn regarding(&self, object: Object<'_>, pod: Option<&str>) -> Result<Regarding, RequestError> {
        let patient = self.within(PATIENCE);
        let metadata = match object {
            Object::ConfigMap(name) => {
                let found = patient.config_maps();
                let found = found.get_metadata_opt(name);
                let found = patient.ask(self.attempt("get", "configmaps", name), found).await?;
                found.map(|found| found.metadata)
            }
            Object::Deployment(name) => {
                let found: Api<Deployment> = Api::namespaced(patient.client.clone(), &patient.namespace);
                let found = found.get_metadata_opt(name);
                let found = patient.ask(self.attempt("get", "deployments", name), found).await?;
                found.map(|found| found.metadata)
            }
            Object::Pod(name) => {
                let found: Api<Pod> = Api::namespaced(patient.client.clone(), &patient.namespace);
                let found = found.get_metadata_opt(name);
                let found = patient.ask(self.attempt("get", "pods", name), found).await?;
                found.map(|found| found.metadata)
            }
        };
        Ok(Regarding {
            kind: object.kind(),
            name: object.name().to_owned(),
            uid: metadata.and_then(|metadata| metadata.uid),
            pod: pod.map(str::to_owned),
        })
    }

    /// Adds `times` to the count of the Event, or creates it. With `first`, an existing Event stays as it is, because
    /// it was written by an earlier process and nothing has changed since.
    pub async fn say(
        &self,
        regarding: &Regarding,
        saying: &Saying<'_>,
        times: u32,
        first: bool,
    ) -> Result<(), RequestError> {
        let patient = self.within(PATIENCE);
        if !first {
            return patient.count_on(regarding, saying, times).await;
        }
        match patient.create_event(regarding, saying, times).await {
            Err(error) if error.is_conflict() => Ok(()),
            outcome => outcome,
        }
    }

    async fn create_event(&self, regarding: &Regarding, saying: &Saying<'_>, count: u32) -> Result<(), RequestError> {
        let event = regarding.event(self.namespace(), saying, count);
        let attempt = self.attempt("create", RESOURCE, "");
        self.ask(attempt, self.events().create(&PostParams::default(), &event))
            .await
            .map(drop)
    }

    async fn count_on(&self, regarding: &Regarding, saying: &Saying<'_>, times: u32) -> Result<(), RequestError> {
        let name = regarding.name_of(saying);
        let events = self.events();
        let found = self
            .ask(self.attempt("get", RESOURCE, &name), events.get_opt(&name))
            .await?;
        let Some(found) = found else {
            return self.create_event(regarding, saying, times).await;
        };
        let counted = found.series.map_or(1, |series| series.count);
        let series = EventSeries {
            count: counted.saturating_add(number(times)),
            last_observed_time: MicroTime(saying.last),
        };
        let patch = Patch::Merge(json!({ "series": series }));
        let attempt = self.attempt("patch", RESOURCE, &name);
        let patched = self
            .ask(attempt, events.patch(&name, &PatchParams::default(), &patch))
            .await;
        match patched {
            Err(error) if error.is_not_found() => self.create_event(regarding, saying, times).await,
            outcome => outcome.map(drop),
        }
    }

    fn events(&self) -> Api<Event> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The number in the API's type.
fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
