use channel_core::trial::sight::PodState;
use serde_json::{Value, json};

use super::*;

const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn deployment_with(change: impl FnOnce(&mut Value)) -> DynamicObject {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "a", "generation": 3, "labels": {"helm.sh/chart": "addon-operator-0.3.0"},
            "annotations": {FORMER_IMAGE: "r/a:1", CHART_IMAGE: "r/a:2", PATCHED_IMAGE: "r/a:3", CHART_IMAGE_THEN: "r/a:4"},
            "managedFields": [
                {"manager": "helm", "time": "2026-01-01T00:00:00Z", "fieldsV1": owner("ours")},
                {"manager": "kubectl-set", "time": "2026-01-02T00:00:00Z", "fieldsV1": owner("ours")},
                {"manager": "scaler", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "other", "time": "2026-01-04T00:00:00Z", "fieldsV1": owner("other")},
            ],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
                {"name": "other", "image": "x"},
                {"name": "ours", "image": format!("r/a:2@{A}"), "imagePullPolicy": "IfNotPresent"},
            ]}},
        },
        "status": {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
    });
    change(&mut object);
    read(object)
}

fn owner(container: &str) -> Value {
    let key = format!("k:{{\"name\":\"{container}\"}}");
    json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {key: {"f:image": {}}}}}}})
}

#[test]
fn a_deployment_is_read_with_all_that_it_tells() {
    let sight = deployment(&deployment_with(|_| {}), "ours").unwrap();
    assert_eq!(sight.image, format!("r/a:2@{A}"));
    assert_eq!(sight.reference.unwrap().digest.unwrap().as_str(), A);
    assert_eq!(sight.chart.unwrap().to_string(), "0.3.0");
    let noted = [sight.former, sight.chart_image, sight.patched, sight.chart_image_then];
    assert_eq!(noted.map(Option::unwrap), ["r/a:1", "r/a:2", "r/a:3", "r/a:4"]);
    let wrote = "2026-01-02T00:00:00Z".parse().ok();
    assert_eq!(sight.manager, Some(("kubectl-set".to_owned(), wrote)));
    assert!(sight.is_rolled_out && !sight.pulls_always);
    assert_eq!(sight.stuck, None);
    assert!(
        deployment(&deployment_with(|_| {}), "gone")
            .unwrap_err()
            .contains("'gone'")
    );
}

#[test]
fn a_rollout_is_over_when_no_pod_of_another_template_is_left() {
    for (field, value, over) in [
        ("observedGeneration", 2, false),
        ("replicas", 3, false),
        ("updatedReplicas", 1, false),
        ("availableReplicas", 1, false),
        ("readyReplicas", 0, true),
    ] {
        let object = deployment_with(|object| object["status"][field] = json!(value));
        assert_eq!(deployment(&object, "ours").unwrap().is_rolled_out, over, "{field}");
    }
}

#[test]
fn a_rollout_that_sticks_says_why() {
    let late = json!([
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it has timed out"},
    ]);
    let refused = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}]);
    let fine = json!([{"type": "Progressing", "status": "True"}, {"type": "ReplicaFailure", "status": "False"}]);
    for (conditions, why) in [
        (late, Some("ProgressDeadlineExceeded: it has timed out")),
        (refused, Some("FailedCreate: quota")),
        (fine, None),
    ] {
        let object = deployment_with(|object| object["status"]["conditions"] = conditions);
        assert_eq!(deployment(&object, "ours").unwrap().stuck.as_deref(), why);
    }
    let paused = deployment_with(|object| object["spec"]["paused"] = json!(true));
    assert_eq!(
        deployment(&paused, "ours").unwrap().stuck.as_deref(),
        Some("its rollout is paused")
    );
}

#[test]
fn the_hash_is_that_of_all_in_the_template() {
    let hash = |change: fn(&mut Value)| deployment(&deployment_with(change), "ours").unwrap().template;
    let same = hash(|_| {});
    assert_eq!(same, hash(|object| object["spec"]["replicas"] = json!(5)));
    assert_eq!(same, hash(|object| object["metadata"]["annotations"] = json!({})));
    let unknown = hash(|object| object["spec"]["template"]["spec"]["ofTomorrow"] = json!(1));
    assert_ne!(same, unknown, "a field that no version knows yet");
}

fn pod(status: &Value) -> Pod {
    read(json!({
        "metadata": {"name": "a-1", "uid": "u", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "ours", "image": format!("r/a@{A}")}, {"name": "other"}]},
        "status": status,
    }))
}

fn container(state: &Value, restarts: u32) -> Value {
    json!({"name": "ours", "image": "r/a", "imageID": format!("docker-pullable://r/a@{B}"), "ready": false,
        "restartCount": restarts, "state": state})
}

#[test]
fn a_pod_runs_what_the_runtime_says_and_what_it_names() {
    let told = pod(&json!({"containerStatuses": [container(&json!({"running": {}}), 0)]}));
    let digests: Vec<String> = digests(&told, "ours").iter().map(ToString::to_string).collect();
    assert_eq!(digests, [A, B]);
    assert!(has_image_id(&told, "ours") && !has_image_id(&pod(&json!({})), "ours"));
}

