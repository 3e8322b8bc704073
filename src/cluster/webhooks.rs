//! The objects in the cluster that make the API server ask us and our hooks: webhook configurations, and the conversion
//! stanzas of resource definitions.
//!
//! Compares before it writes, so that unchanged objects are not written and changes by other writers are reverted. Must
//! never touch a field that is not ours.

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
use serde_json::{Value, json};

use super::Cluster;
use super::error::{Attempt, RequestError};

/// The label that names the maker of a configuration.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "addon-operator");
/// The number of tries of a write when another writer comes in between.
const ROUNDS: usize = 3;
const CRDS: &str = "customresourcedefinitions";

/// Something that was not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The change that was made.
    pub done: Done,
    /// The resource as RBAC spells it.
    pub resource: &'static str,
    /// The object's name.
    pub name: String,
}

/// The change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It did not exist.
    Created,
    /// It was not as it should be.
    Updated,
    /// It is no longer needed.
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

/// How the publication of a configuration ended.
#[derive(Debug)]
pub struct Published {
    /// The change.
    pub change: Option<Change>,
    /// Why not all of it could be.
    pub refused: Option<RequestError>,
}

/// How the publication of a conversion ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversion {
    /// There is no such resource definition yet.
    Undefined,
    /// It was as it should be.
    AsWanted,
    /// It was not.
    Changed(Change),
}

/// A webhook configuration as it should be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Of which kind.
    pub kind: AdmissionKind,
    /// Its name.
    pub name: &'a str,
    /// Its `.webhooks`; none if there is to be no such configuration.
    pub webhooks: &'a [Value],
    /// Goes only together with this.
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

    /// The change of the existing object.
    fn difference(&self, found: &DynamicObject) -> Option<Value> {
        let mut patch = json!({});
        // An empty list is not written out.
        let there = found.data.get("webhooks").and_then(Value::as_array);
        if there.map_or(&[][..], Vec::as_slice) != self.webhooks {
            patch["webhooks"] = json!(self.webhooks);
        }
        let owners = found.owner_references();
        let lacks = |owner: &&OwnerReference| owners.iter().all(|there| there.uid != owner.uid);
        // The owner of another program's object is not ours to set.
        if let Some(owner) = self.owner.filter(lacks).filter(|_| is_ours(found)) {
            let all: Vec<_> = owners.iter().chain([owner]).collect();
            patch["metadata"]["ownerReferences"] = json!(all);
        }
        (patch != json!({})).then(|| versioned(patch, found))
    }
}

