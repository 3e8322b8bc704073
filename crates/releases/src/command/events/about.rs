//! The Events about a module: those about the objects of its release, about what these own, and the operator's about
//! the module itself.
//!
//! Must never write.

use std::collections::BTreeSet;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ObjectList, ObjectMeta, PartialObjectMeta};
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::known::Known;
use objects::key::{ObjectKey, keys_of};
use serde::de::DeserializeOwned;

use super::Told;
use crate::revisions::history;

const PAGE: u32 = 500;
/// The largest number of pages of one list.
const PAGES: usize = 20;
/// The kinds that make pods.
const WORKLOADS: [&str; 6] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];

/// Namespace, kind and name of objects. The namespace is empty for objects of the whole cluster.
type Family = BTreeSet<(String, String, String)>;

/// The Events about a module, in no order.
pub(super) async fn events(cluster: &Cluster, module: &str, config_map: &str) -> Result<Vec<Told>, RequestError> {
    let (keys, known) = match history::newest_contents(cluster, module).await? {
        Some(newest) => (keys_of(&newest.documents), newest.secrets),
        None => (BTreeSet::new(), Known::default()),
    };
    let own = cluster.namespace();
    let mut family = family_of(&keys, own);
    let namespaces: BTreeSet<String> = family.iter().map(|(namespace, ..)| namespace.clone()).collect();
    let makes_pods = keys.iter().any(|key| WORKLOADS.contains(&key.kind.as_str()));
    let mut told = Vec::new();
    for namespace in namespaces.iter().map(String::as_str) {
        if makes_pods {
            for (kind, found) in [
                (
                    "ReplicaSet",
                    metadata::<ReplicaSet>(cluster, namespace, "replicasets").await?,
                ),
                ("Job", metadata::<Job>(cluster, namespace, "jobs").await?),
                ("Pod", metadata::<Pod>(cluster, namespace, "pods").await?),
            ] {
                join(&mut family, namespace, kind, &found);
            }
        }
        let api: Api<Event> = Api::namespaced(cluster.client(), namespace);
        let all = pages(cluster, namespace, "events", async |params| api.list(&params).await).await?;
        let is_meant = |event: &Event| is_about(event, &family) || is_of_module(event, module, config_map, own);
        let meant = all.iter().filter(|event| is_meant(event));
        told.extend(meant.map(|event| tell(event, own, &known)));
    }
    Ok(told)
}

/// The objects of a release. An object that names no namespace is one of the release's or of the whole cluster; Events
/// about the latter stand in the namespace `default`, and are not looked for.
fn family_of(keys: &BTreeSet<ObjectKey>, own: &str) -> Family {
    let place = |key: &ObjectKey| key.namespace.clone().unwrap_or_else(|| own.to_owned());
    let mut family: Family = keys
        .iter()
        .map(|key| (place(key), key.kind.clone(), key.name.clone()))
        .collect();
    // The operator's Events about the module stand there, even if the module has no release.
    family.insert((own.to_owned(), String::new(), String::new()));
    family
}

/// Takes the objects into the family that a member owns.
fn join(family: &mut Family, namespace: &str, kind: &str, found: &[ObjectMeta]) {
    for object in found {
        let owners = object.owner_references.iter().flatten();
        let mut owners = owners.map(|owner| (namespace.to_owned(), owner.kind.clone(), owner.name.clone()));
        if let Some(name) = &object.name
            && owners.any(|owner| family.contains(&owner))
        {
            family.insert((namespace.to_owned(), kind.to_owned(), name.clone()));
        }
    }
}

fn is_about(event: &Event, family: &Family) -> bool {
    let object = &event.involved_object;
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let place = object.namespace.clone().or_else(|| event.metadata.namespace.clone());
    family.contains(&(part(&place), part(&object.kind), part(&object.name)))
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

/// The metadata of all objects of a kind in a namespace.
async fn metadata<K>(cluster: &Cluster, namespace: &str, plural: &str) -> Result<Vec<ObjectMeta>, RequestError>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(cluster.client(), namespace);
    let list = async |params: ListParams| api.list_metadata(&params).await;
    let found: Vec<PartialObjectMeta<K>> = pages(cluster, namespace, plural, list).await?;
    Ok(found.into_iter().map(|object| object.metadata).collect())
}

/// The objects of a list that is read page by page.
async fn pages<K: Clone>(
    cluster: &Cluster,
    namespace: &str,
    plural: &str,
    list: impl AsyncFn(ListParams) -> Result<ObjectList<K>, kube::Error>,
) -> Result<Vec<K>, RequestError> {
    let mut params = ListParams::default().limit(PAGE);
    let mut items = Vec::new();
    for _ in 0..PAGES {
        let attempt = cluster.attempt_in(Some(namespace), "list", plural, "");
        let page = cluster.ask(attempt, list(params.clone())).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, name: &str, message: &str) -> Event {
        serde_json::from_value(json!({
            "metadata": {"name": "e", "namespace": "ns"}, "message": message, "type": "Normal", "reason": "R",
            "involvedObject": {"kind": kind, "name": name, "namespace": "ns"}, "lastTimestamp": "2026-01-01T00:00:00Z", "count": 2,
        }))
        .unwrap()
    }

    #[test]
    fn what_an_object_owns_belongs_to_it_through_all_owners() {
        let keys = keys_of(&[json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})]);
        let mut family = family_of(&keys, "ns");
        let owned = |name: &str, kind: &str, owner: &str| -> ObjectMeta {
            let owners: Value = json!([{"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"}]);
            serde_json::from_value(json!({"name": name, "ownerReferences": owners})).unwrap()
        };
        let sets = [
            owned("web-1", "Deployment", "web"),
            owned("web-x-1", "Deployment", "web-x"),
        ];
        join(&mut family, "ns", "ReplicaSet", &sets);
        let pods = [
            owned("web-1-a", "ReplicaSet", "web-1"),
            owned("web-x-1-a", "ReplicaSet", "web-x-1"),
        ];
        join(&mut family, "ns", "Pod", &pods);
        for (kind, name, expected) in [
            ("Deployment", "web", true),
            ("Pod", "web-1-a", true),
            ("Pod", "web-x-1-a", false),
        ] {
            assert_eq!(is_about(&event(kind, name, ""), &family), expected, "{name}");
        }
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
