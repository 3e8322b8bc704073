//! Workloads of each kind, and the sentence about each.

use super::*;

fn owned(name: &str, status: &Value) -> Value {
    json!({"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": "w"}]}, "status": status})
}

fn workload(version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "uid": "w"}, "spec": spec, "status": status})
}

fn around(pods: &[Value]) -> Around<'_> {
    Around {
        pods,
        ..Around::default()
    }
}

#[test]
fn a_job_that_gave_up_names_its_failed_pods() {
    let job = workload(
        "batch/v1",
        "Job",
        &json!({}),
        &json!({"conditions": [
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}),
    );
    let failed = |name: &str, code: i64| {
        owned(
            name,
            &json!({"phase": "Failed", "containerStatuses": [
            {"name": "c", "state": {"terminated": {"exitCode": code}}}]}),
        )
    };
    let told = |pods: &[Value]| why(&job, &around(pods), now()).unwrap_or_default();
    assert_eq!(told(&[]), "", "the state of the Job says it");
    assert_eq!(
        told(&[failed("w-a", 1), failed("w-b", 2)]),
        "w-a: exit code 1; w-b: exit code 2"
    );
    let many: Vec<Value> = (1..=5).map(|code| failed("w-a", code)).collect();
    assert!(told(&many).ends_with("w-a: exit code 3; 2 more failed"));
}

#[test]
fn a_pod_of_a_job_with_tries_left_tells_its_end() {
    let job = workload("batch/v1", "Job", &json!({}), &json!({"active": 1}));
    let failed = owned(
        "w-a",
        &json!({"phase": "Failed", "containerStatuses": [
        {"name": "c", "state": {"terminated": {"exitCode": 1, "message": "bad\nworse"}}}]}),
    );
    assert_eq!(
        why(&job, &around(&[failed]), now()).unwrap(),
        "w-a: container c failed: exit code 1; its last line: worse"
    );
    let evicted = owned(
        "w-b",
        &json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
    );
    assert_eq!(
        why(&job, &around(&[evicted]), now()).unwrap(),
        "w-b: the pod failed (Evicted: low on memory)"
    );
}

#[test]
fn a_daemon_set_tells_its_nodes() {
    let set = |ready: i64| {
        let status = json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": ready});
        workload("apps/v1", "DaemonSet", &json!({}), &status)
    };
    assert_eq!(
        why(&set(2), &around(&[]), now()).unwrap(),
        "w: its pod is ready on 2 of 3 nodes"
    );
    assert_eq!(why(&set(3), &around(&[]), now()), None);
}

#[test]
fn a_stateful_set_tells_the_pod_at_which_it_is_stuck() {
    let ready = owned(
        "w-0",
        &json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    let set = |spec: Value| workload("apps/v1", "StatefulSet", &spec, &json!({"replicas": 3}));
    let pods = [ready];
    let told = |spec: Value| why(&set(spec), &around(&pods), now());
    assert_eq!(
        told(json!({"replicas": 3})).unwrap(),
        "w: pod w-1 does not exist, and the pods after it wait"
    );
    assert_eq!(
        told(json!({"replicas": 3, "podManagementPolicy": "Parallel"})).unwrap(),
        "w: pod w-1 does not exist"
    );
    assert_eq!(told(json!({"replicas": 1})), None);
}

#[test]
fn a_claim_tells_the_complaint_about_it() {
    let claim = workload("v1", "PersistentVolumeClaim", &json!({}), &json!({"phase": "Pending"}));
    let told = |events: &[Value]| {
        let around = Around {
            events,
            ..Around::default()
        };
        why(&claim, &around, now())
    };
    let failed = event(
        "PersistentVolumeClaim",
        "w",
        "ProvisioningFailed",
        "storageclass \"fast\" not found",
    );
    assert_eq!(told(&[failed]).unwrap(), "storageclass \"fast\" not found");
    assert_eq!(told(&[]), None);
}

#[test]
fn a_node_that_does_not_answer_is_named() {
    let set = workload(
        "apps/v1",
        "DaemonSet",
        &json!({}),
        &json!({"desiredNumberScheduled": 1}),
    );
    let mut pod = owned("w-a", &json!({"phase": "Pending"}));
    pod["spec"] = json!({"nodeName": "n"});
    assert_eq!(
        why(&set, &around(&[pod.clone()]), now()).unwrap(),
        "w-a: node n has not taken up the pod"
    );
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}]});
    let events = [
        event("Pod", "w-a", "TaintManagerEviction", "Marking for deletion"),
        event("Pod", "w-a", "NodeNotReady", "Node is not ready"),
    ];
    let around = Around {
        pods: &[pod],
        events: &events,
        ..Around::default()
    };
    assert_eq!(why(&set, &around, now()).unwrap(), "w-a: node n does not answer");
}

#[test]
fn a_pod_is_its_own_workload() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "p"},
        "status": {"phase": "Pending"}});
    assert_eq!(why(&pod, &around(&[]), now()).unwrap(), "p: the pod has no node yet");
}

#[test]
fn a_pod_that_is_being_deleted_says_so() {
    let set = workload(
        "apps/v1",
        "StatefulSet",
        &json!({"replicas": 1}),
        &json!({"replicas": 1}),
    );
    let mut pod = owned("w-0", &json!({"phase": "Running"}));
    pod["metadata"]["deletionTimestamp"] = json!("2024-05-01T11:00:00Z");
    assert_eq!(
        why(&set, &around(&[pod]), now()).unwrap(),
        "w-0: the pod is being deleted"
    );
}
