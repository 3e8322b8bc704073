//! The end of containers, their restart, and the end of pods.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, create, once, phase, said, stage};

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

#[test]
fn a_container_that_fails_is_started_again_and_then_waits() {
    let namespace = stage().plane.namespace("crash").unwrap();
    let mounts = json!([{ "name": "kept", "mountPath": "/kept" }]);
    let script = "echo run >>/kept/runs; grep -c run /kept/runs >/dev/termination-log; exit 3";
    let volumes = json!({ "volumes": [{ "name": "kept", "emptyDir": {} }] });
    create(&namespace, "seen", script, &json!({ "volumeMounts": mounts }), &volumes);
    let pod = once(&namespace, "seen", "to be in a crash loop", |pod| {
        container(pod)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    });
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!((phase(&pod), &container(&pod)["restartCount"]), ("Running", &json!(1)));
    let message = last["message"].as_str().map(str::trim);
    assert_eq!(
        (&last["exitCode"], message),
        (&json!(3), Some("2")),
        "of the second run"
    );
    let ready = pod["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["type"] == "Ready");
    assert_eq!(ready.unwrap()["status"], "False");
}

#[test]
fn a_container_that_is_killed_from_outside_is_started_again() {
    let namespace = stage().plane.namespace("killed").unwrap();
    create(&namespace, "seen", "sleep inf", &json!({}), &json!({}));
    let pod = once(&namespace, "seen", "to be ready", |pod| container(pod)["ready"] == true);
    let first_process = || {
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        stage().plane.process_of(uid, "main")
    };
    let first = first_process().unwrap();
    process::signal(first, libc::SIGKILL);
    let pod = once(&namespace, "seen", "to be ready again", |pod| {
        container(pod)["ready"] == true && container(pod)["restartCount"] == 1
    });
    assert_eq!(container(&pod)["lastState"]["terminated"]["exitCode"], 137);
    assert_ne!(first_process().unwrap(), first);
}

#[test]
fn what_cannot_be_run_says_so() {
    let namespace = stage().plane.namespace("absent").unwrap();
    let more = json!({ "command": ["/bin/none"] });
    create(&namespace, "seen", "", &more, &json!({ "restartPolicy": "Never" }));
    let pod = once(&namespace, "seen", "to fail", |pod| phase(pod) == "Failed");
    let ended = &container(&pod)["state"]["terminated"];
    assert_eq!(ended["exitCode"], 128);
    assert!(ended["message"].to_string().contains("cannot run /bin/none"), "{ended}");
}

#[test]
fn a_pod_is_asked_to_end_and_killed_only_when_its_time_is_over() {
    let namespace = stage().plane.namespace("grace").unwrap();
    let polite = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    create(
        &namespace,
        "polite",
        polite,
        &json!({}),
        &json!({ "terminationGracePeriodSeconds": 60 }),
    );
    create(
        &namespace,
        "deaf",
        "sleep inf",
        &json!({}),
        &json!({ "terminationGracePeriodSeconds": 1 }),
    );
    let ready = |pod: &Value| container(pod)["ready"] == true;
    once(&namespace, "polite", "to be ready", ready);
    once(&namespace, "deaf", "to be ready", ready);
    wait_until(PATIENCE, "the trap to be set", || {
        let said = super::stage::log(&namespace, "polite");
        Ok::<_, String>(said.contains("up").then_some(()))
    })
    .unwrap();
    let uid = namespace
        .kubectl(["get", "pod", "polite", "--output=jsonpath={.metadata.uid}"])
        .unwrap();
    let begun = std::time::Instant::now();
    namespace
        .kubectl(["delete", "pod", "polite", "deaf", "--timeout=50s"])
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(40), "nobody waited for a minute");
    let folder = stage().plane.folder().join("node/pods").join(uid);
    wait_until(PATIENCE, "its files to be gone", || {
        Ok::<_, String>((!folder.exists()).then_some(()))
    })
    .unwrap();
}

#[test]
fn probes_decide_about_readiness_and_restarts() {
    let namespace = stage().plane.namespace("probes").unwrap();
    let probe = |kind: &str, what: Value| json!({ kind: what, "periodSeconds": 1, "failureThreshold": 1 });
    let more = json!({
        "args": ["inhabitant 8080"], "ports": [{ "name": "web", "containerPort": 8080 }],
        "startupProbe": { "tcpSocket": { "port": "web" }, "periodSeconds": 1, "failureThreshold": 60 },
        "readinessProbe": probe("httpGet", json!({ "port": "web", "path": "/tmp/ready" })),
        "livenessProbe": probe("exec", json!({ "command": ["sh", "-c", "test ! -e /tmp/dead && test $(id -u) = 1001"] })),
    });
    create(
        &namespace,
        "seen",
        "",
        &more,
        &json!({ "terminationGracePeriodSeconds": 1 }),
    );
    let pod = once(&namespace, "seen", "to have started", |pod| {
        container(pod)["started"] == true
    });
    assert_eq!(container(&pod)["ready"], false);
    let inside = |script: &str| namespace.kubectl(["exec", "seen", "--", "sh", "-c", script]).unwrap();
    assert_eq!(inside("touch /tmp/ready; echo made"), "made\n");
    once(&namespace, "seen", "to be ready", |pod| container(pod)["ready"] == true);
    inside("touch /tmp/dead");
    let pod = once(&namespace, "seen", "to be started again", |pod| {
        container(pod)["restartCount"] == 1 && container(pod)["started"] == true
    });
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 137);
    assert!(last["message"].to_string().contains("liveness probe failed"), "{last}");
    assert_eq!(
        container(&pod)["ready"],
        false,
        "the new container has a new layer, which lacks the file of the readiness probe"
    );
}

#[test]
fn what_is_to_run_first_runs_first() {
    let namespace = stage().plane.namespace("first").unwrap();
    let mounts = json!([{ "name": "shared", "mountPath": "/shared" }]);
    let pod = json!({
        "volumes": [{ "name": "shared", "emptyDir": {} }],
        "initContainers": [
            { "name": "one", "image": stage().image, "args": ["echo one >/shared/said"], "volumeMounts": mounts },
            { "name": "two", "image": stage().image, "args": ["echo two >>/shared/said"], "volumeMounts": mounts },
        ],
    });
    let said = said(
        &namespace,
        "seen",
        "cat /shared/said",
        &json!({ "volumeMounts": mounts }),
        &pod,
    );
    assert_eq!(said, "one\ntwo\n");
}
