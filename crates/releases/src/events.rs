//! The Events about a module: those about the objects of its release, about what these own, and the operator's about
//! the module itself.
//!
//! Must never write.

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::known::Known;
use serde::Serialize;

use crate::family::{Family, pages};

/// An Event, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Told {
    /// The time of its last occurrence.
    pub last: Timestamp,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub weight: String,
    pub reason: String,
    /// The object that it is about, as in `Pod/web-0`, with its namespace if that is not the operator's.
    pub object: String,
    pub message: String,
    /// The number of occurrences.
    pub count: i32,
}

/// The Events about a module, the oldest first. Those about objects of the whole cluster stand in the namespace `default`, and
/// are not looked for.
pub async fn about(cluster: &Cluster, module: &str, config_map: &str) -> Result<Vec<Told>, RequestError> {
    let family = Family::of(cluster, module).await?;
    let own = cluster.namespace();
    let mut told = Vec::new();
    for namespace in family.namespaces.iter().map(String::as_str) {
        let api: Api<Event> = Api::namespaced(cluster.client(), namespace);
        let list = |params| {
            let api = api.clone();
            async move { api.list(&params).await }.boxed()
        };
        let take = |event: Event| {
            let is_meant = is_about(&event, &family) || is_of_module(&event, module, config_map, own);
            is_meant.then(|| tell(&event, own, &family.secrets))
        };
        told.extend(pages(cluster, namespace, "events", list, take).await?);
    }
    told.sort();
    Ok(told)
}

fn is_about(event: &Event, family: &Family) -> bool {
    let object = &event.involved_object;
    let place = object.namespace.as_deref().or(event.metadata.namespace.as_deref());
    let [place, kind, name] = [place, object.kind.as_deref(), object.name.as_deref()].map(Option::unwrap_or_default);
    family.holds(place, kind, name)
}

/// Whether it is one of the operator's Events about this module. They are about the ConfigMap and name the module.
fn is_of_module(event: &Event, module: &str, config_map: &str, own: &str) -> bool {
    let object = &event.involved_object;
    let is_there = event.metadata.namespace.as_deref() == Some(own);
    is_there
        && object.kind.as_deref() == Some("ConfigMap")
        && object.name.as_deref() == Some(config_map)
        && event
            .message
            .as_ref()
            .is_some_and(|text| text.contains(&format!("'{module}'")))
}

fn tell(event: &Event, own: &str, known: &Known) -> Told {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let object = &event.involved_object;
    let elsewhere = object.namespace.as_deref().filter(|namespace| *namespace != own);
    let place = elsewhere.map_or_else(String::new, |namespace| format!("{namespace}/"));
    let series = event.series.as_ref();
    let last = series
        .and_then(|series| series.last_observed_time.as_ref())
        .map(|time| time.0)
        .or_else(|| event.last_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
        .or_else(|| event.metadata.creation_timestamp.as_ref().map(|time| time.0));
    Told {
        last: last.unwrap_or_default(),
        weight: text(&event.type_),
        reason: text(&event.reason),
        object: format!("{place}{}/{}", text(&object.kind), text(&object.name)),
        message: known.masked(&text(&event.message)).into_owned(),
        count: series.and_then(|series| series.count).or(event.count).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, name: &str, message: &str) -> Event {
        serde_json::from_value(json!({
            "metadata": {"name": "e", "namespace": "ns"}, "message": message, "type": "Normal", "reason": "R",
            "involvedObject": {"kind": kind, "name": name, "namespace": "ns"}, "lastTimestamp": "2026-01-01T00:00:00Z", "count": 2,
        }))
        .unwrap()
    }

    #[test]
    fn the_operators_events_about_the_module_count_and_those_about_others_do_not() {
        let is_meant = |message: &str| is_of_module(&event("ConfigMap", "cm", message), "web", "cm", "ns");
        assert!(is_meant("module 'web' is ready"));
        assert!(!is_meant("module 'web-x' is ready"));
        assert!(!is_of_module(
            &event("ConfigMap", "other", "module 'web'"),
            "web",
            "cm",
            "ns"
        ));
    }

    #[test]
    fn a_secret_of_the_release_is_not_told() {
        let known: Known = ["hunter22"].into_iter().collect();
        let told = tell(&event("Pod", "a", "hunter22 is bad"), "other", &known);
        assert_eq!(
            (told.message.as_str(), told.object.as_str(), told.count),
            ("<masked> is bad", "ns/Pod/a", 2)
        );
    }
}
