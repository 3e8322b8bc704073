//! The API server's version and served APIs, on which the rendering of a chart may depend. They must never be older
//! than a few seconds, and never be guessed when the server does not answer.

mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addon_core::digest::{Builder, Digest};
use addon_core::failure::Failure;
use futures::FutureExt as _;
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};
use kube::core::{ApiResource, GroupVersionKind, Version};

use self::memory::{Listed, Memory};
use crate::Cluster;
use crate::error::{Attempt, RequestError};
use crate::under_way::UnderWay;

/// How long an answer is reused: long enough for one request per converge, short enough to see a new kind soon.
const FRESH: Duration = Duration::from_secs(5);

/// The server's version, and all kinds whose objects can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apis {
    /// The server's version without a leading `v`, for example `1.37.2`.
    pub version: String,
    /// All served APIs as `group/version` and `group/version/Kind`, sorted.
    pub names: BTreeSet<String>,
    /// A digest that changes with the version and the names.
    pub digest: Digest,
    kinds: BTreeMap<(String, String), Kind>,
    /// Group versions whose last known list is used, because the present answer is incomplete.
    pub uncertain: Vec<String>,
    /// Group versions that have been missing from answers for so long that their kinds count as unknown. A rendering
    /// that depends on them would be a guess.
    pub doubtful: Vec<String>,
    /// Group versions that were served a moment ago, and whose own paths answer 404 now.
    pub vanishing: Vec<String>,
}

/// The API resource of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether objects of the kind are namespaced.
    pub namespaced: bool,
}

impl Apis {
    fn of(version: String, memory: &Memory, now: Instant) -> Self {
        let mut names = BTreeSet::new();
        let mut kinds = BTreeMap::new();
        for (api_version, served) in memory.served() {
            names.insert(api_version.clone());
            for (kind, known) in served {
                names.insert(format!("{api_version}/{kind}"));
                kinds.insert((api_version.clone(), kind.clone()), known.clone());
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
            uncertain: memory.uncertain(),
            doubtful: memory.doubtful(now),
            vanishing: memory.vanishing(),
        }
    }

    /// The API resource of this kind; `None` if the server does not serve it.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }
}

impl Apis {
    /// Whether the server certainly does not serve this kind. A kind of a group version whose list may be incomplete
    /// counts as served.
    pub fn lacks(&self, api_version: &str, kind: &str) -> bool {
        let is_open = |versions: &[String]| versions.iter().any(|version| version == api_version);
        self.kind(api_version, kind).is_none() && !is_open(&self.uncertain) && !is_open(&self.doubtful)
    }

    /// The served API versions.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        let versions: BTreeSet<_> = self.kinds.keys().map(|(version, _)| version.as_str()).collect();
        versions.into_iter()
    }

    /// Each kind once, in the version that the server prefers.
    pub fn each_kind(&self) -> impl Iterator<Item = (&str, &Kind)> {
        let is_preferred = |(api_version, kind): &(&String, &Kind)| {
            self.preferred(&kind.resource.group, &kind.resource.kind) == Some(api_version.as_str())
        };
        let kinds = self.kinds.iter().map(|((api_version, _), kind)| (api_version, kind));
        kinds
            .filter(is_preferred)
            .map(|(api_version, kind)| (api_version.as_str(), kind))
    }

    /// The API version of a group in which the server prefers to serve this kind; `None` if it does not serve it.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&str> {
        let served = self
            .kinds
            .iter()
            .filter(|((_, served), known)| served == kind && known.resource.group == group);
        let versions = served.map(|((api_version, _), _)| api_version.as_str());
        versions.max_by_key(|version| Version::parse(version.rsplit('/').next().unwrap_or_default()).priority())
    }
}

/// The kinds that an answer lists, by group version.
fn listed(groups: &[APIGroupDiscovery]) -> BTreeMap<String, Listed> {
    let mut all = BTreeMap::new();
    for group in groups {
        let name = group
            .metadata
            .as_ref()
            .and_then(|meta| meta.name.as_deref())
            .unwrap_or_default();
        for version in &group.versions {
            let Some(number) = version.version.as_deref() else {
                continue;
            };
            let api_version = if name.is_empty() {
                number.to_owned()
            } else {
                format!("{name}/{number}")
            };
            all.insert(api_version, listed_of(name, number, version));
        }
    }
    all
}

/// Whether the aggregated API server did not answer the API server, which then lists the last known kinds, or none.
pub(super) fn is_stale(version: &APIVersionDiscovery) -> bool {
    version.freshness.as_deref() == Some("Stale")
}

