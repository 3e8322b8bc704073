//! Commands by which people ask the cluster about a module, with their own rights and without an operator.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::plane::User;
use testbed::process;

use super::world::{CHART, TEMPLATE, World};

const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {word: {{ .Values.one.password }}}\n";
/// An object that the API server refuses, and whose refusal quotes the password.
const REFUSED: &str = "{{ if .Values.one.bad }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.one.password }}}\n{{ end }}\n";

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 0\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n";

async fn world(prefix: &str) -> World {
    let mut world = World::new(prefix).await;
    let files = [
        ("Chart.yaml", CHART),
        ("templates/a.yaml", TEMPLATE),
        ("templates/b.yaml", SECRET),
        ("templates/c.yaml", REFUSED),
    ];
    world.module("one", &files).await;
    world
}

fn values(x: &str, password: &str, bad: bool) -> Value {
    json!({"one": {"x": x, "password": password, "bad": bad}})
}

/// Whether a command about module `one` succeeds, and all that it prints.
fn typed(world: &World, kubeconfig: &Path, command: &str) -> (bool, String) {
    let output = process::command(env!("CARGO_BIN_EXE_addon-operator"))
        .args(command.split(' '))
        .args(["--namespace", world.namespace.name()])
        .arg("--kube-config")
        .arg(kubeconfig)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), text.concat())
}

/// The answer to a person with all rights.
fn answer(world: &World, command: &str) -> String {
    let (is_good, text) = typed(world, &world.namespace.kubeconfig(User::Admin), command);
    assert!(is_good, "{text}");
    text
}

/// The kubeconfig of a user without any rights.
fn stranger(world: &World, folder: &TempDir) -> PathBuf {
    let token = world.kubectl("create token default");
    let text = fs::read_to_string(world.namespace.kubeconfig(User::Operator)).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"]["token"] = token.trim().into();
    let path = folder.path().join("stranger.kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_module_and_the_difference_of_two_revisions_are_told() {
    let world = world("history").await;
    assert_eq!(answer(&world, "module history one"), "Module 'one' has no release\n");
    world.sync(values("a", "first-word", false)).await.unwrap();
    world.sync(values("b", "second-word", false)).await.unwrap();
    world.sync(values("b", "Third_Word", true)).await.unwrap_err();

    let said = answer(&world, "module history one");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[1].starts_with("3 ") && lines[1].contains("failed"), "{said}");
    assert!(
        lines[1].contains("Upgrade \"one\" failed") && lines[1].contains("<masked>"),
        "{said}"
    );
    assert!(
        lines[2].starts_with("2 ") && lines[2].contains("deployed") && lines[2].contains("one-0.1.0"),
        "{said}"
    );
    assert!(lines[3].starts_with("1 ") && lines[3].contains("superseded"), "{said}");
    assert!(lines.len() == 4 && !said.contains("Third_Word"), "{said}");
    let past: Value = serde_json::from_str(&answer(&world, "module history one -o json")).unwrap();
    let statuses: Vec<&Value> = past.as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["failed", "deployed", "superseded"]);

    let said = answer(&world, "module diff one 1 2");
    let expected = "revision 1 → revision 2\n     ~ Secret key\n         stringData.word: changes, and is not shown\n     \
                    ~ ConfigMap shown\n         data.x: a → b\n";
    assert_eq!(said, expected);
    let said = answer(&world, "module diff one 2");
    assert!(
        said.starts_with("revision 2 → revision 3\n") && said.contains("+ ConfigMap "),
        "{said}"
    );
    let document: Value = serde_json::from_str(&answer(&world, "module diff one 2 1 -o json")).unwrap();
    assert_eq!(
        document["objects"][1]["fields"][0],
        json!({"path": "data.x", "before": "b", "after": "a"})
    );

    let (is_good, said) = typed(&world, &world.namespace.kubeconfig(User::Admin), "module diff one 7");
    assert!(
        !is_good && said.contains("no record of revision 7\nhint: `addon-operator module history one`"),
        "{said}"
    );

    let folder = tempfile::tempdir().unwrap();
    for command in ["module history one", "module diff one 1", "module events one"] {
        let (is_good, said) = typed(&world, &stranger(&world, &folder), command);
        let hint = format!(
            "hint: allow the verb 'list' on 'secrets' in namespace '{}' to the user",
            world.namespace.name()
        );
        assert!(!is_good && said.contains(&hint), "{said}");
    }
}

/// Creates an Event about an object.
fn event(world: &World, name: &str, about: &Value, time: &str, message: &str) {
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, "reason": "Told",
        "type": "Warning", "message": message, "lastTimestamp": time, "count": 3,
    });
    let kubectl = world.namespace.kubectl_as(User::Admin);
    kubectl.feed(["create", "--filename=-"], &event.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_about_a_module_and_its_pods_are_told_the_newest_last() {
    let mut world = world("events").await;
    assert_eq!(answer(&world, "module events one"), "No Event is about module 'one'\n");
    world.module("one", &[("templates/d.yaml", DEPLOYMENT)]).await;
    world.sync(values("a", "first-word", false)).await.unwrap();
    let owner =
        |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid}]);
    let deployment = world.object("deployments", "web");
    let uid = deployment["metadata"]["uid"].as_str().unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine", "ownerReferences": owner("Deployment", "web", uid)},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let kubectl = world.namespace.kubectl_as(User::Admin);
    kubectl.feed(["create", "--filename=-"], &pod.to_string()).unwrap();

    let about = |kind: &str, name: &str| json!({"kind": kind, "name": name, "namespace": world.namespace.name()});
    for (name, object, hour, message) in [
        ("b", about("Pod", "mine"), 2, "refused first-word"),
        ("a", about("ConfigMap", "shown"), 1, "is shown"),
        ("c", about("ConfigMap", "addon-operator"), 3, "module 'one' failed"),
        ("d", about("ConfigMap", "addon-operator"), 4, "module 'two' failed"),
        ("e", about("Pod", "other"), 5, "of another"),
    ] {
        event(&world, name, &object, &format!("2026-01-01T0{hour}:00:00Z"), message);
    }
    let said = answer(&world, "module events one");
    let told: Vec<&str> = said.lines().filter(|line| line.contains("Told")).collect();
    assert_eq!(told.len(), 3, "{said}");
    for (line, expected) in told.iter().zip([
        "is shown (3 times)",
        "refused <masked> (3 times)",
        "module 'one' failed",
    ]) {
        assert!(line.contains(expected), "{said}");
    }
    let said = answer(&world, "module events one --tail 1 -o json");
    assert!(
        !said.contains("is shown") && said.contains("\"type\":\"Warning\""),
        "{said}"
    );
}
