//! Findings that need a fact from outside the object.
//!
//! The caller looks the fact up. Must never be gentler than the object itself about a deletion or a failure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::judge;
use crate::field::{items, text, value};
use crate::finding::{Finding, State};
use crate::text::{NAME, harmless};

/// The scheduler's note on a claim: a pod uses it, and this is the pod's node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The name of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its own name.
    pub name: String,
}

/// Judges a claim for a volume. If its class binds volumes only for a consumer (`WaitForFirstConsumer`), a claim that
/// no pod uses is current.
pub fn judge_claim(claim: &Value, waits_for_first_consumer: bool, now: Timestamp) -> Finding {
    let finding = judge(claim, now);
    let waits = finding.state == State::InProgress && text(claim, "status.phase") == "Pending";
    if !waits || !waits_for_first_consumer {
        return finding;
    }
    let annotations = value(claim, "metadata.annotations");
    if annotations.is_some_and(|annotations| annotations.get(SELECTED_NODE).is_some()) {
        return Finding::in_progress("the volume for the claim is not made yet");
    }
    Finding::new(State::Current, "the claim waits for its first consumer")
}

/// Judges a webhook configuration by the Services that have a ready endpoint.
pub fn judge_webhooks(configuration: &Value, ready: &BTreeSet<ServiceName>, now: Timestamp) -> Finding {
    let finding = judge(configuration, now);
    if finding.state != State::Current {
        return finding;
    }
    let missing: BTreeSet<ServiceName> = items(configuration, "webhooks")
        .iter()
        .filter_map(|webhook| value(webhook, "clientConfig.service"))
        .map(|service| ServiceName {
            namespace: text(service, "namespace").to_owned(),
            name: text(service, "name").to_owned(),
        })
        .filter(|service| !ready.contains(service))
        .collect();
    let names: Vec<String> = missing
        .iter()
        .take(4)
        .map(|service| {
            format!(
                "{}/{}",
                harmless(&service.namespace, NAME),
                harmless(&service.name, NAME)
            )
        })
        .collect();
    match (names.as_slice(), missing.len()) {
        ([], _) => finding,
        ([name], _) => Finding::in_progress(&format!("the Service {name} has no ready endpoint")),
        (names, count) if names.len() == count => {
            Finding::in_progress(&format!("the Services {} have no ready endpoint", names.join(", ")))
        }
        (names, count) => {
            let others = count - names.len();
            Finding::in_progress(&format!(
                "the Services {} and {others} more have no ready endpoint",
                names.join(", ")
            ))
        }
    }
}
