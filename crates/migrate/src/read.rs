//! Reads a cluster: records of helm, objects of Flux and Argo CD, and sources of values.
//!
//! Must never write. Lists come in pages and without contents; a record is read when its turn comes.

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::release::records::place;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::{Attempt, RequestError};
use releases::revisions::contents::{self, Content};
use releases::revisions::whose::Whose;
use serde_json::Value;

use crate::kinds::Kinds;
use crate::outline::{Left, Place, Record, Records, ValuesSource};

/// The number of objects in one answer.
const PAGE: u32 = 500;
/// The number of objects with their contents in one answer.
const WHOLE_PAGE: u32 = 100;
/// The key of a record's contents.
const CONTENT: &str = "release";
/// The ConfigMaps in which other helms keep their records, by their labels.
const ELSEWHERE: [(&str, &str, &str); 2] = [
    (
        "OWNER=TILLER",
        "NAME",
        "helm 2 has made it: the operator cannot read its records; convert them first with the plugin helm-2to3",
    ),
    (
        "owner=helm",
        "name",
        "its records are ConfigMaps (HELM_DRIVER=configmap), and the operator reads Secrets",
    ),
];

/// A cluster that is only read.
#[derive(Debug)]
pub struct Reader {
    pub cluster: Cluster,
    pub apis: Arc<Apis>,
    pub kinds: Kinds,
}

impl Reader {
    pub async fn new(cluster: Cluster) -> Result<Self, Failure> {
        let apis = cluster.apis().await?;
        let kinds = Kinds::of(&apis);
        Ok(Self { cluster, apis, kinds })
    }

    fn attempt(&self, namespace: Option<&str>, verb: &'static str, resource: &str, name: &str) -> Attempt {
        self.cluster.attempt_in(namespace, verb, resource, name)
    }

    /// The newest record of each release, in one namespace or in all.
    pub async fn records(&self, namespace: Option<&str>) -> Result<Records, RequestError> {
        let client = self.cluster.client();
        let api: Api<Secret> = match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let (mut records, mut params) = (Records::new(), ListParams::default().labels("owner=helm").limit(PAGE));
        loop {
            let attempt = self.attempt(namespace, "list", "secrets", "");
            let page = self.cluster.ask(attempt, api.list_metadata(&params)).await?;
            for secret in &page.items {
                let metadata = &secret.metadata;
                let name = metadata.name.clone().unwrap_or_default();
                let Some((release, revision)) = place(&name) else {
                    continue;
                };
                let label = |key: &str| metadata.labels.as_ref().and_then(|all| all.get(key));
                let record = Record {
                    revision,
                    status: label("status").cloned().unwrap_or_default(),
                    is_ours: Whose::read(metadata) == Whose::Ours,
                    secret: name.clone(),
                };
                let within = metadata.namespace.clone().unwrap_or_default();
                let newest = records
                    .entry(Place::new(within, release))
                    .or_insert_with(|| record.clone());
                if newest.revision < revision {
                    *newest = record;
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(records),
            }
        }
    }

    /// The releases whose records are not in Secrets. Where ConfigMaps may not be listed, there are none.
    pub async fn elsewhere(&self, namespace: Option<&str>) -> Result<Vec<Left>, RequestError> {
        let client = self.cluster.client();
        let api: Api<ConfigMap> = match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let mut found = BTreeMap::new();
        for (labels, name_label, reason) in ELSEWHERE {
            let mut params = ListParams::default().labels(labels).limit(PAGE);
            loop {
                let attempt = self.attempt(namespace, "list", "configmaps", "");
                let page = match self.cluster.ask(attempt, api.list_metadata(&params)).await {
                    Err(error) if error.is_forbidden() => return Ok(Vec::new()),
                    page => page?,
                };
                for object in &page.items {
                    let metadata = &object.metadata;
                    let name = metadata.labels.as_ref().and_then(|all| all.get(name_label));
                    if let Some(name) = name {
                        let place = Place::new(metadata.namespace.clone().unwrap_or_default(), name.clone());
                        found.insert(place, reason);
                    }
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(found.iter().map(|(place, reason)| Left::new(place, reason)).collect())
    }

    /// All objects of a kind, in one namespace or in all. It is an error if the cluster does not serve the kind.
    pub async fn objects(&self, group: &str, kind: &str, namespace: Option<&str>) -> Result<Vec<Value>, Failure> {
        let version = self.apis.preferred(group, kind);
        let known = version.and_then(|version| self.apis.kind(version, kind));
        let Some(known) = known else {
            let report = format!("the cluster does not serve the kind {kind} of {group}");
            return Err(Failure::new(Class::Invalid, report));
        };
        let resource: &ApiResource = &known.resource;
        let client = self.cluster.client();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        let (mut objects, mut params) = (Vec::new(), ListParams::default().limit(WHOLE_PAGE));
        loop {
            let attempt = self.attempt(namespace, "list", &resource.plural, "");
            let page = self.cluster.ask(attempt, api.list(&params)).await?;
            for object in page.items {
                objects.push(serde_json::to_value(object).unwrap_or_default());
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// The fields of a record.
    pub async fn record(&self, namespace: &str, secret: &str) -> Result<Content, RequestError> {
        let api: Api<Secret> = Api::namespaced(self.cluster.client(), namespace);
        let attempt = self.attempt(Some(namespace), "get", "secrets", secret);
        let found = self.cluster.ask(attempt.clone(), api.get(secret)).await?;
        let bytes = found.data.as_ref().and_then(|data| data.get(CONTENT));
        let decoded = contents::decode(bytes.map_or(&[], |bytes| bytes.0.as_slice()));
        decoded.map_err(|error| RequestError::Damaged {
            attempt,
            problem: error.to_string(),
        })
    }

    /// The text of a ConfigMap with values; none if it is absent.
    pub async fn values(&self, source: &ValuesSource) -> Result<Option<String>, RequestError> {
        let (namespace, name) = (source.place.namespace.as_str(), source.place.name.as_str());
        let api: Api<ConfigMap> = Api::namespaced(self.cluster.client(), namespace);
        let attempt = self.attempt(Some(namespace), "get", "configmaps", name);
        let found = self.cluster.ask(attempt, api.get_opt(name)).await?;
        Ok(found.and_then(|found| found.data?.remove(&source.key)))
    }
}
