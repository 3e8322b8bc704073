//! Objects in a stored revision whose group version the API server has just ceased to serve. Helm takes the answer 404
//! for a sign that the object is deleted, and would leave these objects behind.
//!
//! An API server that has just started may answer 404, too. So nothing is rewritten here, and a version must never count as gone.

use addon_core::failure::{Class, Failure};
use helm_yaml::yaml;
use kube_access::Cluster;
use kube_access::apis::Apis;
use serde_json::Value;

use super::Revision;
use super::unserved::{kind_of, manifests};
use crate::revisions;
use objects::key::flat;

/// Fails, so that helm does not remove the revision's objects, if the API server has just ceased to serve their
/// version.
pub async fn refuse_vanishing_of(cluster: &Cluster, revision: &Revision, apis: &Apis) -> Result<(), Failure> {
    if apis.vanishing.is_empty() {
        return Ok(());
    }
    let (_, content) = revisions::content(cluster, revision).await?;
    // Helm may read a manifest that the operator cannot.
    let documents = manifests(&content)
        .into_iter()
        .filter_map(|manifest| yaml::documents_v2(&manifest).ok());
    let objects: Vec<Value> = documents.flatten().flat_map(flat).collect();
    refuse_vanishing(&revision.release, &objects, apis)
}

/// Fails, so that helm does not act on these objects, if the API server has just ceased to serve a version of them.
pub fn refuse_vanishing(release: &str, objects: &[Value], apis: &Apis) -> Result<(), Failure> {
    let mut versions = objects.iter().filter_map(kind_of).map(|kind| kind.api_version);
    let vanishing = versions.find(|version| apis.vanishing.contains(version));
    vanishing.map_or(Ok(()), |version| {
        let report = format!(
            "release '{release}' has objects of {version}, which the API server ceased to serve a moment ago: helm would leave them behind"
        );
        let failure = Failure::new(Class::Unavailable, report);
        Err(failure.hint("it goes on once the version has been gone for 15 seconds, or is served again"))
    })
}
