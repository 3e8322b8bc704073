//! Slow, broken and contending Bundles, and deaths of the operator.

use std::time::{Duration, Instant};

use serde_json::json;
use testbed::registry::guard::Guard;
use testbed::wait::wait_until;

use super::world::{Home, PATIENCE, operator, push, push_template, ready_of, registry};

#[test]
fn two_bundles_of_one_release_are_refused() {
    let _turn = operator().share();
    let (home, other) = (Home::new(), Home::new());
    home.admit(other.name(), "werf");
    let repo = format!("{}/app", home.name());
    push(&repo, "1.0.0", "one");
    push(&repo, "2.0.0", "two");
    home.bundle("app", &repo, "1.0.0", &json!({}));
    home.wait_ready("app");
    other.bundle("app", &repo, "2.0.0", &json!({"project_namespace": home.name()}));
    let refused = other.wait_for_reason("app", "Refused");
    assert_eq!(ready_of(&refused)["status"], "False");
    let message = other.wait_for_event("app", "Refused");
    assert!(
        message.starts_with(&format!("Bundle {}/app has the release", home.name())),
        "{message}"
    );
    home.wait_for_text("app", "one");
    // When the first one is gone the second has its place.
    home.namespace.kubectl(["delete", "bndl", "app"]).unwrap();
    home.wait_for_text("app", "two");
    other.wait_ready("app");
}

#[test]
fn a_broken_chart_is_told_and_the_deployed_version_stays() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    let good = push(&repo, "1.0.0", "one");
    home.bundle("app", &repo, "1.*.*", &json!({}));
    home.wait_ready("app");
    push_template(&repo, "1.1.0", "{{ fail \"no colour is set\" }}");
    let failed = home.wait_for_reason("app", "DeployFailed");
    assert_eq!(ready_of(&failed)["status"], "False");
    assert!(
        ready_of(&failed)["message"]
            .as_str()
            .unwrap()
            .contains("no colour is set"),
        "{failed}"
    );
    assert_eq!(failed["status"]["deploy"], json!({"digest": good, "version": "1.0.0"}));
    assert_eq!(failed["status"]["target"]["version"], "1.1.0");
    assert!(home.wait_for_event("app", "DeployFailed").contains("no colour is set"));
    home.wait_for_text("app", "one");
    // The next version is deployed at once, however long the failed one would wait.
    push(&repo, "1.2.0", "two");
    home.wait_for_text("app", "two");
    home.wait_ready("app");
}

#[test]
fn a_slow_bundle_holds_up_no_other() {
    let _turn = operator().alone();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    let door = operator().folder().join("door");
    let (waiting, door_text) = (operator().folder().join("waiting"), door.display().to_string());
    operator().put_before_helm(&format!(
        "case \" $* \" in *' upgrade '*' slow '*) touch {}; while [ ! -e {door_text} ]; do read -t 0.1 <> <(:) || :; done ;; esac",
        waiting.display()
    ));
    home.bundle("slow", &repo, "latest", &json!({}));
    let began = || Ok::<_, String>(waiting.exists().then_some(()));
    wait_until(PATIENCE, "helm works on the slow Bundle", began).unwrap();
    let begin = Instant::now();
    for number in 0..6 {
        home.bundle(&format!("quick-{number}"), &repo, "latest", &json!({}));
    }
    for number in 0..6 {
        home.wait_ready(&format!("quick-{number}"));
    }
    println!("six Bundles beside a slow one: {:?}", begin.elapsed());
    assert_eq!(ready_of(&home.seen("slow"))["reason"], "Deploying");
    fs_err::write(&door, "").unwrap();
    home.wait_ready("slow");
    operator().put_before_helm("");
}

