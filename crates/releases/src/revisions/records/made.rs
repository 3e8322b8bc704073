//! The objects in the cluster that helm has made for a release. Only metadata is read, one list after the other.
//!
//! Must never name an object that another object controls, or that stays when its release is removed.

use std::collections::BTreeSet;

use kube::Api;
use kube::api::ListParams;
use kube::core::{DynamicObject, ObjectMeta};
use kube_access::Cluster;
use kube_access::apis::{Apis, Kind};
use kube_access::error::{Attempt, RequestError};

use super::super::super::adoption::{is_kept, is_of};
use super::super::PAGE;
use objects::key::ObjectKey;

/// The label that helm gives to all objects of releases.
const MANAGED: &str = "app.kubernetes.io/managed-by=Helm";

/// The objects of all kinds that helm has made for a release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// The objects that were found.
    pub objects: BTreeSet<ObjectKey>,
    /// The kinds that could not be listed.
    pub unlisted: Vec<String>,
}

/// The objects of these kinds, by API version and kind, that helm has made for the release. Kinds that the operator may
/// not list are left out.
pub async fn made_for(
    cluster: &Cluster,
    release: &str,
    kinds: &BTreeSet<(String, String)>,
    apis: &Apis,
) -> Result<BTreeSet<ObjectKey>, RequestError> {
    let mut made = BTreeSet::new();
    for (api_version, kind) in kinds {
        let Some(served) = apis.kind(api_version, kind) else {
            continue;
        };
        match made_of(cluster, release, api_version, served).await {
            Err(error) if error.is_forbidden() || error.is_not_found() => {}
            found => made.extend(found?),
        }
    }
    Ok(made)
}

/// The objects of all kinds that helm has made for the release. This takes a request for each kind, so it is done only
/// when a person asks.
pub async fn all_made_for(cluster: &Cluster, release: &str, apis: &Apis) -> Made {
    let mut made = Made::default();
    for (api_version, kind) in apis.each_kind() {
        match made_of(cluster, release, api_version, kind).await {
            Ok(found) => made.objects.extend(found),
            // Some kinds cannot be listed by their nature.
            Err(error) if matches!(error.code(), Some(404 | 405)) => {}
            Err(_) => made
                .unlisted
                .push(format!("{}.{}", kind.resource.plural, kind.resource.group)),
        }
    }
    made
}

async fn made_of(
    cluster: &Cluster,
    release: &str,
    api_version: &str,
    kind: &Kind,
) -> Result<Vec<ObjectKey>, RequestError> {
    let api: Api<DynamicObject> = Api::all_with(cluster.client(), &kind.resource);
    let (mut params, mut made) = (ListParams::default().labels(MANAGED).limit(PAGE), Vec::new());
    loop {
        let attempt = Attempt {
            resource: kind.resource.plural.clone(),
            namespace: None,
            ..cluster.attempt("list", "", "")
        };
        let page = cluster.ask(attempt, api.list_metadata(&params)).await?;
        let found = page.items.into_iter().map(|item| item.metadata);
        let found = found.filter(|metadata| is_left(cluster, release, metadata));
        made.extend(found.filter_map(|metadata| {
            Some(ObjectKey {
                api_version: api_version.to_owned(),
                kind: kind.resource.kind.clone(),
                namespace: metadata.namespace,
                name: metadata.name?,
            })
        }));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(made),
        }
    }
}

/// Whether the object stays although it should go with its release. Objects with a controller do not count, because a
/// controller copies helm's annotations to the objects that it makes.
fn is_left(cluster: &Cluster, release: &str, metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    let is_controlled = owners.any(|owner| owner.controller == Some(true));
    is_of(metadata, release, cluster.namespace()) && !is_kept(metadata) && !is_controlled
}
