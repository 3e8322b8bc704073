//! The objects that make the API server call the operator's webhooks: webhook configurations, and the conversion
//! settings of CRDs.
//!
//! It compares before it writes, so unchanged objects are not written, and changes by other writers are reverted. Must
//! never change a field of another owner.

pub mod ensure;
pub mod kept;
pub mod touched;

use std::collections::BTreeSet;
use std::fmt;

use addon_core::review::routes::AdmissionKind;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::{Value, json};

/// The label that marks the operator's configurations.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "addon-operator");
/// The number of attempts for a write when another writer is faster.
const ROUNDS: usize = 3;
const CRDS: &str = "customresourcedefinitions";

/// A change of an object by the publication of webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of change.
    pub done: Done,
    /// The resource as RBAC spells it.
    pub resource: &'static str,
    /// The object's name.
    pub name: String,
}

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The object was created.
    Created,
    /// The object was changed.
    Updated,
    /// The object was removed.
    Removed,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.done {
            Done::Created => "created",
            Done::Updated => "updated",
            Done::Removed => "removed",
        };
        write!(f, "{} '{}' {done}", self.resource, self.name)
    }
}

/// The result of publishing a configuration.
#[derive(Debug)]
pub struct Published {
    pub change: Option<Change>,
    /// The error of the API server if it refused a part of the configuration.
    pub refused: Option<RequestError>,
}

/// The result of publishing a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversion {
    /// The CRD does not exist yet.
    Undefined,
    /// The CRD was already as wanted.
    AsWanted,
    /// The CRD was changed.
    Changed(Change),
}

/// The wanted state of a webhook configuration.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The kind of configuration.
    pub kind: AdmissionKind,
    /// The name of the configuration.
    pub name: &'a str,
    /// The field `.webhooks`; empty if the configuration must not exist.
    pub webhooks: &'a [Value],
    /// The owner, with which the configuration is deleted.
    pub owner: Option<&'a OwnerReference>,
}

impl Wanted<'_> {
    fn resource(&self) -> &'static str {
        match self.kind {
            AdmissionKind::Validating => "validatingwebhookconfigurations",
            AdmissionKind::Mutating => "mutatingwebhookconfigurations",
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            AdmissionKind::Validating => "ValidatingWebhookConfiguration",
            AdmissionKind::Mutating => "MutatingWebhookConfiguration",
        }
    }

    fn change(&self, done: Done) -> Change {
        Change {
            done,
            resource: self.resource(),
            name: self.name.to_owned(),
        }
    }

    fn api_resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", self.kind());
        ApiResource::from_gvk_with_plural(&kind, self.resource())
    }

    fn new_object(&self) -> DynamicObject {
        let mut object = DynamicObject::new(self.name, &self.api_resource()).data(json!({"webhooks": self.webhooks}));
        let (key, value) = MANAGED_BY;
        object.labels_mut().insert(key.to_owned(), value.to_owned());
        object.metadata.owner_references = self.owner.map(|owner| vec![owner.clone()]);
        object
    }

    /// The patch from the found object to the wanted one.
    fn difference(&self, found: &DynamicObject) -> Option<Value> {
        let mut patch = json!({});
        // The API server leaves out an empty list.
        let there = found.data.get("webhooks").and_then(Value::as_array);
        if there.map_or(&[][..], Vec::as_slice) != self.webhooks {
            patch["webhooks"] = json!(self.webhooks);
        }
        let owners = found.owner_references();
        let lacks = |owner: &&OwnerReference| owners.iter().all(|there| there.uid != owner.uid);
        // The owner of another program's object is not changed.
        if let Some(owner) = self.owner.filter(lacks).filter(|_| is_ours(found)) {
            let all: Vec<_> = owners.iter().chain([owner]).collect();
            patch["metadata"]["ownerReferences"] = json!(all);
        }
        (patch != json!({})).then(|| versioned(patch, found))
    }
}

