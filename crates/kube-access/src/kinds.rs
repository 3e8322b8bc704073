//! Finds the API resource of a kind by the kind's name.
//!
//! Must never guess: a kind that the API server does not list is unknown, and stays so until a new list has it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addon_core::failure::{Class, Failure};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};
use kube::core::{ApiResource, GroupVersionKind};
use thiserror::Error;

use crate::Cluster;
use crate::apis;
use crate::apis::Kind;
use crate::error::RequestError;
use crate::under_way::UnderWay;

/// All kinds of one cluster. Clones share the found ones.
#[derive(Debug, Clone)]
pub struct Kinds {
    cluster: Cluster,
    known: Arc<Mutex<Known>>,
    lists: Arc<UnderWay<(), Listed>>,
}

/// The last list. The lock on it is never held across a request: a kind that is known is found while another kind is
/// asked for.
#[derive(Debug, Default)]
struct Known {
    table: Option<Arc<Table>>,
    /// The number of lists that were begun, which is the number of the last list.
    begun: u64,
    /// Lists up to this number are too old to be kept.
    forgotten: u64,
}

/// The number of a list of kinds, and the API server's answer.
type Listed = (u64, Result<Arc<Table>, Failure>);

/// Why a kind is not known.
#[derive(Debug, Error)]
pub enum KindError {
    /// The API server serves no kind of that name. The message is the original's.
    #[error(
        "Cannot get GroupVersionResource info for apiVersion '{api_version}' kind '{kind}' from api-server. \
         Possibly CRD is not created before informers are started."
    )]
    Unknown {
        /// The requested group and version; empty for any.
        api_version: String,
        /// The requested name.
        kind: String,
    },
    /// The aggregated API server of that group version does not answer the API server.
    #[error(
        "cannot look up the kind '{kind}': the extension API server of {api_version} does not answer the API server"
    )]
    Stale {
        /// The requested group and version.
        api_version: String,
        /// The requested name.
        kind: String,
    },
    /// The API server did not list the kinds of a group.
    #[error("cannot look up the kind '{kind}': {failure}")]
    Ask {
        /// The requested name.
        kind: String,
        /// The failure of the request, which several look-ups may share.
        failure: Failure,
    },
}

impl From<KindError> for Failure {
    fn from(error: KindError) -> Self {
        match error {
            KindError::Unknown { .. } => Self::new(Class::Refused, error.to_string())
                .hint("create the CRD, or correct the binding's apiVersion and kind"),
            KindError::Stale { .. } => Self::new(Class::Unavailable, error.to_string()),
            KindError::Ask { kind, failure } => failure.within(format!("cannot look up the kind '{kind}'")),
        }
    }
}

impl Kinds {
    /// The first look-up makes the first request.
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            known: Arc::default(),
            lists: Arc::default(),
        }
    }

    /// Finds a kind by its name, plural or short name in any case. Without an `api_version`, the preferred version of
    /// each group is searched. A kind that is not found is looked up once more in a new list of the API server, which
    /// is requested after this look-up began.
    pub async fn resolve(&self, api_version: Option<&str>, kind: &str) -> Result<Kind, KindError> {
        let began = self.known().begun;
        loop {
            let known = self.known().table.clone();
            if let Some(found) = known.as_ref().and_then(|table| table.find(api_version, kind)) {
                return Ok(found.clone());
            }
            let (number, answer) = self.lists.join((), || self.clone().list()).await;
            let table = answer.map_err(|failure| KindError::Ask {
                kind: kind.to_owned(),
                failure,
            })?;
            match table.find(api_version, kind) {
                Some(found) => return Ok(found.clone()),
                // Another look-up had requested this list before; the kind may be newer.
                None if number <= began => {}
                None => return Err(table.lacks(api_version, kind)),
            }
        }
    }

    /// Looks up the API resource of a kind again, in a new list.
    pub async fn again(&self, resource: &ApiResource) -> Result<Kind, KindError> {
        self.forget();
        self.resolve(Some(&resource.api_version), &resource.kind).await
    }

    /// Drops the found kinds, because the API server's list has changed.
    pub fn forget(&self) {
        let mut known = self.known();
        known.table = None;
        known.forgotten = known.begun;
        self.lists.forget(&());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that is done under the lock leaves it half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a new list, and keeps it if the API server answers.
    fn list(self) -> BoxFuture<'static, Listed> {
        let number = {
            let mut known = self.known();
            known.begun += 1;
            known.begun
        };
        async move {
            let answer = self.ask().await.map(Arc::new).map_err(Failure::from);
            if let Ok(table) = &answer {
                self.known().keep(number, table);
            }
            (number, answer)
        }
        .boxed()
    }

    async fn ask(&self) -> Result<Table, RequestError> {
        let mut attempt = self.cluster.attempt("get", "/api and /apis", "");
        attempt.namespace = None;
        let client = &self.cluster.client;
        let answers = async {
            tokio::try_join!(
                client.list_core_api_versions_aggregated(),
                client.list_api_groups_aggregated()
            )
        };
        let (core, groups) = self.cluster.ask(attempt, answers).await?;
        Ok(Table::of(core.items.iter().chain(&groups.items)))
    }
}

impl Known {
    /// Keeps a list, unless it is too old. A list that may lack kinds takes no known kind away.
    fn keep(&mut self, number: u64, table: &Arc<Table>) {
        let is_better = table.stale.is_empty() || self.table.is_none();
        if number > self.forgotten && is_better {
            self.table = Some(Arc::clone(table));
        }
    }
}

/// The kinds that an API server serves, in its own order of preference.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Row>,
    /// Group versions whose lists may be incomplete.
    stale: BTreeSet<String>,
}

