//! The configuration, owner and server of a webhook that the API server could not call, for the text of a failure.
//!
//! It only reads.

use addon_core::release::interception::failed_webhook;
use addon_core::release::{RELEASE_NAME, RELEASE_NAMESPACE};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use kube_access::Cluster;
use kube_access::apis::Kind;
use kube_access::error::{Attempt, RequestError};
use serde_json::Value;

use crate::replacement::{self, Place};
use crate::revisions;

/// The kinds of webhook configurations, each with its resource.
const KINDS: [(&str, &str); 2] = [
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
];

/// The endpoints of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    all: usize,
    ready: usize,
}

async fn about_failed_webhook(cluster: &Cluster, text: &str) -> Vec<String> {
    let Some(webhook) = failed_webhook(text) else {
        return Vec::new();
    };
    let mut told = Vec::new();
    for kind in &KINDS {
        // A kind that cannot be read is left out.
        for configuration in configurations_of(cluster, kind).await.unwrap_or_default() {
            let webhooks = configuration.data["webhooks"].as_array();
            let its = webhooks.and_then(|all| all.iter().find(|its| its["name"] == webhook));
            if let Some(its) = its {
                let (owner, server) = (owner_of(cluster, &configuration).await, server_of(cluster, its).await);
                let name = configuration.name_any();
                told.push(format!(
                    "webhook '{webhook}' is in {} '{name}' {owner}; {server}; repair it, or remove the webhook: \
                     kubectl delete {} {name}",
                    kind.0,
                    kind.0.to_ascii_lowercase()
                ));
            }
        }
    }
    if told.is_empty() {
        told.push(format!(
            "webhook '{webhook}' did not answer: is its server up, and does the API server reach it?"
        ));
    }
    told
}

/// The remedies for a failure whose text names a webhook that the API server could not call; none for another failure.
/// Without the right to read configurations the remedy names only the webhook.
pub fn remedies<'a>(cluster: &'a Cluster, text: &'a str) -> BoxFuture<'a, Vec<String>> {
    Box::pin(about_failed_webhook(cluster, text))
}

/// Whether a webhook configuration exists.
pub async fn is_configured(cluster: &Cluster, kind: &str, name: &str) -> Result<bool, RequestError> {
    match configuration(kind, name) {
        Some(place) => Ok(replacement::uid_at(cluster, &place).await?.is_some()),
        None => Ok(false),
    }
}

/// Whether a Service surely has no ready endpoint. Without the right to look, nothing is sure.
pub async fn leads_nowhere(cluster: &Cluster, namespace: &str, service: &str) -> Result<bool, RequestError> {
    let ready = match endpoints_of(cluster, namespace, service).await {
        Err(error) if error.is_forbidden() => return Ok(false),
        counted => counted?.ready,
    };
    if ready > 0 {
        return Ok(false);
    }
    let api: Api<Service> = Api::namespaced(cluster.client(), namespace);
    let attempt = Attempt {
        namespace: Some(namespace.to_owned()),
        ..cluster.attempt("get", "services", service)
    };
    let found = match cluster.ask(attempt, api.get_opt(service)).await {
        Err(error) if error.is_forbidden() => return Ok(false),
        found => found?,
    };
    // A Service that only names another host has no endpoints.
    let is_elsewhere = |service: Service| service.spec?.type_.filter(|its| its == "ExternalName");
    Ok(found.and_then(is_elsewhere).is_none())
}

async fn configurations_of(cluster: &Cluster, kind: &(&str, &str)) -> Result<Vec<DynamicObject>, RequestError> {
    let resource = kind_of(kind).resource;
    let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
    let attempt = Attempt {
        resource: resource.plural.clone(),
        namespace: None,
        ..cluster.attempt("list", "", "")
    };
    let found = cluster.ask(attempt, api.list(&ListParams::default())).await?;
    Ok(found.items)
}

