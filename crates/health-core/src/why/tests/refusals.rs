//! Pods that may not be created, and the sentence about each refusal.

use super::*;

/// The sentence about a ReplicaSet whose pods are refused with the message.
fn refused(message: &str) -> String {
    let mut short = set("web-5d", "2");
    short["status"]["replicas"] = json!(0);
    let around = Around {
        replica_sets: &[short],
        events: &[event("ReplicaSet", "web-5d", "FailedCreate", message)],
        ..Around::default()
    };
    why(&deployment(), &around, now()).unwrap()
}

#[test]
fn a_refusal_is_told_by_its_rules() {
    for (message, told) in [
        (
            "Error creating: pods \"web-5d-\" is forbidden: violates PodSecurity \"restricted:latest\": \
             allowPrivilegeEscalation != false (container \"web\" must set x=false), unrestricted capabilities \
             (container \"web\" must set y (\"ALL\")), runAsNonRoot != true (pod or container \"web\" must set z)",
            "PodSecurity restricted:latest forbids them (allowPrivilegeEscalation != false, unrestricted capabilities, \
             runAsNonRoot != true)",
        ),
        (
            "Error creating: pods \"web-5d-x\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, \
             limited: pods=3",
            "exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3",
        ),
        (
            "Error creating: admission webhook \"check.example.org\" denied the request: no\nlabel",
            "webhook check.example.org denies them: no label",
        ),
        (
            "Error creating: Internal error occurred: failed calling webhook \"check.example.org\": connection refused",
            "webhook check.example.org cannot be called: connection refused",
        ),
        (
            "Error creating: pods \"web-5d-\" is forbidden: error looking up service account ns/web: serviceaccount \
             \"web\" not found",
            "service account web does not exist",
        ),
        ("Error creating: etcd is full", "etcd is full"),
    ] {
        assert_eq!(refused(message), format!("web-5d: pods cannot be created: {told}"));
    }
    assert_eq!(refused(""), "web-5d: pods cannot be created");
}

#[test]
fn the_condition_of_a_set_outlives_the_event() {
    let mut short = set("web-5d", "2");
    short["status"] = json!({"replicas": 0, "conditions": [
        {"type": "ReplicaFailure", "status": "True", "message": "pods \"a\" is forbidden: exceeded quota: q"}]});
    let around = Around {
        replica_sets: &[short],
        ..Around::default()
    };
    assert_eq!(
        why(&deployment(), &around, now()).unwrap(),
        "web-5d: pods cannot be created: exceeded quota: q"
    );
}

#[test]
fn a_set_that_has_its_pods_is_not_refused() {
    let around = Around {
        replica_sets: &[set("web-5d", "2")],
        events: &[event(
            "ReplicaSet",
            "web-5d",
            "FailedCreate",
            "Error creating: exceeded quota: q",
        )],
        ..Around::default()
    };
    assert_eq!(why(&deployment(), &around, now()), None);
}

#[test]
fn other_owners_of_pods_are_refused_too() {
    for (version, kind, status) in [
        ("apps/v1", "StatefulSet", json!({})),
        ("apps/v1", "DaemonSet", json!({"desiredNumberScheduled": 2})),
        ("apps/v1", "ReplicaSet", json!({})),
        ("batch/v1", "Job", json!({})),
    ] {
        let workload = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "uid": "w"},
            "spec": {"replicas": 1}, "status": status});
        let events = [event(kind, "w", "FailedCreate", "Error creating: exceeded quota: q")];
        let around = Around {
            events: &events,
            ..Around::default()
        };
        assert_eq!(
            why(&workload, &around, now()).unwrap(),
            "w: pods cannot be created: exceeded quota: q",
            "{kind}"
        );
    }
}
