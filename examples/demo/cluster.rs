//! Reads the objects in the operator's namespace from the API server, as its admin. Never asks the operator.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::{Value, json};
use testbed::audit::{Mark, Records};
use testbed::namespace::Namespace;
use testbed::plane::{ControlPlane, User};
use testbed::reader::Only;

/// The name of the operator's ConfigMap.
pub(crate) const CONFIG: &str = "addon-operator";

/// The keys of the ConfigMap that switch the shipped modules on.
pub(crate) const SHIPPED: [&str; 3] = [
    "sysctlTunerEnabled",
    "registrySecretCopierEnabled",
    "sysctlAuditEnabled",
];

/// The names of the Secrets in which the operator keeps its state from one process to the next. The operator creates
/// and deletes them as needed.
pub(crate) const MEMORY: [&str; 2] = ["addon-operator-state", "addon-operator-intents"];

/// The newest revision of a helm release, read from the labels of its Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) revision: u32,
    pub(crate) status: String,
    /// Whether the Secret carries the label that marks the release of a module. The original operator uses the same
    /// label.
    pub(crate) ours: bool,
}

impl Release {
    pub(crate) fn is_deployed(&self) -> bool {
        self.status == "deployed"
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.status.starts_with("pending-")
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = if self.ours { "" } else { ", not ours" };
        write!(out, "revision {} {}{whose}", self.revision, self.status)
    }
}

/// The releases of the namespace by name.
pub(crate) type Releases = BTreeMap<String, Release>;

/// Reads the labels of all release Secrets.
pub(crate) fn releases(namespace: &Namespace<'_>) -> anyhow::Result<Releases> {
    let secrets = namespace.metadata("secrets", Only::Fields("type=helm.sh/release.v1"))?;
    let mut releases = Releases::new();
    for secret in &secrets {
        let labels = &secret["metadata"]["labels"];
        let label = |label: &str| labels[label].as_str().unwrap_or_default();
        let (name, revision, status) = (label("name"), label("version"), label("status"));
        let revision = revision
            .parse()
            .with_context(|| format!("the revision of a release is no number: {labels}"))?;
        let release = Release {
            revision,
            status: status.to_owned(),
            ours: !label("moduleChecksum").is_empty(),
        };
        match releases.get(name) {
            Some(known) if known.revision >= revision => {}
            _ => drop(releases.insert(name.to_owned(), release)),
        }
    }
    Ok(releases)
}

/// The releases on one line of text.
pub(crate) fn shown(releases: &Releases) -> String {
    if releases.is_empty() {
        return "no release".to_owned();
    }
    let each = releases.iter().map(|(name, release)| format!("{name} {release}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Changes keys of the operator's ConfigMap, as a person would; `null` removes one.
pub(crate) fn edit(namespace: &Namespace<'_>, data: &Value) -> anyhow::Result<()> {
    let patch = json!({ "data": data }).to_string();
    namespace.kubectl(["patch", "configmap", CONFIG, "--type=merge", "--patch", &patch])?;
    Ok(())
}

/// The writes of the operator, its hooks and its helm since the mark. Leases, events and review requests (a POST that
/// changes nothing) are left out.
pub(crate) fn writes(plane: &ControlPlane, since: Mark) -> anyhow::Result<Records> {
    const UNCOUNTED: [&str; 4] = [
        "leases",
        "events",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
    ];
    let records = plane.audit().since(since)?.of(User::Operator).mutating();
    Ok(records.that(|record| !UNCOUNTED.contains(&record.resource.as_str())))
}
