//! `kubectl logs` and `kubectl exec` through the API server.

use serde_json::json;
use testbed::kubectl::KubectlError;
use testbed::plane::User;

use super::stage::{create, once, phase, stage};

#[test]
fn a_command_runs_beside_the_container_as_its_user() {
    let namespace = stage().plane.namespace("exec").unwrap();
    let env = json!([{ "name": "OWN", "value": "of the pod" }]);
    create(&namespace, "seen", "sleep inf", &json!({ "env": env }), &json!({}));
    once(&namespace, "seen", "to run", |pod| phase(pod) == "Running");
    let admin = namespace.kubectl_as(User::Admin);
    let script = "id -u; echo $OWN; cat; cat /proc/1/comm";
    let said = admin
        .feed(["exec", "-i", "seen", "--", "sh", "-c", script], "from here\n")
        .unwrap();
    assert_eq!(said, "1001\nof the pod\nfrom here\nsh\n");
    let many = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done";
    let said = admin.run(["exec", "seen", "--", "sh", "-c", many]).unwrap();
    assert_eq!(said.len(), 220_000, "all of a long output");

    let refused = admin
        .run(["exec", "seen", "--", "sh", "-c", "echo why >&2; exit 7"])
        .unwrap_err();
    let KubectlError::Refused { said, .. } = refused else {
        unreachable!("kubectl is there")
    };
    assert!(said.contains("why") && said.contains("exit code 7"), "{said}");
    let absent = admin.run(["exec", "seen", "--", "/bin/none"]).unwrap_err().to_string();
    assert!(absent.contains("cannot run /bin/none"), "{absent}");
}

#[test]
fn a_log_is_followed_to_its_end_and_kept_for_one_run_more() {
    let namespace = stage().plane.namespace("logs").unwrap();
    let script = "echo one; echo two; until test -e /tmp/go; do sleep 0.05; done; echo three; exit 1";
    create(&namespace, "seen", script, &json!({}), &json!({}));
    once(&namespace, "seen", "to run", |pod| phase(pod) == "Running");
    let follow = std::thread::scope(|scope| {
        let follow = scope.spawn(|| namespace.kubectl(["logs", "--follow", "--tail=1", "seen"]).unwrap());
        namespace.kubectl(["exec", "seen", "--", "touch", "/tmp/go"]).unwrap();
        follow.join().unwrap()
    });
    assert!(follow.ends_with("three\n"), "{follow}");
    once(&namespace, "seen", "to run again", |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"] == 1
    });
    assert_eq!(
        namespace.kubectl(["logs", "--previous", "seen"]).unwrap(),
        "one\ntwo\nthree\n"
    );
    assert!(!namespace.kubectl(["logs", "seen"]).unwrap().contains("three"));
}
