//! Tests of the rows: absent objects, causes and claims.

use command::paint::Paint;
use serde_json::json;

use super::*;

fn rows(objects: &[Value], expected: &[Value], around: &[Value]) -> Vec<[String; 3]> {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let rows = judged(objects, expected, around, now).into_iter();
    rows.map(|row| {
        [
            format!("{} {}", row.kind, row.name),
            row.health.to_owned(),
            row.sentence,
        ]
    })
    .collect()
}

fn deployment(name: &str, available: u8) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available,
        "availableReplicas": available, "conditions": [{"type": "Available", "status": if available == 1 { "True" } else { "False" }},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}})
}

/// A pod of a ReplicaSet of the Deployment, whose image cannot be pulled, in a namespace.
fn pod_and_set(namespace: &str) -> [Value; 2] {
    let owner = |kind: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": true}]);
    let waiting = json!({"reason": "ErrImagePull", "message": "not found"});
    [
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": namespace, "uid": "u2",
            "ownerReferences": owner("Deployment", "u1")}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1-a", "namespace": namespace,
            "ownerReferences": owner("ReplicaSet", "u2")}, "spec": {"containers": [{"name": "web", "image": "r/web:typo"}]},
            "status": {"phase": "Pending", "containerStatuses": [{"name": "web", "state": {"waiting": waiting}, "image": "r/web:typo"}]}}),
    ]
}

#[test]
fn an_object_that_is_not_there_is_on_its_way() {
    let manifest = |kind: &str, name: &str, more: Value| {
        let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}});
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object
    };
    let elsewhere = json!({"metadata": {"name": "web", "namespace": "other"}});
    let passing = json!({"apiVersion": "batch/v1", "spec": {"ttlSecondsAfterFinished": 0}});
    let expected = [
        // Of an earlier version of the group, and without its namespace.
        manifest("Deployment", "web", json!({"apiVersion": "apps/v1beta1"})),
        manifest("Deployment", "cart", json!({})),
        manifest("Deployment", "web", elsewhere),
        manifest("Deployment", "web", json!({"apiVersion": "other.io/v1"})),
        // It goes by itself.
        manifest("Job", "seed", passing),
    ];
    let absent = |name: &str| {
        [
            format!("Deployment {name}"),
            "RollingOut".to_owned(),
            "it is absent".to_owned(),
        ]
    };
    let healthy = ["Deployment web".to_owned(), "Healthy".to_owned(), String::new()];
    assert_eq!(
        rows(&[deployment("web", 1)], &expected, &[]),
        [healthy, absent("cart"), absent("web"), absent("web")]
    );
}

#[test]
fn the_cause_comes_from_objects_of_the_same_namespace() {
    let counts = "0 of 1 pods are available";
    let sentence = |around: &[Value]| rows(&[deployment("web", 0)], &[], around).remove(0);
    let cause = "web-1-a: image r/web:typo cannot be pulled (not found)";
    assert_eq!(sentence(&[])[1..], ["RollingOut", counts]);
    assert_eq!(
        sentence(&pod_and_set("shop"))[1..],
        ["RollingOut", &format!("{counts}; {cause}")]
    );
    let foreign = sentence(&pod_and_set("other"));
    assert!(!foreign[2].contains("image"), "{foreign:?}");
    // Nothing is said about pods of a healthy object.
    let healthy = rows(&[deployment("web", 1)], &[], &pod_and_set("shop"));
    assert_eq!(healthy[0][1..], ["Healthy", ""]);
}

#[test]
fn a_claim_that_waits_for_a_pod_is_healthy() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
        "status": {"phase": "Pending"}});
    let event = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "shop"}, "reason": "WaitForFirstConsumer",
            "involvedObject": {"kind": "PersistentVolumeClaim", "name": name}})
    };
    let health = |around: &[Value]| rows(std::slice::from_ref(&claim), &[], around)[0][1].clone();
    assert_eq!(health(&[]), "RollingOut");
    assert_eq!(health(&[event("other")]), "RollingOut");
    assert_eq!(health(&[event("data")]), "Healthy");
}

#[test]
fn the_words_are_those_of_modules() {
    let going = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let odd = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "status": {"phase": "Odd"}});
    let failed = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "c"},
        "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}});
    let found = judged(&[going, odd, failed], &[], &[], Timestamp::UNIX_EPOCH);
    let text = table(found).show(Paint::Plain);
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    assert_eq!(lines[0], ["KIND", "NAMESPACE", "NAME"]);
    assert_eq!(
        lines[1..],
        [
            ["ConfigMap", "a", "RollingOut"],
            ["Pod", "b", "Unknown"],
            ["Job", "c", "Failed"]
        ]
    );
    assert!(text.contains("RollingOut  it is being deleted\n"), "{text}");
}