fn listed_of(group: &str, number: &str, version: &APIVersionDiscovery) -> Listed {
    let mut kinds = BTreeMap::new();
    for resource in &version.resources {
        let (Some(plural), Some(kind)) = (resource.resource.as_deref(), resource.response_kind.as_ref()) else {
            continue;
        };
        let Some(kind) = kind.kind.as_deref().filter(|kind| !kind.is_empty()) else {
            continue;
        };
        let gvk = GroupVersionKind::gvk(group, number, kind);
        let known = Kind {
            resource: ApiResource::from_gvk_with_plural(&gvk, plural),
            namespaced: resource.scope.as_deref() == Some("Namespaced"),
        };
        kinds.entry(kind.to_owned()).or_insert(known);
    }
    Listed {
        kinds,
        stale: is_stale(version),
    }
}

/// The APIs that were seen, and the request for them. No lock is held across the request.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    seen: Mutex<Seen>,
    requests: UnderWay<(), Result<Arc<Apis>, Failure>>,
}

/// The last list of served APIs, and the time of its reading.
#[derive(Debug, Default)]
struct Seen {
    last: Option<(Arc<Apis>, Instant)>,
    memory: Memory,
    /// The number of times that the last list was forgotten.
    forgotten: u64,
}

impl Discovery {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Nothing that is done under the lock leaves it half changed.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next call ask the server.
    fn forget(&self) {
        let mut seen = self.seen();
        seen.last = None;
        seen.forgotten += 1;
        self.requests.forget(&());
    }
}

impl Seen {
    fn fresh(&self) -> Option<Arc<Apis>> {
        let (apis, seen) = self.last.as_ref()?;
        (seen.elapsed() < FRESH).then(|| Arc::clone(apis))
    }
}

impl Cluster {
    /// The API server's version and served APIs, at most a few seconds old.
    pub async fn apis(&self) -> Result<Arc<Apis>, Failure> {
        if let Some(fresh) = self.apis.seen().fresh() {
            return Ok(fresh);
        }
        let request = || {
            let cluster = self.clone();
            async move { Ok(cluster.ask_for_apis().await?) }.boxed()
        };
        self.apis.requests.join((), request).await
    }

    /// The served APIs as they were last seen, however long ago; `None` if they were not seen yet.
    pub fn apis_seen(&self) -> Option<Arc<Apis>> {
        let seen = self.apis.seen();
        seen.last.as_ref().map(|(apis, _)| Arc::clone(apis))
    }

    /// Forgets the served APIs, because they have just changed.
    pub fn forget_apis(&self) {
        self.apis.forget();
    }

    async fn ask_for_apis(&self) -> Result<Arc<Apis>, RequestError> {
        let forgotten = self.apis.seen().forgotten;
        let (version, answer) = self.discover().await?;
        let left_out = self.apis.seen().memory.left_out(&answer);
        let not_found = self.not_found(left_out).await;
        let (mut seen, now) = (self.apis.seen(), Instant::now());
        seen.memory.take(answer, &not_found, now);
        let apis = Arc::new(Apis::of(version, &seen.memory, now));
        if seen.forgotten == forgotten {
            seen.last = Some((Arc::clone(&apis), now));
        }
        Ok(apis)
    }

    async fn discover(&self) -> Result<(String, BTreeMap<String, Listed>), RequestError> {
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
        Ok((version.git_version.trim_start_matches('v').to_owned(), listed(&all)))
    }

    /// The given group versions whose own paths answer 404. A version without an answer is left out, as it may exist.
    pub async fn not_found(&self, versions: Vec<String>) -> BTreeSet<String> {
        let mut not_found = BTreeSet::new();
        for version in versions {
            let attempt = Attempt {
                namespace: None,
                ..self.attempt("get", "/apis", &version)
            };
            let asked = async {
                if version.contains('/') {
                    self.client.list_api_group_resources(&version).await
                } else {
                    self.client.list_core_api_resources(&version).await
                }
            };
            let asked = self.ask(attempt, asked).await;
            if asked.is_err_and(|error| error.is_not_found()) {
                not_found.insert(version);
            }
        }
        not_found
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

    fn apis(version: &str, groups: &[APIGroupDiscovery]) -> Apis {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.take(listed(groups), &BTreeSet::new(), now);
        Apis::of(version.to_owned(), &memory, now)
    }

    #[test]
    fn names_are_those_that_charts_ask_for() {
        let apis = apis("1.37.2", &groups());
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
        let all = apis("1.37.2", &groups());
        assert_ne!(all.digest, apis("1.37.3", &groups()).digest);
        assert_ne!(all.digest, apis("1.37.2", &groups()[..1]).digest);
        assert_eq!(all.digest, apis("1.37.2", &groups()).digest);
    }
}