#[test]
fn many_bundles_of_one_repository_are_one_question() {
    let _turn = operator().share();
    let home = Home::new();
    let guard = Guard::start_plain(registry()).unwrap();
    let repo = format!("{}/app", home.name());
    push(&repo, "1.0.0", "one");
    // There is no such version, so that nothing is deployed.
    let names: Vec<String> = (0..12).map(|number| format!("app-{number}")).collect();
    for name in &names {
        let spec = json!({"registry": guard.address().to_string()});
        home.bundle(name, &repo, "2.*.*", &spec);
    }
    for name in &names {
        home.wait_for_reason(name, "CheckFailed");
    }
    guard.seen();
    let mut times = Vec::new();
    let look = || {
        let seen = guard.seen();
        let lists = seen.iter().filter(|seen| seen.path.contains("/tags/list"));
        times.extend(lists.map(|_| Instant::now()));
        Ok::<_, String>((times.len() >= 3).then_some(()))
    };
    wait_until(PATIENCE, "three questions", look).unwrap();
    // Questions for each Bundle would be a fifth of a second apart.
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] > Duration::from_secs(1), "{times:?}");
    }
}

#[test]
fn a_registry_that_nothing_can_ask_is_told() {
    let _turn = operator().alone();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    fs_err::remove_file(operator().program()).unwrap();
    home.bundle("app", &repo, "latest", &json!({}));
    let failed = home.wait_for_reason("app", "CheckFailed");
    operator().give_program();
    let message = ready_of(&failed)["message"].as_str().unwrap();
    assert!(message.starts_with("the registry could not be asked: "), "{message}");
    assert!(message.contains("No such file or directory"), "{message}");
    home.wait_ready("app");
}

#[test]
fn a_kill_in_the_middle_of_helm_heals_by_itself() {
    let _turn = operator().alone();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    operator().configure(&json!({"timeout": 15}));
    // A hook of the chart that never ends, so that helm is killed while the release is pending.
    let stuck = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {text: stuck}\n---\n\
        apiVersion: batch/v1\nkind: Job\nmetadata: {name: stuck, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\n\
        spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'registry.test/none:1'}]}}}\n";
    let pending = || {
        let selector = "--selector=owner=helm,status in (pending-install,pending-upgrade)";
        let look = || {
            let said = home
                .namespace
                .kubectl(["get", "secrets", selector, "--output=name"])
                .unwrap();
            Ok::<_, String>((!said.is_empty()).then_some(()))
        };
        wait_until(PATIENCE, "the release is pending", look).unwrap();
    };
    push_template(&repo, "latest", stuck);
    home.bundle("app", &repo, "latest", &json!({}));
    pending();
    operator().kill();
    push(&repo, "latest", "one");
    operator().start();
    home.wait_for_text("app", "one");
    home.wait_ready("app");
    // And in the middle of an upgrade.
    push_template(&repo, "latest", stuck);
    pending();
    operator().kill();
    push(&repo, "latest", "two");
    operator().start();
    home.wait_for_text("app", "two");
    home.wait_ready("app");
    operator().configure(&json!({}));
}

#[test]
fn a_release_that_another_helm_works_on_is_left_alone() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "1.0.0", "one");
    home.bundle("app", &repo, "1.*.*", &json!({}));
    home.wait_ready("app");
    // The record of a call that a person has begun.
    let record = "sh.helm.release.v1.app.v2";
    let found = home
        .namespace
        .object("secret", "sh.helm.release.v1.app.v1")
        .unwrap()
        .unwrap();
    let (release, mut labels) = (found["data"]["release"].clone(), found["metadata"]["labels"].clone());
    labels["status"] = json!("pending-upgrade");
    labels["version"] = json!("2");
    let recode = |text: &str| {
        let mut command = testbed::process::command("bash");
        let script = "base64 -d | base64 -d | gunzip | sed 's/\"status\":\"deployed\"/\"status\":\"pending-upgrade\"/; s/\"version\":1,/\"version\":2,/' | gzip | base64 -w0 | base64 -w0";
        command.args(["-c", script]);
        let output = testbed::process::run(command, Some(text.as_bytes())).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    home.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": record, "labels": labels}, "data": {"release": recode(release.as_str().unwrap())}}),
    );
    push(&repo, "1.1.0", "two");
    let failed = home.wait_for_reason("app", "DeployFailed");
    let message = ready_of(&failed)["message"].as_str().unwrap();
    assert!(message.contains("pending-upgrade by another helm"), "{message}");
    home.wait_for_text("app", "one");
    // When the person has ended it, the Bundle goes on.
    home.namespace.kubectl(["delete", "secret", record]).unwrap();
    home.wait_for_text("app", "two");
}
