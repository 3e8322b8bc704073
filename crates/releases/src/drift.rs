//! Finds out which objects of a release exist.
//!
//! It reads only metadata and never changes anything. An object counts as existing if it has its name and the
//! operator's labels, as in the original. Its contents are compared only if a setting asks for it.

pub mod alteration;
pub mod lookout;
pub mod restore;

use std::collections::{BTreeMap, BTreeSet};

use addon_core::module::description::Restoring;
use addon_core::release::Objects;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, ObjectMeta};
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;

use objects::key::ObjectKey;

/// Up to this number, objects of one kind and namespace are read one by one, because a list would contain the objects
/// of all modules.
const ONE_BY_ONE: usize = 4;
/// The limit of concurrent requests for one release.
const AT_ONCE: usize = 5;
const PAGE: u32 = 500;

/// The settings that say which drift of releases is reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The setting for modules that have no setting of their own.
    pub all: Restoring,
    /// The settings of single modules, by name.
    pub of_modules: BTreeMap<String, Restoring>,
}

impl Restored {
    /// The setting for a release.
    pub fn of(&self, release: &str) -> Restoring {
        self.of_modules.get(release).copied().unwrap_or(self.all)
    }

    /// Whether any drift is reverted, for any release.
    pub fn is_any(&self) -> bool {
        self.each().any(|restoring| restoring != Restoring::Off)
    }

    /// Whether objects of any release are compared with their manifests.
    fn compares_any(&self) -> bool {
        self.each().any(|restoring| restoring == Restoring::Changed)
    }

    fn each(&self) -> impl Iterator<Item = Restoring> {
        self.of_modules.values().copied().chain([self.all])
    }
}

/// The objects of one kind in one namespace.
struct Batch {
    resource: ApiResource,
    namespace: Option<String>,
    keys: Vec<ObjectKey>,
}

/// Looks for all objects; returns the first missing one. Objects of kinds that are not served are skipped: helm
/// could not create them either, and they are looked for when the kind is served again.
pub async fn look_for(
    cluster: &Cluster,
    keys: &BTreeSet<ObjectKey>,
    labels: &BTreeMap<String, String>,
    apis: &Apis,
) -> Result<Objects, RequestError> {
    let batches = batches(cluster, keys, apis);
    let missing = stream::iter(batches)
        .map(|batch| missing_of(cluster, batch, labels))
        .buffer_unordered(AT_ONCE)
        .try_filter_map(|missing| async move { Ok(missing) })
        .boxed()
        .try_next()
        .await?;
    Ok(missing.map_or(Objects::Present, |key| Objects::Missing(key.to_string())))
}

/// Objects grouped by kind and namespace, without those of kinds that are not served.
fn batches(cluster: &Cluster, keys: &BTreeSet<ObjectKey>, apis: &Apis) -> Vec<Batch> {
    let mut batches: BTreeMap<(&str, &str, Option<&str>), Batch> = BTreeMap::new();
    for key in keys {
        let Some(kind) = apis.kind(&key.api_version, &key.kind) else {
            continue;
        };
        let namespace = kind
            .namespaced
            .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
        batches
            .entry((&key.api_version, &key.kind, namespace))
            .or_insert_with(|| Batch {
                resource: kind.resource.clone(),
                namespace: namespace.map(str::to_owned),
                keys: Vec::new(),
            })
            .keys
            .push(key.clone());
    }
    let mut parts = Vec::new();
    for batch in batches.into_values() {
        if batch.keys.len() > ONE_BY_ONE {
            parts.push(batch);
            continue;
        }
        let Batch {
            resource,
            namespace,
            keys,
        } = batch;
        parts.extend(keys.into_iter().map(|key| Batch {
            resource: resource.clone(),
            namespace: namespace.clone(),
            keys: vec![key],
        }));
    }
    parts
}

async fn missing_of(
    cluster: &Cluster,
    batch: Batch,
    labels: &BTreeMap<String, String>,
) -> Result<Option<ObjectKey>, RequestError> {
    let Batch {
        resource,
        namespace,
        keys,
    } = batch;
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    let attempt = |verb, name: &str| cluster.attempt_in(namespace.as_deref(), verb, &resource.plural, name);
    if let [key] = keys.as_slice() {
        let found = cluster
            .ask(attempt("get", &key.name), api.get_metadata_opt(&key.name))
            .await?;
        let there = found.is_some_and(|found| carries(&found.metadata, labels));
        return Ok((!there).then(|| key.clone()));
    }
    let selector: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut params = ListParams::default().labels(&selector.join(",")).limit(PAGE);
    let mut found = BTreeSet::new();
    loop {
        let page = cluster.ask(attempt("list", ""), api.list_metadata(&params)).await?;
        found.extend(page.items.into_iter().filter_map(|object| object.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(keys.into_iter().find(|key| !found.contains(&key.name))),
        }
    }
}

fn carries(metadata: &ObjectMeta, labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(key, value)| metadata.labels.as_ref().and_then(|all| all.get(key)) == Some(value))
}
