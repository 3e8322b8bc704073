//! What the API server is and serves: the part of the cluster that a chart's rendering may depend on.
//! Must never be older than a few seconds, and never be guessed when the server does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_core::digest::{Builder, Digest};
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};
use kube::core::{ApiResource, GroupVersionKind};

use super::Cluster;
use super::error::RequestError;

/// Long enough for one converge to ask once, short enough that nobody waits for a new kind.
const FRESH: Duration = Duration::from_secs(5);

/// The server's version and all kinds that can be read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apis {
    /// Such as `1.36.3`, without the leading letter.
    pub version: String,
    /// `group/version` and `group/version/Kind` of everything served, sorted.
    pub names: BTreeSet<String>,
    /// Changes with the version and with the names.
    pub digest: Digest,
    kinds: BTreeMap<(String, String), Kind>,
}

/// How objects of a kind are addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Its objects live in namespaces.
    pub namespaced: bool,
}

impl Apis {
    fn new(version: String, groups: &[APIGroupDiscovery]) -> Self {
        let mut names = BTreeSet::new();
        let mut kinds = BTreeMap::new();
        for group in groups {
            let name = group
                .metadata
                .as_ref()
                .and_then(|meta| meta.name.as_deref())
                .unwrap_or_default();
            for version in &group.versions {
                collect(name, version, &mut names, &mut kinds);
            }
        }
        let digest = names
            .iter()
            .fold(Digest::builder().part(&version), Builder::part)
            .finish();
        Self {
            version,
            names,
            digest,
            kinds,
        }
    }

    /// How to address objects of this kind, `None` if the server does not serve it.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }
}

fn collect(
    group: &str,
    version: &APIVersionDiscovery,
    names: &mut BTreeSet<String>,
    kinds: &mut BTreeMap<(String, String), Kind>,
) {
    let Some(number) = version.version.as_deref() else {
        return;
    };
    let api_version = if group.is_empty() {
        number.to_owned()
    } else {
        format!("{group}/{number}")
    };
    for resource in &version.resources {
        let (Some(plural), Some(kind)) = (resource.resource.as_deref(), resource.response_kind.as_ref()) else {
            continue;
        };
        let Some(kind) = kind.kind.as_deref().filter(|kind| !kind.is_empty()) else {
            continue;
        };
        names.insert(format!("{api_version}/{kind}"));
        let gvk = GroupVersionKind::gvk(group, number, kind);
        let known = Kind {
            resource: ApiResource::from_gvk_with_plural(&gvk, plural),
            namespaced: resource.scope.as_deref() == Some("Namespaced"),
        };
        kinds.entry((api_version.clone(), kind.to_owned())).or_insert(known);
    }
    names.insert(api_version);
}

/// What was seen, and when.
#[derive(Debug)]
pub(super) struct Known {
    apis: Arc<Apis>,
    seen: Instant,
}

impl Known {
    pub(super) fn now(apis: &Arc<Apis>) -> Self {
        Self {
            apis: Arc::clone(apis),
            seen: Instant::now(),
        }
    }

    pub(super) fn fresh(&self) -> Option<Arc<Apis>> {
        (self.seen.elapsed() < FRESH).then(|| Arc::clone(&self.apis))
    }
}

impl Cluster {
    pub(super) async fn discover(&self) -> Result<Apis, RequestError> {
        let mut attempt = self.attempt("get", "/version, /api and /apis", "");
        attempt.namespace = None;
        let client = &self.client;
        let (version, core, groups) = self
            .ask(attempt, async {
                tokio::try_join!(
                    client.apiserver_version(),
                    client.list_core_api_versions_aggregated(),
                    client.list_api_groups_aggregated()
                )
            })
            .await?;
        let mut all = core.items;
        all.extend(groups.items);
        Ok(Apis::new(version.git_version.trim_start_matches('v').to_owned(), &all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn groups() -> Vec<APIGroupDiscovery> {
        serde_json::from_value(json!([
            {"metadata": {}, "versions": [{"version": "v1", "resources": [
                {"resource": "configmaps", "responseKind": {"kind": "ConfigMap"}, "scope": "Namespaced"},
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster"}]}]},
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
                {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced"}]}]},
        ]))
        .unwrap()
    }

    #[test]
    fn names_are_those_that_charts_ask_for() {
        let apis = Apis::new("1.36.3".to_owned(), &groups());
        let names: Vec<_> = apis.names.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            ["apps/v1", "apps/v1/Deployment", "v1", "v1/ConfigMap", "v1/Node"]
        );
        assert!(!apis.kind("v1", "Node").unwrap().namespaced);
        assert_eq!(
            apis.kind("apps/v1", "Deployment").unwrap().resource.plural,
            "deployments"
        );
        assert!(apis.kind("apps/v2", "Deployment").is_none());
    }

    #[test]
    fn the_digest_follows_the_version_and_the_list() {
        let all = Apis::new("1.36.3".to_owned(), &groups());
        assert_ne!(all.digest, Apis::new("1.36.4".to_owned(), &groups()).digest);
        assert_ne!(all.digest, Apis::new("1.36.3".to_owned(), &groups()[..1]).digest);
        assert_eq!(all.digest, Apis::new("1.36.3".to_owned(), &groups()).digest);
    }
}