#[test]
fn a_pod_of_a_trial_tells_how_far_it_is() {
    let ready = |status: &str| json!([{"type": "Ready", "status": status, "reason": "r", "message": "m"}]);
    let waits = |reason: &str| container(&json!({"waiting": {"reason": reason, "message": "m"}}), 0);
    let runs = || container(&json!({"running": {}}), 0);
    let mut looping = waits("CrashLoopBackOff");
    looping["lastState"] = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
    for (status, state) in [
        (json!({}), PodState::Starting),
        (
            json!({"containerStatuses": [waits("ContainerCreating")]}),
            PodState::Starting,
        ),
        (
            json!({"containerStatuses": [runs()], "conditions": ready("False")}),
            PodState::Starting,
        ),
        (
            json!({"containerStatuses": [runs()], "conditions": ready("True")}),
            PodState::Ready,
        ),
        (
            json!({"containerStatuses": [runs()], "conditions": ready("Unknown")}),
            PodState::Lost("r: m".to_owned()),
        ),
        (
            json!({"containerStatuses": [waits("ImagePullBackOff")]}),
            PodState::NotPulled("ImagePullBackOff: m".to_owned()),
        ),
        (
            json!({"initContainerStatuses": [waits("ErrImagePull")]}),
            PodState::NotPulled("ErrImagePull: m".to_owned()),
        ),
        (
            json!({"containerStatuses": [looping]}),
            PodState::Crashed("Error, exit code 3".to_owned()),
        ),
        (
            json!({"containerStatuses": [container(&json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), 1)]}),
            PodState::Crashed("OOMKilled, exit code 137".to_owned()),
        ),
        (
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}]}),
            PodState::Unscheduled("Unschedulable: no room".to_owned()),
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}),
            PodState::Lost("Evicted: disk".to_owned()),
        ),
        (
            json!({"containerStatuses": [runs()], "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}),
            PodState::Lost("EvictionByEvictionAPI".to_owned()),
        ),
    ] {
        let pod = pod(&status);
        assert_eq!(trial_pod([&pod].into_iter(), "ours").unwrap().state, state, "{status}");
    }
}

#[test]
fn a_restart_after_the_lease_had_run_out_is_told() {
    let was_overdue = |code: i32, state: Value| {
        let mut again = container(&state, 1);
        again["lastState"] = json!({"terminated": {"exitCode": code, "reason": "Error"}});
        let pod = pod(&json!({"containerStatuses": [again]}));
        trial_pod([&pod].into_iter(), "ours").unwrap().was_overdue
    };
    let (runs, waits) = (
        json!({"running": {}}),
        json!({"waiting": {"reason": "CrashLoopBackOff"}}),
    );
    assert!(was_overdue(75, runs.clone()) && !was_overdue(1, runs) && !was_overdue(75, waits));
}

#[test]
fn of_several_pods_of_a_trial_the_last_one_counts_that_is_not_lost() {
    let named = |name: &str, made: &str, status: Value, ends: Option<&str>| {
        let mut pod = pod(&status);
        pod.metadata.name = Some(name.to_owned());
        let metadata = json!({"creationTimestamp": made, "deletionTimestamp": ends});
        let times: ObjectMeta = read(metadata);
        pod.metadata.creation_timestamp = times.creation_timestamp;
        pod.metadata.deletion_timestamp = times.deletion_timestamp;
        pod
    };
    let pods = [
        named("first", "2026-01-01T00:00:00Z", json!({}), None),
        named("second", "2026-01-01T00:00:05Z", json!({}), None),
        named("lost", "2026-01-01T00:00:06Z", json!({"phase": "Failed"}), None),
        named(
            "ending",
            "2026-01-01T00:00:07Z",
            json!({}),
            Some("2026-01-01T00:00:08Z"),
        ),
    ];
    let chosen = |pods: &[Pod]| trial_pod(pods.iter(), "ours").map(|pod| pod.name);
    assert_eq!(chosen(&pods).as_deref(), Some("second"));
    assert_eq!(chosen(&pods[2..]).as_deref(), Some("lost"));
    assert_eq!(chosen(&pods[3..]), None);
    assert_eq!(pods.map(|pod| is_wanted(&pod)), [true, true, false, false]);
}

#[test]
fn our_container_is_the_one_that_is_named_or_the_only_one() {
    let with = |annotation: Option<&str>, names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let annotations = annotation.map(|name| json!({DEFAULT_CONTAINER: name}));
        let pod = read(json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}}));
        match container_of(&pod) {
            WhichContainer::Named(name) => Ok(name),
            WhichContainer::Unclear(names) => Err(names.len()),
        }
    };
    assert_eq!(with(Some("b"), &["a", "b"]), Ok("b".to_owned()));
    assert_eq!(
        with(Some("gone"), &["a", "addon-operator"]),
        Ok("addon-operator".to_owned())
    );
    assert_eq!(with(None, &["a"]), Ok("a".to_owned()));
    assert_eq!(with(None, &["a", "b"]), Err(2));
}