/// The owner of a configuration, from helm's annotations.
async fn owner_of(cluster: &Cluster, configuration: &DynamicObject) -> String {
    let says = |key: &str| configuration.annotations().get(key).map(String::as_str);
    let (Some(release), Some(namespace)) = (says(RELEASE_NAME), says(RELEASE_NAMESPACE)) else {
        return "of no release".to_owned();
    };
    let is_ours = namespace == cluster.namespace() && {
        let newest = revisions::newest_revision(cluster, release).await;
        newest.is_ok_and(|newest| newest.is_some_and(|newest| newest.newest.ours))
    };
    if is_ours {
        format!("of module '{release}'")
    } else {
        format!("of release '{release}' in namespace '{namespace}'")
    }
}

/// The server of a webhook in words.
async fn server_of(cluster: &Cluster, webhook: &Value) -> String {
    let client = &webhook["clientConfig"];
    let of_service = |field: &str| client["service"][field].as_str();
    let (Some(name), Some(namespace)) = (of_service("name"), of_service("namespace")) else {
        return format!("its server is {}", client["url"].as_str().unwrap_or("unknown"));
    };
    let service = format!("its Service '{namespace}/{name}'");
    match endpoints_of(cluster, namespace, name).await {
        Ok(counted) => format!("{service} {}", in_words(counted)),
        // Without the right to list endpoints nothing is known about them.
        Err(_) => format!("{service} did not answer"),
    }
}

async fn endpoints_of(cluster: &Cluster, namespace: &str, service: &str) -> Result<Counted, RequestError> {
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client(), namespace);
    let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let attempt = Attempt {
        namespace: Some(namespace.to_owned()),
        ..cluster.attempt("list", "endpointslices", "")
    };
    Ok(count(&cluster.ask(attempt, api.list(&params)).await?.items))
}

/// The place of a webhook configuration; `None` for another kind.
pub(super) fn configuration(kind: &str, name: &str) -> Option<Place> {
    let kind = KINDS.iter().find(|(known, _)| *known == kind)?;
    Some(Place {
        kind: kind_of(kind),
        namespace: None,
        name: name.to_owned(),
    })
}

/// The kind with its resource.
fn kind_of((kind, plural): &(&str, &str)) -> Kind {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Kind {
        resource: ApiResource::from_gvk_with_plural(&kind, plural),
        namespaced: false,
    }
}

fn count(slices: &[EndpointSlice]) -> Counted {
    let endpoints = || slices.iter().flat_map(|slice| &slice.endpoints);
    let readiness = endpoints().map(|endpoint| endpoint.conditions.as_ref().and_then(|its| its.ready));
    Counted {
        all: endpoints().count(),
        // An unknown state counts as ready.
        ready: readiness.filter(|ready| ready.unwrap_or(true)).count(),
    }
}

fn in_words(counted: Counted) -> String {
    match counted {
        Counted { all: 0, .. } => "has no endpoints".to_owned(),
        Counted { ready: 0, .. } => "has no ready endpoints".to_owned(),
        Counted { ready, .. } => format!("has ready endpoints ({ready})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_of_all_slices_count() {
        let slice = |ready: &[Value]| {
            let endpoint = |ready| json!({"addresses": ["10.0.0.1"], "conditions": {"ready": ready}});
            let endpoints: Vec<_> = ready.iter().map(endpoint).collect();
            let slice = json!({"metadata": {}, "addressType": "IPv4", "endpoints": endpoints});
            serde_json::from_value::<EndpointSlice>(slice).unwrap()
        };
        let (ready, unready) = (json!(true), json!(false));
        for (slices, expected) in [
            (vec![], "has no endpoints"),
            (vec![slice(&[])], "has no endpoints"),
            (
                vec![slice(std::slice::from_ref(&unready)), slice(&[])],
                "has no ready endpoints",
            ),
            (
                vec![slice(&[unready, ready]), slice(&[Value::Null])],
                "has ready endpoints (2)",
            ),
        ] {
            assert_eq!(in_words(count(&slices)), expected);
        }
    }
}
