use serde_json::json;

use super::*;

mod refusals;
mod seen;
mod workloads;

fn now() -> Timestamp {
    "2024-05-01T12:00:00Z".parse().unwrap()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "d"},
        "spec": {"replicas": 1}})
}

fn set(name: &str, revision: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "uid": name,
        "annotations": {"deployment.kubernetes.io/revision": revision}, "ownerReferences": [{"uid": "d"}]},
        "spec": {"replicas": 1}, "status": {"replicas": 1}})
}

/// A pod of the set `web-5d` whose only container has the status.
fn pod(status: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "web-5d-x", "uid": "p", "ownerReferences": [{"uid": "web-5d"}]},
        "spec": {"nodeName": "n", "containers": [{"name": "web", "image": "registry.example/web:1",
            "resources": {"limits": {"memory": "64Mi"}}}]},
        "status": {"phase": "Running", "containerStatuses": [status]}});
    pod["status"]["containerStatuses"][0]["name"] = json!("web");
    pod
}

fn pending(conditions: &Value) -> Value {
    let mut pod = pod(&json!({"state": {"waiting": {"reason": "ContainerCreating"}}}));
    pod["status"]["phase"] = json!("Pending");
    pod["status"]["conditions"] = conditions.clone();
    pod
}

fn event(kind: &str, name: &str, reason: &str, message: &str) -> Value {
    json!({"involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
        "lastTimestamp": "2024-05-01T11:59:00Z"})
}

fn of_pod(reason: &str, message: &str) -> Value {
    let mut event = event("Pod", "web-5d-x", reason, message);
    event["involvedObject"]["fieldPath"] = json!("spec.containers{web}");
    event
}

fn told(pods: &[Value], events: &[Value]) -> String {
    let around = Around {
        replica_sets: &[set("web-5d", "2"), set("web-4c", "1")],
        pods,
        events,
        last_lines: BTreeMap::new(),
    };
    why(&deployment(), &around, now()).unwrap_or_default()
}

fn waits(reason: &str, message: &str) -> Value {
    pod(&json!({"state": {"waiting": {"reason": reason, "message": message}}}))
}

#[test]
fn an_image_that_cannot_be_pulled_is_named_with_the_reason() {
    assert_eq!(
        told(
            &[waits(
                "ErrImagePull",
                "failed to pull image: registry.example/web:1: not found"
            )],
            &[]
        ),
        "web-5d-x: image registry.example/web:1 cannot be pulled (not found)"
    );
    let backed_off = waits("ImagePullBackOff", "Back-off pulling image \"registry.example/web:1\"");
    let failed = of_pod(
        "Failed",
        "Failed to pull image \"registry.example/web:1\": connect: connection refused",
    );
    assert_eq!(
        told(std::slice::from_ref(&backed_off), &[failed]),
        "web-5d-x: image registry.example/web:1 cannot be pulled (connection refused)"
    );
    assert_eq!(
        told(&[backed_off], &[]),
        "web-5d-x: image registry.example/web:1 cannot be pulled (ImagePullBackOff)"
    );
    assert_eq!(
        told(&[waits("InvalidImageName", "x")], &[]),
        "web-5d-x: image registry.example/web:1 cannot be pulled (its name is invalid)"
    );
}

fn looping(last: &Value) -> Value {
    pod(
        &json!({"restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": last}}),
    )
}

#[test]
fn a_crash_tells_the_end_and_the_last_line() {
    for (last, end) in [
        (json!({"exitCode": 1, "reason": "Error"}), "exit code 1"),
        (json!({"exitCode": 0, "reason": "Completed"}), "exit code 0"),
        (
            json!({"exitCode": 137, "reason": "OOMKilled"}),
            "out of memory (limit 64Mi)",
        ),
        (json!({"exitCode": 139, "reason": "Error"}), "exit code 139 (signal 11)"),
        (json!({"signal": 9}), "signal 9"),
        (json!({"exitCode": 2, "reason": "Odd"}), "exit code 2 (Odd)"),
        (
            json!({"exitCode": 2, "message": "one\ntwo\n"}),
            "exit code 2; its last line: two",
        ),
        (
            json!({"exitCode": 128, "reason": "StartError", "message":
                "runc create failed: unable to start container process: exec: \"nope\": not found: unknown"}),
            "it cannot start: exec: \"nope\": not found",
        ),
    ] {
        assert_eq!(
            told(&[looping(&last)], &[]),
            format!("web-5d-x: container web crashes (5 restarts): {end}")
        );
    }
    let name = ContainerName {
        pod: "web-5d-x".to_owned(),
        container: "web".to_owned(),
    };
    let around = Around {
        pods: &[looping(&json!({"exitCode": 1}))],
        replica_sets: &[set("web-5d", "2")],
        last_lines: BTreeMap::from([(name, "panic:\u{1b}[31m no config\n".to_owned())]),
        ..Around::default()
    };
    assert_eq!(
        why(&deployment(), &around, now()).unwrap(),
        "web-5d-x: container web crashes (5 restarts): exit code 1; its last line: panic: [31m no config"
    );
}

