//! Facts from outside an object that decide about its health: the Events of a claim, and the endpoints of a webhook.
//!
//! The caller looks the facts up. Must never let a claim count as well that a pod waits for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field::{items, text, value};
use crate::text::{NAME, SENTENCE, harmless};

/// The scheduler's note on a claim: a pod uses it, and this is the pod's node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The reason of the Event about a claim whose class makes volumes only for a pod.
const WAITS: &str = "WaitForFirstConsumer";
/// The largest number of Services in a sentence.
const MOST: usize = 4;

/// The name of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its own name.
    pub name: String,
}

impl ServiceName {
    fn told(&self) -> String {
        format!("{}/{}", harmless(&self.namespace, NAME), harmless(&self.name, NAME))
    }
}

/// Whether nothing has to be done for a claim before a pod uses it. The events are those about the claim.
pub fn waits_for_consumer(claim: &Value, events: &[Value]) -> bool {
    let mut reasons = events.iter().map(|event| text(event, "reason"));
    text(claim, "status.phase") == "Pending" && !has_consumer(claim) && reasons.any(|reason| reason == WAITS)
}

/// Whether a pod that uses the claim was given a node.
pub(super) fn has_consumer(claim: &Value) -> bool {
    let annotations = value(claim, "metadata.annotations");
    annotations.is_some_and(|annotations| annotations.get(SELECTED_NODE).is_some())
}

/// The Services that answer the calls of a webhook configuration. A webhook with a URL has none.
pub fn webhook_services(configuration: &Value) -> BTreeSet<ServiceName> {
    let services = items(configuration, "webhooks").iter();
    let services = services.filter_map(|webhook| value(webhook, "clientConfig.service"));
    let names = services.map(|service| ServiceName {
        namespace: text(service, "namespace").to_owned(),
        name: text(service, "name").to_owned(),
    });
    names.collect()
}

/// A sentence about the Services of a webhook configuration that have no ready endpoint. `None` if there is none.
pub fn without_endpoints(services: &BTreeSet<ServiceName>) -> Option<String> {
    let names: Vec<String> = services.iter().take(MOST).map(ServiceName::told).collect();
    let sentence = match (names.as_slice(), services.len()) {
        ([], _) => return None,
        ([name], _) => format!("the Service {name} has no ready endpoint"),
        (names, count) if names.len() == count => {
            format!("the Services {} have no ready endpoint", names.join(", "))
        }
        (names, count) => {
            let others = count - names.len();
            format!(
                "the Services {} and {others} more have no ready endpoint",
                names.join(", ")
            )
        }
    };
    Some(harmless(&sentence, SENTENCE))
}
