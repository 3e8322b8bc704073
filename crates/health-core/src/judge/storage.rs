//! Claims for volumes and Services: objects that wait for an assignment by others.
//!
//! Must never take a Service of another type for one that needs a load balancer.

use serde_json::Value;

use super::outside::has_consumer;
use crate::field::{items, text};
use crate::finding::Finding;
use crate::text::{NAME, harmless};

pub(super) fn claim(object: &Value) -> Finding {
    match text(object, "status.phase") {
        "Bound" => Finding::current(),
        "" => Finding::in_progress("the claim has no phase yet"),
        "Pending" if has_consumer(object) => Finding::in_progress("the volume for the claim is not made yet"),
        "Pending" => Finding::in_progress("the claim waits for a volume"),
        phase => Finding::in_progress(&format!("the claim is not bound ({})", harmless(phase, NAME))),
    }
}

pub(super) fn service(object: &Value) -> Finding {
    if text(object, "spec.type") != "LoadBalancer" {
        return Finding::current();
    }
    if text(object, "spec.clusterIP").is_empty() {
        return Finding::in_progress("the Service has no cluster IP yet");
    }
    let has_address = items(object, "status.loadBalancer.ingress")
        .iter()
        .any(|address| !text(address, "ip").is_empty() || !text(address, "hostname").is_empty());
    if has_address {
        return Finding::current();
    }
    Finding::in_progress("the load balancer has no address yet")
}
