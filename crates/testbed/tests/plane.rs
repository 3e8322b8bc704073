//! The properties of the shared control plane on which tests rely. The tests share one, as those of the operator do.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::plane::{ControlPlane, User};
use testbed::reader::Only;
use testbed::shared;
use testbed::wait::wait_until;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn the_operator_is_a_user_of_its_own_and_may_do_anything() {
    let namespace = shared::plane().namespace("rights").unwrap();
    let operator = namespace.kubectl_as(User::Operator);
    let who = operator
        .run(["auth", "whoami", "--output=jsonpath={.status.userInfo}"])
        .unwrap();
    assert!(
        who.contains("testbed:operator") && !who.contains("system:masters"),
        "{who}"
    );
    assert_eq!(
        operator
            .run(["auth", "can-i", "*", "*", "--all-namespaces"])
            .unwrap()
            .trim(),
        "yes"
    );
}

#[test]
fn objects_are_read_without_a_program() {
    let namespace = shared::plane().namespace("reads").unwrap();
    let make = |name: &str, label: &str| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "colour": label } }, "data": { "word": name },
        });
        let admin = namespace.kubectl_as(User::Admin);
        admin.feed(["create", "--filename=-"], &object.to_string()).unwrap();
    };
    make("one", "red");
    make("two", "blue");
    let one = namespace.object("configmap", "one").unwrap().unwrap();
    assert_eq!(one["data"]["word"], "one");
    assert_eq!(namespace.object("configmap", "three").unwrap(), None);
    let names = |objects: Vec<Value>| -> Vec<Value> {
        let names = objects.into_iter().map(|mut object| object["metadata"]["name"].take());
        names.collect()
    };
    let blue = namespace.objects("configmaps", Only::Labels("colour=blue")).unwrap();
    assert_eq!(names(blue), ["two"]);
    let named = namespace
        .objects("configmaps", Only::Fields("metadata.name=one"))
        .unwrap();
    assert_eq!(names(named), ["one"]);
    let all = namespace.metadata("configmaps", Only::All).unwrap();
    assert!(all.iter().all(|object| object["data"].is_null()), "{all:?}");
    assert!(
        names(all).len() > 2,
        "there is one for the certificate of the API server, too"
    );
    let none = namespace.metadata("secrets", Only::Labels("colour=green")).unwrap();
    assert!(none.is_empty(), "{none:?}");
    let unknown = namespace.object("unicorn", "one").unwrap_err().to_string();
    assert!(unknown.contains("unicorn"), "{unknown}");
}

#[test]
fn rights_are_checked() {
    let namespace = shared::plane().namespace("rights").unwrap();
    let stranger = ["get", "secrets", "--as=stranger"];
    let refused = namespace.kubectl(stranger).unwrap_err().to_string();
    assert!(refused.contains("forbidden"), "{refused}");
}

#[test]
fn tokens_of_service_accounts_are_honoured() {
    let namespace = shared::plane().namespace("accounts").unwrap();
    let token = namespace.kubectl(["create", "token", "default"]).unwrap();
    let token = format!("--token={}", token.trim());
    let who = namespace
        .kubectl([
            "auth",
            "whoami",
            &token,
            "--output=jsonpath={.status.userInfo.username}",
        ])
        .unwrap();
    assert_eq!(who, format!("system:serviceaccount:{}:default", namespace.name()));
}

#[test]
fn controllers_work() {
    let namespace = shared::plane().namespace("controllers").unwrap();
    namespace
        .kubectl(["create", "deployment", "web", "--image=web", "--replicas=2"])
        .unwrap();
    let pods = wait_until(PATIENCE, "two pods of the deployment", || {
        let pods = namespace
            .kubectl(["get", "pods", "--output=name"])
            .map_err(|error| error.to_string())?;
        if pods.lines().count() == 2 {
            Ok(Some(pods))
        } else {
            Err(pods)
        }
    });
    assert!(pods.unwrap().contains("pod/web-"));
}