/// The indexes of the webhooks that the API server refused.
fn refused(error: &RequestError) -> BTreeSet<usize> {
    let RequestError::Failed { source, .. } = error else {
        return BTreeSet::new();
    };
    let kube::Error::Api(status) = source.as_ref() else {
        return BTreeSet::new();
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let places = causes.map(|cause| cause.field.strip_prefix("webhooks[")?.split_once(']')?.0.parse().ok());
    // If a cause is about another field, leaving out webhooks does not help.
    places.collect::<Option<_>>().unwrap_or_default()
}

fn is_ours(object: &DynamicObject) -> bool {
    let (key, value) = MANAGED_BY;
    object.labels().get(key).is_some_and(|there| there == value)
}

/// Adds the resource version to the patch, so that it is refused if the object has changed.
fn versioned(mut patch: Value, found: &impl kube::Resource) -> Value {
    patch["metadata"]["resourceVersion"] = json!(found.meta().resource_version);
    patch
}

/// Publishes a webhook configuration. A configuration that is no longer needed is deleted if the operator made it, and
/// emptied otherwise. If the API server refuses a webhook, its earlier form stays, and the other webhooks are
/// published.
pub async fn publish_configuration(cluster: &Cluster, wanted: Wanted<'_>) -> Result<Published, RequestError> {
    let error = match Box::pin(settle(cluster, wanted)).await {
        Ok(change) => return Ok(Published { change, refused: None }),
        Err(error) => error,
    };
    let refused = refused(&error);
    if refused.is_empty() || (0..wanted.webhooks.len()).all(|place| refused.contains(&place)) {
        return Err(error);
    }
    let there = Box::pin(webhooks_there(cluster, wanted)).await?;
    let all = wanted.webhooks.iter().enumerate();
    let rest: Vec<Value> = all
        .filter_map(|(place, webhook)| {
            if !refused.contains(&place) {
                return Some(webhook.clone());
            }
            let mut known = there.iter().find(|known| known["name"] == webhook["name"])?.clone();
            // The address and the CA bundle are updated, because they were not refused.
            known["clientConfig"] = webhook["clientConfig"].clone();
            Some(known)
        })
        .collect();
    let change = Box::pin(settle(
        cluster,
        Wanted {
            webhooks: &rest,
            ..wanted
        },
    ))
    .await?;
    Ok(Published {
        change,
        refused: Some(error),
    })
}

async fn webhooks_there(cluster: &Cluster, wanted: Wanted<'_>) -> Result<Vec<Value>, RequestError> {
    let api = configurations(cluster, wanted);
    let attempt = cluster.attempt_in(None, "get", wanted.resource(), wanted.name);
    let found = cluster.find(&api, attempt).await?;
    let there = found.and_then(|mut found| match found.data["webhooks"].take() {
        Value::Array(webhooks) => Some(webhooks),
        _ => None,
    });
    Ok(there.unwrap_or_default())
}

async fn settle(cluster: &Cluster, wanted: Wanted<'_>) -> Result<Option<Change>, RequestError> {
    for _ in 1..ROUNDS {
        match Box::pin(try_configuration(cluster, wanted)).await {
            // The object was changed, deleted or created meanwhile, so it is read again.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            settled => return settled,
        }
    }
    Box::pin(try_configuration(cluster, wanted)).await
}

async fn try_configuration(cluster: &Cluster, wanted: Wanted<'_>) -> Result<Option<Change>, RequestError> {
    let api = configurations(cluster, wanted);
    let attempt = |verb| cluster.attempt_in(None, verb, wanted.resource(), wanted.name);
    let found = match cluster.find(&api, attempt("get")).await {
        // Without a webhook no right to read configurations is needed.
        Err(error) if wanted.webhooks.is_empty() && error.is_forbidden() => return Ok(None),
        found => found?,
    };
    let Some(found) = found else {
        if wanted.webhooks.is_empty() {
            return Ok(None);
        }
        let object = wanted.new_object();
        let params = PostParams::default();
        cluster.ask(attempt("create"), api.create(&params, &object)).await?;
        return Ok(Some(wanted.change(Done::Created)));
    };
    if wanted.webhooks.is_empty() && is_ours(&found) {
        let params = DeleteParams::default().preconditions(Preconditions {
            resource_version: found.metadata.resource_version.clone(),
            uid: found.metadata.uid.clone(),
        });
        match cluster.ask(attempt("delete"), api.delete(wanted.name, &params)).await {
            // Without the right to delete it, the configuration is emptied.
            Err(error) if error.is_forbidden() => cluster.lacking().tell(error, "update"),
            deleted => {
                deleted?;
                return Ok(Some(wanted.change(Done::Removed)));
            }
        }
    }
    let Some(patch) = wanted.difference(&found) else {
        return Ok(None);
    };
    cluster.patch_or_replace(&api, attempt("patch"), &patch).await?;
    Ok(Some(wanted.change(Done::Updated)))
}

/// Publishes the conversion webhook of a CRD.
pub async fn publish_conversion(cluster: &Cluster, crd: &str, stanza: &Value) -> Result<Conversion, RequestError> {
    for _ in 1..ROUNDS {
        match Box::pin(try_conversion(cluster, crd, stanza)).await {
            Err(error) if error.is_conflict() => {}
            settled => return settled,
        }
    }
    Box::pin(try_conversion(cluster, crd, stanza)).await
}

async fn try_conversion(cluster: &Cluster, crd: &str, stanza: &Value) -> Result<Conversion, RequestError> {
    let api = cluster.crds();
    let attempt = |verb| cluster.attempt_in(None, verb, CRDS, crd);
    let Some(found) = cluster.find(&api, attempt("get")).await? else {
        return Ok(Conversion::Undefined);
    };
    if found.data["spec"]["conversion"] == *stanza {
        return Ok(Conversion::AsWanted);
    }
    let mut conversion = stanza.clone();
    // A webhook has either a service or a URL, so an existing URL is removed.
    conversion["webhook"]["clientConfig"]["url"] = Value::Null;
    let patch = versioned(json!({"spec": {"conversion": conversion}}), &found);
    match cluster.patch_or_replace(&api, attempt("patch"), &patch).await {
        Err(error) if error.is_not_found() => return Ok(Conversion::Undefined),
        changed => changed?,
    };
    Ok(Conversion::Changed(Change {
        done: Done::Updated,
        resource: CRDS,
        name: crd.to_owned(),
    }))
}

/// The chart's cluster role as an owner: objects that it owns are deleted with the chart.
pub async fn owning_role(cluster: &Cluster, name: &str) -> Result<OwnerReference, RequestError> {
    let api: Api<ClusterRole> = Api::all(cluster.client());
    let attempt = cluster.attempt_in(None, "get", "clusterroles", name);
    let role = cluster.ask(attempt, api.get_metadata(name)).await?;
    Ok(OwnerReference {
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        kind: "ClusterRole".to_owned(),
        name: name.to_owned(),
        uid: role.metadata.uid.unwrap_or_default(),
        ..OwnerReference::default()
    })
}

fn configurations(cluster: &Cluster, wanted: Wanted<'_>) -> Api<DynamicObject> {
    Api::all_with(cluster.client(), &wanted.api_resource())
}
