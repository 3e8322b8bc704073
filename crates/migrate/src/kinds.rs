//! The kinds of a cluster: which have namespaces.

use std::collections::BTreeMap;

use kube_access::apis::Apis;
use serde_json::Value;

/// The served kinds by API version and name, each with whether its objects are namespaced.
#[derive(Debug, Clone, Default)]
pub struct Kinds(BTreeMap<(String, String), bool>);

impl Kinds {
    /// All kinds that the API server serves.
    pub fn of(apis: &Apis) -> Self {
        let each = apis.names.iter().filter_map(|name| name.rsplit_once('/'));
        let each = each.filter_map(|(version, kind)| Some(((version, kind), apis.kind(version, kind)?.namespaced)));
        Self(
            each.map(|((version, kind), namespaced)| ((version.to_owned(), kind.to_owned()), namespaced))
                .collect(),
        )
    }

    /// Whether the object's kind has namespaces; an unknown kind has none.
    pub fn has_namespace(&self, object: &Value) -> bool {
        let field = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        self.0
            .get(&(field("apiVersion"), field("kind")))
            .copied()
            .unwrap_or_default()
    }

    /// Whether no kind of this name has namespaces, although some API version has the kind.
    pub fn is_cluster_wide(&self, kind: &str) -> bool {
        let mut known = self.0.iter().filter(|((_, name), _)| name == kind).peekable();
        known.peek().is_some() && known.all(|(_, namespaced)| !namespaced)
    }

    #[cfg(test)]
    pub(crate) fn some() -> Self {
        let rows = [
            ("v1", "ConfigMap", true),
            ("v1", "Service", true),
            ("apps/v1", "Deployment", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
        ];
        let row = |(version, kind, namespaced): (&str, &str, bool)| ((version.to_owned(), kind.to_owned()), namespaced);
        Self(rows.map(row).into())
    }
}