#[derive(Debug)]
struct Row {
    names: Vec<String>,
    kind: Kind,
    /// Whether the version is the one that the group prefers.
    preferred: bool,
}

impl Table {
    fn of<'a>(groups: impl Iterator<Item = &'a APIGroupDiscovery>) -> Self {
        let (mut rows, mut stale) = (Vec::new(), BTreeSet::new());
        for group in groups {
            let name = group.metadata.as_ref().and_then(|meta| meta.name.as_deref());
            for (rank, version) in group.versions.iter().enumerate() {
                let Some(number) = version.version.as_deref() else {
                    continue;
                };
                if apis::is_stale(version) {
                    stale.insert(format!("{}/{number}", name.unwrap_or_default()));
                }
                let served = version.resources.iter();
                rows.extend(served.filter_map(|resource| {
                    let (names, kind) = read(name.unwrap_or_default(), number, resource)?;
                    let preferred = rank == 0;
                    Some(Row { names, kind, preferred })
                }));
            }
        }
        Self { rows, stale }
    }

    /// The error for a kind that is not in this list.
    fn lacks(&self, api_version: Option<&str>, kind: &str) -> KindError {
        let (api_version, kind) = (api_version.unwrap_or_default().to_owned(), kind.to_owned());
        if self.stale.contains(&api_version) {
            KindError::Stale { api_version, kind }
        } else {
            KindError::Unknown { api_version, kind }
        }
    }

    fn find(&self, api_version: Option<&str>, kind: &str) -> Option<&Kind> {
        let wanted = kind.to_lowercase();
        let api_version = api_version.filter(|version| !version.is_empty());
        let row = self.rows.iter().find(|row| {
            let version_fits = match api_version {
                Some(version) => row.kind.resource.api_version == version,
                None => row.preferred,
            };
            version_fits && row.names.contains(&wanted)
        });
        row.map(|row| &row.kind)
    }
}

/// The names of a resource in small letters, and its kind; none for a resource without a kind.
fn read(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<(Vec<String>, Kind)> {
    let plural = resource.resource.as_deref()?;
    let served = resource.response_kind.as_ref()?;
    let kind = served.kind.as_deref().filter(|kind| !kind.is_empty())?;
    if resource.verbs.is_empty() {
        return None;
    }
    let mut names = vec![kind.to_lowercase(), plural.to_lowercase()];
    names.extend(resource.short_names.iter().map(|name| name.to_lowercase()));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let kind = Kind {
        resource: ApiResource::from_gvk_with_plural(&gvk, plural),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
    };
    Some((names, kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> Table {
        let resource = |plural: &str, kind: &str, short: &[&str], verbs: &[&str]| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced",
                "shortNames": short, "verbs": verbs})
        };
        let groups: Vec<APIGroupDiscovery> = serde_json::from_value(json!([
            {"metadata": {}, "versions": [{"version": "v1", "resources": [
                resource("pods", "Pod", &["po"], &["get", "list"]),
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster", "verbs": ["list"]},
                resource("events", "Event", &["ev"], &["list"])]}]},
            {"metadata": {"name": "autoscaling"}, "versions": [
                {"version": "v2", "resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", &["hpa"], &["list"])]},
                {"version": "v1", "resources": [
                    resource("horizontalpodautoscalers", "HorizontalPodAutoscaler", &["hpa"], &["list"]),
                    resource("olds", "Old", &[], &["list"])]}]},
            {"metadata": {"name": "events.k8s.io"}, "versions": [{"version": "v1", "resources": [
                resource("events", "Event", &["ev"], &["list"]), resource("mutes", "Mute", &[], &[])]}]},
        ]))
        .unwrap();
        Table::of(groups.iter())
    }

    fn found(api_version: Option<&str>, kind: &str) -> Option<String> {
        let table = table();
        let found = &table.find(api_version, kind)?.resource;
        Some(format!("{}/{}", found.api_version, found.plural))
    }

    #[test]
    fn a_kind_is_found_by_each_of_its_names_in_any_case() {
        for name in ["Pod", "pod", "PODS", "po"] {
            assert_eq!(found(None, name).as_deref(), Some("v1/pods"), "{name}");
            assert_eq!(found(Some("v1"), name).as_deref(), Some("v1/pods"), "{name}");
        }
        assert!(!table().find(None, "Node").unwrap().namespaced);
        assert!(table().find(None, "po").unwrap().namespaced);
    }

    #[test]
    fn without_a_version_the_preferred_one_of_the_first_group_is_meant() {
        assert_eq!(found(None, "ev").as_deref(), Some("v1/events"));
        assert_eq!(
            found(Some("events.k8s.io/v1"), "ev").as_deref(),
            Some("events.k8s.io/v1/events")
        );
        assert_eq!(
            found(Some(""), "hpa").as_deref(),
            Some("autoscaling/v2/horizontalpodautoscalers")
        );
        assert_eq!(
            found(Some("autoscaling/v1"), "hpa").as_deref(),
            Some("autoscaling/v1/horizontalpodautoscalers")
        );
        assert_eq!(
            found(None, "Old"),
            None,
            "a version that is not preferred must be named"
        );
    }

    #[test]
    fn what_cannot_be_asked_for_is_not_there() {
        assert_eq!(found(None, "Mute"), None);
        assert_eq!(found(Some("v2"), "Pod"), None);
    }

    #[test]
    fn the_text_for_an_unknown_kind_is_the_known_one() {
        let failure = Failure::from(KindError::Unknown {
            api_version: "example.com/v1".to_owned(),
            kind: "Gadget".to_owned(),
        });
        assert_eq!(
            failure.report,
            "Cannot get GroupVersionResource info for apiVersion 'example.com/v1' kind 'Gadget' from api-server. \
             Possibly CRD is not created before informers are started."
        );
    }
}