#[test]
fn namespaces_are_apart_and_stay_when_no_pod_of_theirs_runs() {
    let plane = shared::plane();
    let (one, other) = (plane.namespace("twin").unwrap(), plane.namespace("twin").unwrap());
    assert_ne!(one.name(), other.name());
    one.kubectl(["create", "configmap", "mine"]).unwrap();
    assert!(other.kubectl(["get", "configmap", "mine"]).is_err());

    let (name, kubeconfig) = (one.name().to_owned(), one.kubeconfig(User::Operator));
    assert!(kubeconfig.exists());
    drop(one);
    assert!(!kubeconfig.exists());
    let phase = plane.kubectl(["get", "namespace", &name, "--output=jsonpath={.status.phase}"]);
    assert_eq!(phase.unwrap(), "Active");
}

#[test]
fn the_evidence_shows_objects_events_and_the_log_of_the_operator() {
    let namespace = shared::plane().namespace("evidence").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs_err::write(&log, "the last thing it said\n").unwrap();
    namespace.show_on_panic("log of the operator", &log);
    namespace
        .kubectl(["create", "deployment", "culprit", "--image=web"])
        .unwrap();
    wait_until(PATIENCE, "an event of the deployment", || {
        let evidence = namespace.evidence();
        if evidence.contains("ScalingReplicaSet") {
            Ok(Some(()))
        } else {
            Err(evidence)
        }
    })
    .unwrap();
    let evidence = namespace.evidence();
    assert!(evidence.contains("deployment.apps/culprit"), "{evidence}");
    assert!(
        evidence.contains("--- log of the operator\nthe last thing it said\n"),
        "{evidence}"
    );
}

#[test]
fn the_audit_log_counts_exactly_what_a_user_did_in_a_namespace() {
    let plane = shared::plane();
    let namespace = plane.namespace("audit").unwrap();
    let operator = namespace.kubectl_as(User::Operator);
    operator.run(["create", "configmap", "before"]).unwrap();

    let mark = plane.audit().mark().unwrap();
    for name in ["one", "two", "three"] {
        operator.run(["create", "configmap", name]).unwrap();
    }
    operator.run(["get", "configmap", "one"]).unwrap();
    operator.run(["create", "configmap", "one"]).unwrap_err();
    operator.run(["delete", "configmap", "two"]).unwrap();
    namespace.kubectl(["create", "configmap", "of-another-user"]).unwrap();
    plane
        .namespace("elsewhere")
        .unwrap()
        .kubectl_as(User::Operator)
        .run(["create", "configmap", "there"])
        .unwrap();

    let all = plane.audit().since(mark).unwrap();
    let ours = all.clone().of(User::Operator).within(namespace.name()).mutating();
    let seen: Vec<_> = ours
        .0
        .iter()
        .map(|it| (it.verb.as_str(), it.resource.as_str(), it.name.as_str(), it.code))
        .collect();
    let expected = [
        ("create", "configmaps", "one", 201),
        ("create", "configmaps", "two", 201),
        ("create", "configmaps", "three", 201),
        ("create", "configmaps", "one", 409),
        ("delete", "configmaps", "two", 200),
    ];
    assert_eq!(seen, expected, "{ours}");
    assert_eq!(ours.clone().deleting().len(), 1);
    assert_eq!(ours.that(|record| !record.succeeded()).len(), 1);
    let ours = all.of(User::Operator).within(namespace.name());
    assert!(ours.0.iter().all(|record| record.user_agent.starts_with("kubectl/")));
}

#[test]
fn a_mark_has_nothing_behind_it() {
    let plane = shared::plane();
    let namespace = plane.namespace("mark").unwrap();
    namespace
        .kubectl_as(User::Operator)
        .run(["create", "configmap", "early"])
        .unwrap();
    let mark = plane.audit().mark().unwrap();
    let later = plane
        .audit()
        .since(mark)
        .unwrap()
        .of(User::Operator)
        .within(namespace.name());
    assert!(later.is_empty(), "{later}");
    let early = plane
        .audit()
        .since(plane.audit().beginning())
        .unwrap()
        .of(User::Operator)
        .within(namespace.name());
    assert_eq!(early.mutating().len(), 1);
}

#[test]
fn another_process_may_join_and_leave() {
    let plane = shared::plane();
    let joined = ControlPlane::join(plane.folder()).unwrap();
    assert_eq!(joined.server(), plane.server());
    drop(joined);
    assert_eq!(plane.kubectl(["get", "--raw", "/readyz"]).unwrap(), "ok");
}
