//! Witnesses: the objects and the log that are asked before the sentence is made, and sentences that a node made necessary.

use super::*;

fn last_words(pods: &[Value]) -> Option<(String, String, bool)> {
    let deployment = deployment();
    let around = Around {
        replica_sets: &[set("web-5d", "2"), set("web-4c", "1")],
        pods,
        ..Around::default()
    };
    let words = witnesses(&deployment, &around, now()).last_words?;
    Some((words.container.pod, words.container.container, words.is_before_restart))
}

#[test]
fn the_log_of_a_container_that_ended_is_the_present_one_until_it_is_started_again() {
    let words = |status: &Value| last_words(&[pod(status)]).map(|(_, _, is_before_restart)| is_before_restart);
    let end = json!({"terminated": {"exitCode": 3, "finishedAt": "2024-05-01T11:59:00Z"}});
    assert_eq!(
        words(&json!({"restartCount": 4, "state": end, "lastState": end})),
        Some(false)
    );
    assert_eq!(words(&json!({"restartCount": 0, "state": end})), Some(false));
    assert_eq!(
        words(&json!({"restartCount": 4, "lastState": end, "state": {"waiting": {"reason": "CrashLoopBackOff"}}})),
        Some(true)
    );
    assert_eq!(
        words(&json!({"restartCount": 4, "lastState": end, "state": {"running": {}}})),
        Some(true)
    );
    assert_eq!(words(&json!({"state": {"running": {}}})), None);
    let unstarted = json!({"terminated": {"exitCode": 128, "reason": "StartError"}});
    assert_eq!(words(&json!({"restartCount": 1, "state": unstarted})), None);
}

#[test]
fn a_failed_init_container_has_last_words() {
    let mut pod = pending(&json!([]));
    pod["status"]["initContainerStatuses"] = json!([{"name": "migrate", "state": {"terminated": {"exitCode": 1}}}]);
    let words = last_words(&[pod]);
    assert_eq!(words, Some(("web-5d-x".to_owned(), "migrate".to_owned(), false)));
}

#[test]
fn pods_of_the_newest_version_are_asked_first() {
    let crash = looping(&json!({"exitCode": 1}));
    let mut old = crash.clone();
    old["metadata"] = json!({"name": "web-4c-a", "uid": "o", "ownerReferences": [{"uid": "web-4c"}]});
    let mut ready = crash.clone();
    ready["metadata"]["name"] = json!("web-5d-a");
    ready["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    let pods = [old, ready, crash];
    assert_eq!(last_words(&pods).unwrap().0, "web-5d-x");
    let deployment = deployment();
    let around = Around {
        replica_sets: &[set("web-5d", "2"), set("web-4c", "1")],
        pods: &pods,
        ..Around::default()
    };
    let asked = witnesses(&deployment, &around, now());
    assert_eq!(asked.maker["metadata"]["name"], "web-5d");
    assert_eq!(asked.pod.unwrap()["metadata"]["name"], "web-5d-x");
}

#[test]
fn a_probe_that_writes_nothing_is_told_too() {
    let running = pod(&json!({"state": {"running": {}}, "ready": false}));
    for message in ["Readiness probe failed: ", "Readiness probe failed:"] {
        assert_eq!(
            told(std::slice::from_ref(&running), &[of_pod("Unhealthy", message)]),
            "web-5d-x: the readiness probe of container web fails"
        );
    }
}