#[test]
fn a_restart_of_long_ago_is_no_crash() {
    let restarted = |finished: &str| {
        pod(&json!({"restartCount": 1, "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 3, "finishedAt": finished}}}))
    };
    assert_eq!(
        told(&[restarted("2024-05-01T11:55:00Z")], &[]),
        "web-5d-x: container web crashes (1 restart): exit code 3"
    );
    assert_eq!(
        told(&[restarted("2024-05-01T09:55:00Z")], &[]),
        "web-5d-x: container web runs but is not ready"
    );
}

#[test]
fn a_probe_that_fails_is_told_with_its_message() {
    let running = pod(&json!({"state": {"running": {}}, "ready": false}));
    let unhealthy = |probe: &str| {
        of_pod(
            "Unhealthy",
            &format!("{probe} probe failed: HTTP probe failed with\nstatuscode: 500"),
        )
    };
    assert_eq!(
        told(std::slice::from_ref(&running), &[unhealthy("Readiness")]),
        "web-5d-x: the readiness probe of container web fails (HTTP probe failed with statuscode: 500)"
    );
    assert_eq!(
        told(&[running], &[unhealthy("Readiness"), unhealthy("Liveness")]),
        "web-5d-x: the liveness probe of container web fails (HTTP probe failed with statuscode: 500)"
    );
    let killed = looping(&json!({"exitCode": 137, "reason": "Error"}));
    let killing = of_pod("Killing", "Container web failed liveness probe, will be restarted");
    assert_eq!(
        told(&[killed], &[killing.clone(), unhealthy("Liveness")]),
        "web-5d-x: container web is restarted because its liveness probe fails (HTTP probe failed with statuscode: 500)"
    );
    let out_of_memory = looping(&json!({"exitCode": 137, "reason": "OOMKilled"}));
    assert_eq!(
        told(&[out_of_memory], &[killing]),
        "web-5d-x: container web crashes (5 restarts): out of memory (limit 64Mi)"
    );
}

#[test]
fn init_containers_are_told_apart() {
    let init = |status: Value| {
        let mut pod = pending(&json!([]));
        pod["status"]["initContainerStatuses"] = json!([status]);
        pod["status"]["initContainerStatuses"][0]["name"] = json!("migrate");
        pod
    };
    let running = |since: &str| init(json!({"state": {"running": {"startedAt": since}}}));
    assert_eq!(
        told(&[running("2024-05-01T11:48:00Z")], &[]),
        "web-5d-x: init container migrate still runs, after 12 min"
    );
    assert_eq!(
        told(&[running("2024-05-01T11:59:50Z")], &[]),
        "web-5d-x: init container migrate runs"
    );
    assert_eq!(
        told(&[init(json!({"state": {"terminated": {"exitCode": 4}}}))], &[]),
        "web-5d-x: init container migrate failed: exit code 4"
    );
    let mut sidecar = running("2024-05-01T10:00:00Z");
    sidecar["spec"]["initContainers"] = json!([{"name": "migrate", "restartPolicy": "Always"}]);
    assert!(!told(&[sidecar], &[]).contains("still runs"));
}

#[test]
fn a_pod_without_a_node_tells_the_reason_of_the_scheduler() {
    let refused = |reason: &str, message: &str| {
        let mut pod =
            pending(&json!([{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]));
        pod["status"]["containerStatuses"] = json!([]);
        pod["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
        pod
    };
    assert_eq!(
        told(
            &[refused(
                "Unschedulable",
                "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available."
            )],
            &[]
        ),
        "web-5d-x: the pod cannot be scheduled: 0/1 nodes are available: 1 Insufficient cpu"
    );
    assert_eq!(
        told(&[refused("SchedulingGated", "x")], &[]),
        "web-5d-x: the pod waits for its scheduling gates"
    );
    let unbound = refused(
        "Unschedulable",
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. x",
    );
    assert_eq!(
        told(std::slice::from_ref(&unbound), &[]),
        "web-5d-x: claim data is not bound"
    );
    let failed = event(
        "PersistentVolumeClaim",
        "data",
        "ProvisioningFailed",
        "storageclass \"fast\" not found",
    );
    assert_eq!(
        told(&[unbound], &[failed]),
        "web-5d-x: claim data is not bound: storageclass \"fast\" not found"
    );
    assert_eq!(
        told(
            &[refused("Unschedulable", "persistentvolumeclaim \"data\" not found")],
            &[]
        ),
        "web-5d-x: claim data does not exist"
    );
}

#[test]
fn missing_maps_and_secrets_are_named() {
    for (message, told_as) in [
        ("configmap \"settings\" not found", "ConfigMap settings does not exist"),
        ("secret \"key\" not found", "Secret key does not exist"),
        (
            "couldn't find key a in ConfigMap ns/settings",
            "ConfigMap settings has no key a",
        ),
        ("runs as root", "container web cannot be created: runs as root"),
    ] {
        assert_eq!(
            told(&[waits("CreateContainerConfigError", message)], &[]),
            format!("web-5d-x: {told_as}")
        );
    }
    let timeout =
        "Unable to attach or mount volumes: unmounted volumes=[cert], unattached volumes=[]: timed out waiting";
    let setup = "MountVolume.SetUp failed for volume \"cert\" : secret \"web-tls\" not found";
    let creating = pending(&json!([{"type": "PodScheduled", "status": "True"}]));
    let mounts = |messages: &[&str]| {
        let events: Vec<Value> = messages
            .iter()
            .map(|message| event("Pod", "web-5d-x", "FailedMount", message))
            .collect();
        told(std::slice::from_ref(&creating), &events)
    };
    assert_eq!(
        mounts(&[timeout, setup]),
        "web-5d-x: volume cert: Secret web-tls does not exist"
    );
    assert_eq!(mounts(&[timeout]), "web-5d-x: volume cert cannot be mounted (timeout)");
    assert_eq!(mounts(&["odd"]), "web-5d-x: a volume cannot be mounted: odd");
    assert_eq!(mounts(&[]), "web-5d-x: container web waits (ContainerCreating)");
    let sandbox = event(
        "Pod",
        "web-5d-x",
        "FailedCreatePodSandBox",
        "rpc error: code = Unknown desc = no network",
    );
    assert_eq!(
        told(&[creating], &[sandbox]),
        "web-5d-x: the sandbox of the pod cannot be created: no network"
    );
}

#[test]
fn old_pods_ready_pods_and_those_of_others_are_passed_over() {
    let mut old = waits("ErrImagePull", "not found");
    old["metadata"]["ownerReferences"][0]["uid"] = json!("web-4c");
    old["metadata"]["name"] = json!("web-4c-y");
    let unready = pod(&json!({"state": {"running": {}}}));
    let name = |told: &str| told.split(':').next().unwrap().to_owned();
    assert_eq!(name(&told(&[old.clone(), unready], &[])), "web-5d-x");
    assert_eq!(name(&told(&[old.clone()], &[])), "web-4c-y");
    old["metadata"]["ownerReferences"][0]["uid"] = json!("other");
    assert_eq!(told(&[old], &[]), "");
    let mut ready = looping(&json!({}));
    ready["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    assert_eq!(told(&[ready], &[]), "");
}

#[test]
fn an_event_of_an_earlier_pod_or_an_old_one_is_passed_over() {
    let running = pod(&json!({"state": {"running": {}}, "ready": false}));
    let mut unhealthy = of_pod("Unhealthy", "Readiness probe failed: no");
    unhealthy["involvedObject"]["uid"] = json!("earlier");
    assert!(!told(std::slice::from_ref(&running), &[unhealthy]).contains("probe"));
    let mut unhealthy = of_pod("Unhealthy", "Readiness probe failed: no");
    unhealthy["lastTimestamp"] = json!("2024-05-01T10:00:00Z");
    assert!(!told(std::slice::from_ref(&running), &[unhealthy]).contains("probe"));
    let newer = json!({"regarding": {"kind": "Pod", "name": "web-5d-x"}, "reason": "Unhealthy",
        "note": "Readiness probe failed: yes", "eventTime": "2024-05-01T11:59:59.000000Z"});
    let older = of_pod("Unhealthy", "Readiness probe failed: no");
    assert!(told(&[running], &[older, newer]).ends_with("(yes)"));
}
