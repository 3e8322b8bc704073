//! The releases to which objects belong: the operator's side of the claims that the post-renderer makes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::ReleaseSummary;
use addon_core::release::ConfigTrace;
use helm::HelmError;
use helm::claims::{Claims, Object};
use objects::key::ObjectKey;

use crate::Tools;
use crate::revisions::{Revision, list_releases, newest_revision};

/// Lists the releases of the namespace but those that are only handed over, and takes their objects into the claims.
pub async fn list(tools: &Tools) -> Result<Vec<ReleaseSummary>, Failure> {
    let releases = list_releases(&tools.ground.cluster).await?;
    let ours = releases.iter().filter(|revision| revision.newest.ours);
    begin(tools, ours).await?;
    let summary = |revision: Revision| ReleaseSummary {
        name: revision.release,
        ours: revision.newest.ours,
        config: revision.config.as_deref().and_then(ConfigTrace::parse),
    };
    // One that nothing of ours has made must not be removed because its module is not there, or off.
    let known = releases.into_iter().filter(|revision| !revision.is_handed_over);
    Ok(known.map(summary).collect())
}

/// Sets the claims to the objects that are marked on the releases in the cluster.
async fn begin(tools: &Tools, ours: impl Iterator<Item = &Revision>) -> Result<(), Failure> {
    let namespace = tools.ground.cluster.namespace();
    let marked = ours.filter_map(|revision| {
        let keys: BTreeSet<ObjectKey> = serde_json::from_str(revision.objects.as_deref()?).ok()?;
        Some((revision.release.clone(), objects(&keys, namespace)))
    });
    let releases: BTreeMap<_, _> = marked.collect();
    with_claims(tools, move |claims| claims.begin(&releases)).await
}

/// Sets the objects that a release claims. `keys` is empty if the release is gone.
pub(super) async fn settle(tools: &Tools, release: &str, keys: &BTreeSet<ObjectKey>) -> Result<(), Failure> {
    let objects = objects(keys, tools.ground.cluster.namespace());
    let release = release.to_owned();
    with_claims(tools, move |claims| claims.settle(&release, &objects)).await
}

/// The failure of a helm call: a refused claim, or helm's own error.
pub(super) async fn explain(tools: &Tools, release: &str, error: HelmError) -> Failure {
    let name = release.to_owned();
    let Ok(Some(refusal)) = with_claims(tools, move |claims| claims.take_refusal(&name)).await else {
        return error.into();
    };
    // The release with the claim may have failed before it was created. Then its claims are dropped, and the next
    // attempt succeeds.
    if let Ok(None) = newest_revision(&tools.ground.cluster, &refusal.owner).await {
        // If this fails, the next refusal tries it again.
        let _ = settle(tools, &refusal.owner, &BTreeSet::new()).await;
    }
    match tools.ground.catalogue.borrow().module_named(&refusal.owner) {
        Some(_) => refusal.failure(release),
        None => refusal.until_removed(release),
    }
}

fn objects(keys: &BTreeSet<ObjectKey>, namespace: &str) -> BTreeSet<Object> {
    let object = |key: &ObjectKey| {
        let namespace = key.namespace.as_deref().unwrap_or(namespace);
        Object::new(&key.api_version, &key.kind, namespace, &key.name)
    };
    keys.iter().map(object).collect()
}

async fn with_claims<T: Send + 'static>(
    tools: &Tools,
    change: impl FnOnce(&Claims) -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let claims = tools.helm.claims().clone();
    blocking::run(move || change(&claims)).await.map_err(|error| {
        Failure::new(
            Class::Unavailable,
            format!("cannot record which release owns which objects: {error}"),
        )
    })
}
