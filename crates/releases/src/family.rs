//! The family of a module: the objects of its release, and the objects that these own, down to pods.
//!
//! Must never write.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kube::core::{ObjectList, ObjectMeta, PartialObjectMeta};
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::known::Known;
use objects::key::{ObjectKey, keys_of};
use serde::de::DeserializeOwned;

use crate::revisions::history;

const PAGE: u32 = 500;
/// The largest number of pages of one list.
const PAGES: usize = 20;
/// The kinds that make pods.
const WORKLOADS: [&str; 6] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];

/// Namespace, kind and name of objects. Without a namespace in the manifest it is the operator's, also for objects of the whole
/// cluster.
type Members = BTreeSet<(String, String, String)>;

/// The family of a module.
#[derive(Debug, Default)]
pub(crate) struct Family {
    members: Members,
    /// The namespaces of the objects. The operator's is one of them.
    pub(crate) namespaces: BTreeSet<String>,
    /// The secrets of the release.
    pub(crate) secrets: Known,
}

impl Family {
    /// The family of a module, with the rights of the account that asks.
    pub(crate) async fn of(cluster: &Cluster, module: &str) -> Result<Self, RequestError> {
        let (keys, secrets) = match history::newest_contents(cluster, module).await? {
            Some(newest) => (keys_of(&newest.documents), newest.secrets),
            None => (BTreeSet::new(), Known::default()),
        };
        let mut family = Self::of_keys(&keys, cluster.namespace());
        family.secrets = secrets;
        if keys.iter().any(|key| WORKLOADS.contains(&key.kind.as_str())) {
            for namespace in family.namespaces.clone() {
                let namespace = namespace.as_str();
                let sets = permitted(metadata::<ReplicaSet>(cluster, namespace, "replicasets")).await?;
                family.join(namespace, "ReplicaSet", &sets);
                let jobs = permitted(metadata::<Job>(cluster, namespace, "jobs")).await?;
                family.join(namespace, "Job", &jobs);
                family.join(namespace, "Pod", &metadata::<Pod>(cluster, namespace, "pods").await?);
            }
        }
        Ok(family)
    }

    /// The objects of a release. An object that names no namespace is one of the release's or of the whole cluster.
    fn of_keys(keys: &BTreeSet<ObjectKey>, own: &str) -> Self {
        let place = |key: &ObjectKey| key.namespace.clone().unwrap_or_else(|| own.to_owned());
        let members: Members = keys
            .iter()
            .map(|key| (place(key), key.kind.clone(), key.name.clone()))
            .collect();
        let namespaces = members.iter().map(|(namespace, ..)| namespace.clone());
        Self {
            namespaces: namespaces.chain([own.to_owned()]).collect(),
            members,
            secrets: Known::default(),
        }
    }

    /// Takes the objects that a member owns into the family.
    fn join(&mut self, namespace: &str, kind: &str, found: &[ObjectMeta]) {
        for object in found {
            let owners = object.owner_references.iter().flatten();
            let mut owners = owners.map(|owner| (namespace.to_owned(), owner.kind.clone(), owner.name.clone()));
            if let Some(name) = &object.name
                && owners.any(|owner| self.members.contains(&owner))
            {
                self.members
                    .insert((namespace.to_owned(), kind.to_owned(), name.clone()));
            }
        }
    }

    /// Whether an object belongs to the family.
    pub(crate) fn holds(&self, namespace: &str, kind: &str, name: &str) -> bool {
        self.members
            .contains(&(namespace.to_owned(), kind.to_owned(), name.to_owned()))
    }

    /// The namespace and the name of each pod.
    pub(crate) fn pods(&self) -> impl Iterator<Item = (&str, &str)> {
        let pods = self.members.iter().filter(|(_, kind, _)| kind == "Pod");
        pods.map(|(namespace, _, name)| (namespace.as_str(), name.as_str()))
    }
}

/// The metadata of all objects of a kind in a namespace.
async fn metadata<K>(cluster: &Cluster, namespace: &str, plural: &str) -> Result<Vec<ObjectMeta>, RequestError>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + 'static,
{
    let api: Api<K> = Api::namespaced(cluster.client(), namespace);
    let list = |params| {
        let api = api.clone();
        async move { api.list_metadata(&params).await }.boxed()
    };
    pages(cluster, namespace, plural, list, |object: PartialObjectMeta<K>| {
        Some(object.metadata)
    })
    .await
}

/// A list; empty if the account may not make it: generated rights leave out the kinds that a module does not use.
async fn permitted(
    list: impl Future<Output = Result<Vec<ObjectMeta>, RequestError>>,
) -> Result<Vec<ObjectMeta>, RequestError> {
    match list.await {
        Err(error) if error.is_forbidden() => Ok(Vec::new()),
        list => list,
    }
}

/// The parts that are taken of a list that is read page by page.
pub(crate) async fn pages<K: Clone, T>(
    cluster: &Cluster,
    namespace: &str,
    plural: &str,
    list: impl Fn(ListParams) -> BoxFuture<'static, Result<ObjectList<K>, kube::Error>>,
    take: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, RequestError> {
    let mut params = ListParams::default().limit(PAGE);
    let mut items = Vec::new();
    for _ in 0..PAGES {
        let attempt = cluster.attempt_in(Some(namespace), "list", plural, "");
        let page = cluster.ask(attempt, list(params.clone())).await?;
        items.extend(page.items.into_iter().filter_map(&take));
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

    #[test]
    fn what_an_object_owns_belongs_to_it_through_all_owners() {
        let keys = keys_of(&[json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})]);
        let mut family = Family::of_keys(&keys, "ns");
        let owned = |name: &str, kind: &str, owner: &str| -> ObjectMeta {
            let owners: Value = json!([{"apiVersion": "v1", "kind": kind, "name": owner, "uid": "u"}]);
            serde_json::from_value(json!({"name": name, "ownerReferences": owners})).unwrap()
        };
        let sets = [
            owned("web-1", "Deployment", "web"),
            owned("web-x-1", "Deployment", "web-x"),
        ];
        family.join("ns", "ReplicaSet", &sets);
        let pods = [
            owned("web-1-a", "ReplicaSet", "web-1"),
            owned("web-x-1-a", "ReplicaSet", "web-x-1"),
        ];
        family.join("ns", "Pod", &pods);
        assert!(family.holds("ns", "Deployment", "web"));
        assert_eq!(family.pods().collect::<Vec<_>>(), [("ns", "web-1-a")]);
    }
}
