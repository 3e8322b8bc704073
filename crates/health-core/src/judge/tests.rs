use std::collections::BTreeSet;

use serde_json::json;

use super::outside::{waits_for_consumer, webhook_services, without_endpoints};
use super::*;

fn now() -> Timestamp {
    "2024-05-01T12:00:00Z".parse().unwrap()
}

fn found(object: &Value) -> (State, String) {
    let finding = judge(object, now());
    (finding.state, finding.sentence)
}

fn told(state: State, sentence: &str) -> (State, String) {
    (state, sentence.to_owned())
}

#[test]
fn the_sentence_tells_the_count_that_falls_short() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2},
        "status": {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 0}});
    assert_eq!(found(&deployment), told(State::InProgress, "0 of 2 pods are available"));
    let rolling = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1},
        "status": {"replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}});
    let sentence = "1 of 2 pods is available, and 1 old pod has still to end";
    assert_eq!(found(&rolling), told(State::InProgress, sentence));
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 3},
        "status": {"replicas": 3, "readyReplicas": 1}});
    assert_eq!(found(&set), told(State::InProgress, "1 of 3 pods is ready"));
    let surplus = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 1},
        "status": {"replicas": 2, "readyReplicas": 1}});
    assert_eq!(found(&surplus), told(State::InProgress, "1 old pod has still to end"));
}

#[test]
fn a_pod_may_wait_fifteen_seconds_for_a_node() {
    let pod = |created: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": created}, "status": {
            "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available"}]}})
    };
    assert_eq!(
        found(&pod("2024-05-01T11:59:46Z")),
        told(State::InProgress, "the pod has no node yet")
    );
    let failed = told(State::Failed, "no node can take the pod: 0/1 nodes are available");
    assert_eq!(found(&pod("2024-05-01T11:59:45Z")), failed);
    assert_eq!(found(&pod("2024-05-01T13:59:45+02:00")), failed);
    assert_eq!(found(&pod("yesterday")), failed);
}

#[test]
fn a_job_that_gave_up_says_why() {
    let job = |reason: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"failed": 3, "conditions": [
            {"type": "Failed", "status": "True", "reason": reason, "message": "m"}]}})
    };
    let sentence = |reason| found(&job(reason)).1;
    assert_eq!(
        sentence("BackoffLimitExceeded"),
        "all tries are used up (BackoffLimitExceeded)"
    );
    assert_eq!(
        sentence("DeadlineExceeded"),
        "its deadline has passed (DeadlineExceeded)"
    );
    assert_eq!(sentence("PodFailurePolicy"), "the Job failed (PodFailurePolicy): m");
    assert_eq!(sentence(""), "the Job failed: m");
}

#[test]
fn a_job_is_current_once_it_is_complete() {
    let job = |status: Value| found(&json!({"apiVersion": "batch/v1", "kind": "Job", "status": status}));
    let runs = told(State::InProgress, "it is not complete yet (2 pods run)");
    assert_eq!(job(json!({"startTime": "2024-05-01T11:00:00Z", "active": 2})), runs);
    let complete = json!({"startTime": "2024-05-01T11:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]});
    assert_eq!(job(complete), told(State::Current, ""));
}

#[test]
fn a_load_balancer_needs_an_address() {
    let service = |ingress: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"},
            "status": {"loadBalancer": {"ingress": ingress}}})
    };
    let waits = told(State::InProgress, "the load balancer has no address yet");
    assert_eq!(found(&service(json!([]))), waits);
    assert_eq!(found(&service(json!([{"ip": ""}]))), waits);
    assert_eq!(
        found(&service(json!([{"hostname": "lb.example"}]))),
        told(State::Current, "")
    );
}

#[test]
fn an_api_service_says_why_it_is_not_available() {
    let service = |conditions: Value| json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "status": {"conditions": conditions}});
    let bad =
        json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "no endpoints"}]);
    assert_eq!(
        found(&service(bad)),
        told(State::InProgress, "MissingEndpoints: no endpoints")
    );
    assert_eq!(
        found(&service(json!([]))),
        told(State::InProgress, "the API is not available yet")
    );
    let good = json!([{"type": "Available", "status": "True"}]);
    assert_eq!(found(&service(good)), told(State::Current, ""));
}

#[test]
fn a_claim_may_wait_for_its_first_consumer() {
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}});
    let events = [
        json!({"reason": "ProvisioningFailed"}),
        json!({"reason": "WaitForFirstConsumer"}),
    ];
    assert!(!waits_for_consumer(&claim, &events[..1]));
    assert!(waits_for_consumer(&claim, &events));
    assert_eq!(found(&claim), told(State::InProgress, "the claim waits for a volume"));
    claim["metadata"] = json!({"annotations": {"volume.kubernetes.io/selected-node": "a"}});
    assert!(!waits_for_consumer(&claim, &events));
    assert_eq!(
        found(&claim),
        told(State::InProgress, "the volume for the claim is not made yet")
    );
    claim["metadata"] = json!({});
    claim["status"]["phase"] = json!("Lost");
    assert!(!waits_for_consumer(&claim, &events));
}

#[test]
fn a_webhook_needs_a_ready_endpoint() {
    let service = |name: &str| json!({"clientConfig": {"service": {"namespace": "a", "name": name}}});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "webhooks": [service("x"), service("y"), service("x"), {"clientConfig": {"url": "https://z"}}]});
    let mut services = webhook_services(&configuration);
    let told = |services: &BTreeSet<_>| without_endpoints(services).unwrap_or_default();
    assert_eq!(told(&services), "the Services a/x, a/y have no ready endpoint");
    services.pop_first();
    assert_eq!(told(&services), "the Service a/y has no ready endpoint");
    services.clear();
    assert_eq!(without_endpoints(&services), None);
    let many = (0..6).map(|number| service(&format!("s{number}"))).collect::<Vec<_>>();
    let services = webhook_services(&json!({"webhooks": many}));
    assert_eq!(
        told(&services),
        "the Services a/s0, a/s1, a/s2, a/s3 and 2 more have no ready endpoint"
    );
}

#[test]
fn what_is_no_object_is_unknown() {
    assert_eq!(found(&json!([])), told(State::Unknown, "the object has the wrong type"));
    assert_eq!(
        found(&json!({"status": 1})),
        told(State::Unknown, "status has the wrong type")
    );
}
