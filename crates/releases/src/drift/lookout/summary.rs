//! The summary that is kept of an object whose kind has a status: its health, who wrote to it, and the Services that it calls.
//!
//! Must never keep the object itself: thousands of objects are watched.

use std::sync::Arc;

use addon_core::digest::Digest;
use addon_core::object::ObjectView;
use health_core::{Finding, ServiceName, State, webhook_services};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::alteration::fingerprint;
use super::kind_watches::Look;
use super::releases::KindName;
use super::rulebook::KindRules;
use watches::lens::Lens;

/// Kinds of Kubernetes that have no status. Of these only metadata is watched.
const WITHOUT_STATUS: [(&str, &str); 20] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "LimitRange"),
    ("", "PodTemplate"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
];

/// The largest number of Services of a webhook configuration whose endpoints are watched.
const MOST_SERVICES: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    #[serde(rename = "w", default, skip_serializing_if = "Value::is_null")]
    writers: Value,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    finding: Option<Finding>,
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    services: Vec<ServiceName>,
}

/// Whether objects of a kind have a health of their own.
pub(super) fn is_judged(kind: &KindName) -> bool {
    let group = kind.api_version.split_once('/').map_or("", |(group, _)| group);
    !WITHOUT_STATUS.contains(&(group, &kind.kind))
}

/// The lens that shows the summary of each object.
pub(super) fn lens(look: Look, rules: KindRules) -> Lens {
    let name = match look {
        Look::Presence => "the health of an object",
        Look::Writes => "the health of an object, and who wrote to it",
    };
    // Lenses with the same name share their results.
    let name = if rules.is_empty() {
        name.to_owned()
    } else {
        format!("{name}, by {}", rules.digest())
    };
    Lens::through(
        &name,
        Arc::new(move |object| Ok(summarize(object, look, &rules, Timestamp::now()))),
    )
}

fn summarize(object: &Value, look: Look, rules: &KindRules, now: Timestamp) -> Value {
    let finding = rules.judge(object, now);
    let summary = Summary {
        writers: match look {
            Look::Presence => Value::Null,
            Look::Writes => fingerprint(object),
        },
        // Nearly all objects are in this state, so it takes no room.
        finding: Some(finding).filter(|finding| finding.state != State::Current),
        services: webhook_services(object).into_iter().take(MOST_SERVICES).collect(),
    };
    json!(summary)
}

/// The health in a summary. A view without one belongs to a kind without a status.
pub(super) fn finding(view: &ObjectView) -> Finding {
    let current = || Finding {
        state: State::Current,
        sentence: String::new(),
    };
    read(view).and_then(|summary| summary.finding).unwrap_or_else(current)
}

/// The Services that an object calls, if it is a webhook configuration.
pub(super) fn services(view: &ObjectView) -> Vec<ServiceName> {
    read(view).map(|summary| summary.services).unwrap_or_default()
}

/// A digest of the writers of an object.
pub(super) fn writers(view: &ObjectView) -> Option<Digest> {
    Some(Digest::of(&read(view)?.writers))
}

fn read(view: &ObjectView) -> Option<Summary> {
    serde_json::from_value(view.filter_result.as_ref()?.to_value()).ok()
}