/// The places of those webhooks that are the reason of a refusal.
fn refused(error: &RequestError) -> BTreeSet<usize> {
    let RequestError::Failed { source, .. } = error else {
        return BTreeSet::new();
    };
    let kube::Error::Api(status) = source.as_ref() else {
        return BTreeSet::new();
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let places = causes.map(|cause| cause.field.strip_prefix("webhooks[")?.split_once(']')?.0.parse().ok());
    // A cause that is about something else cannot be helped by leaving webhooks out.
    places.collect::<Option<_>>().unwrap_or_default()
}

fn is_ours(object: &DynamicObject) -> bool {
    let (key, value) = MANAGED_BY;
    object.labels().get(key).is_some_and(|there| there == value)
}

/// The patch is refused if another writer has changed the object since.
fn versioned(mut patch: Value, found: &impl kube::Resource) -> Value {
    patch["metadata"]["resourceVersion"] = json!(found.meta().resource_version);
    patch
}

impl Cluster {
    /// Brings a webhook configuration to where it should be. One that is not needed any more is removed if we made it,
    /// and emptied if another program did. A webhook that the API server refuses does not keep the others out; as it
    /// was before, it stays.
    pub async fn publish_configuration(&self, wanted: Wanted<'_>) -> Result<Published, RequestError> {
        let error = match Box::pin(self.settle(wanted)).await {
            Ok(change) => return Ok(Published { change, refused: None }),
            Err(error) => error,
        };
        let refused = refused(&error);
        if refused.is_empty() || (0..wanted.webhooks.len()).all(|place| refused.contains(&place)) {
            return Err(error);
        }
        let there = Box::pin(self.webhooks_there(wanted)).await?;
        let all = wanted.webhooks.iter().enumerate();
        let rest: Vec<Value> = all
            .filter_map(|(place, webhook)| {
                if !refused.contains(&place) {
                    return Some(webhook.clone());
                }
                let mut known = there.iter().find(|known| known["name"] == webhook["name"])?.clone();
                // The address and its CA bundle are not the part that was refused.
                known["clientConfig"] = webhook["clientConfig"].clone();
                Some(known)
            })
            .collect();
        let change = Box::pin(self.settle(Wanted {
            webhooks: &rest,
            ..wanted
        }))
        .await?;
        Ok(Published {
            change,
            refused: Some(error),
        })
    }

    async fn webhooks_there(&self, wanted: Wanted<'_>) -> Result<Vec<Value>, RequestError> {
        let api = self.configurations(wanted);
        let attempt = self.cluster_attempt("get", wanted.resource(), wanted.name);
        let found = self.find(&api, attempt).await?;
        let there = found.and_then(|mut found| match found.data["webhooks"].take() {
            Value::Array(webhooks) => Some(webhooks),
            _ => None,
        });
        Ok(there.unwrap_or_default())
    }

    async fn settle(&self, wanted: Wanted<'_>) -> Result<Option<Change>, RequestError> {
        for _ in 1..ROUNDS {
            match Box::pin(self.try_configuration(wanted)).await {
                // Another writer changed it, or it was deleted or created: read again.
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                settled => return settled,
            }
        }
        Box::pin(self.try_configuration(wanted)).await
    }

    async fn try_configuration(&self, wanted: Wanted<'_>) -> Result<Option<Change>, RequestError> {
        let api = self.configurations(wanted);
        let attempt = |verb| self.cluster_attempt(verb, wanted.resource(), wanted.name);
        let found = match self.find(&api, attempt("get")).await {
            // An operator that never had a webhook needs no right to read one.
            Err(error) if wanted.webhooks.is_empty() && error.is_forbidden() => return Ok(None),
            found => found?,
        };
        let Some(found) = found else {
            if wanted.webhooks.is_empty() {
                return Ok(None);
            }
            let object = wanted.new_object();
            let params = PostParams::default();
            self.ask(attempt("create"), api.create(&params, &object)).await?;
            return Ok(Some(wanted.change(Done::Created)));
        };
        if wanted.webhooks.is_empty() && is_ours(&found) {
            let params = DeleteParams::default().preconditions(Preconditions {
                resource_version: found.metadata.resource_version.clone(),
                uid: found.metadata.uid.clone(),
            });
            match self.ask(attempt("delete"), api.delete(wanted.name, &params)).await {
                // Without the right to delete it, it is emptied.
                Err(error) if error.is_forbidden() => self.lacking.tell(error, "update"),
                deleted => {
                    deleted?;
                    return Ok(Some(wanted.change(Done::Removed)));
                }
            }
        }
        let Some(patch) = wanted.difference(&found) else {
            return Ok(None);
        };
        self.patch_or_replace(&api, attempt("patch"), &patch).await?;
        Ok(Some(wanted.change(Done::Updated)))
    }

    /// Makes the API server convert a resource through us.
    pub async fn publish_conversion(&self, crd: &str, stanza: &Value) -> Result<Conversion, RequestError> {
        for _ in 1..ROUNDS {
            match Box::pin(self.try_conversion(crd, stanza)).await {
                Err(error) if error.is_conflict() => {}
                settled => return settled,
            }
        }
        Box::pin(self.try_conversion(crd, stanza)).await
    }

    async fn try_conversion(&self, crd: &str, stanza: &Value) -> Result<Conversion, RequestError> {
        let api = self.crds();
        let attempt = |verb| self.cluster_attempt(verb, CRDS, crd);
        let Some(found) = self.find(&api, attempt("get")).await? else {
            return Ok(Conversion::Undefined);
        };
        if found.data["spec"]["conversion"] == *stanza {
            return Ok(Conversion::AsWanted);
        }
        let mut conversion = stanza.clone();
        // Either a service or an address: the one that is there must not stay.
        conversion["webhook"]["clientConfig"]["url"] = Value::Null;
        let patch = versioned(json!({"spec": {"conversion": conversion}}), &found);
        match self.patch_or_replace(&api, attempt("patch"), &patch).await {
            Err(error) if error.is_not_found() => return Ok(Conversion::Undefined),
            changed => changed?,
        };
        Ok(Conversion::Changed(Change {
            done: Done::Updated,
            resource: CRDS,
            name: crd.to_owned(),
        }))
    }

    /// The cluster role that goes when the chart that installed us goes, as an owner of objects.
    pub async fn owning_role(&self, name: &str) -> Result<OwnerReference, RequestError> {
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        let attempt = self.cluster_attempt("get", "clusterroles", name);
        let role = self.ask(attempt, api.get_metadata(name)).await?;
        Ok(OwnerReference {
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            kind: "ClusterRole".to_owned(),
            name: name.to_owned(),
            uid: role.metadata.uid.unwrap_or_default(),
            ..OwnerReference::default()
        })
    }

    fn configurations(&self, wanted: Wanted<'_>) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &wanted.api_resource())
    }

    fn cluster_attempt(&self, verb: &'static str, resource: &str, name: &str) -> Attempt {
        Attempt {
            verb,
            resource: resource.to_owned(),
            name: name.to_owned(),
            namespace: None,
            server: self.server.clone(),
            account: self.account.clone(),
        }
    }
}
