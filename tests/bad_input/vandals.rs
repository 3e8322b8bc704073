//! Damage that people do to releases behind the operator's back, and changes by the operator itself, which are not
//! damage.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::process;
use testbed::wait::wait_until;

use super::api_server::{FORBIDDEN, behind_liar, behind_proxy};
use super::stage::{CONVERGED, Operator, PATIENCE, Stage, assert_says};

const ABSENT: &str = "An object of the release is absent";
const BOTH: &str = "good:small victim:small";

/// The objects of each release that the operator watches.
fn watched(operator: &Operator<'_>) -> Value {
    serde_json::from_str(&operator.ask("raw /module/resource-monitor.json")).unwrap()
}

fn wait_until_watched(operator: &Operator<'_>, module: &str, expected: &Value) {
    let look = || {
        let watched = watched(operator);
        if watched[module] == *expected {
            Ok(Some(()))
        } else {
            Err(watched.to_string())
        }
    };
    wait_until(PATIENCE, &format!("{module} to be watched as {expected}"), look).unwrap();
}

/// Starts an operator and waits until it watches the objects of both modules.
fn start(stage: &Stage) -> Operator<'_> {
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    for module in ["good", "victim"] {
        let object = format!("{}/ConfigMap/{module}", stage.namespace().name());
        wait_until_watched(&operator, module, &json!([object]));
    }
    operator
}

/// The number of the newest revision of a release.
fn revision(stage: &Stage, module: &str) -> String {
    let selector = format!("owner=helm,name={module},status!=superseded");
    stage.kubectl(&format!(
        "get secrets -l {selector} -o=jsonpath={{.items[*].metadata.labels.version}}"
    ))
}

fn absences(stage: &Stage, module: &str) -> String {
    let namespace = stage.namespace().name();
    format!(
        "addon_operator_modules_absent_resources_total{{module=\"{module}\",resource=\"{namespace}/ConfigMap/{module}\"}}"
    )
}

#[test]
fn what_vanishes_is_back_within_seconds() {
    let stage = Stage::build("vanished");
    let operator = start(&stage);
    stage.kubectl("delete configmap good victim");
    stage.wait_for_sizes(BOTH);
    let namespace = stage.namespace().name();
    for module in ["good", "victim"] {
        let told = operator.wait_for(&[ABSENT, &format!("\"module\":\"{module}\"")]);
        assert_says(&told, &[&format!("{namespace}/ConfigMap/{module}"), "\"times\":1"]);
    }

    stage.kubectl("label configmap good heritage-");
    let look = || {
        let label = stage.kubectl("get configmap good -o=jsonpath={.metadata.labels.heritage}");
        Ok::<_, String>((label == "addon-operator").then_some(()))
    };
    wait_until(PATIENCE, "the label", look).unwrap();
    operator.wait_for_answer(
        "/metrics",
        200,
        &[
            &format!("{} 2\n", absences(&stage, "good")),
            &format!("{} 1\n", absences(&stage, "victim")),
        ],
    );
    assert_eq!(
        (revision(&stage, "good"), revision(&stage, "victim")),
        ("3".to_owned(), "2".to_owned())
    );
    operator.stop();
}

#[test]
fn a_release_that_somebody_uninstalls_is_installed_again() {
    let stage = Stage::build("uninstalled");
    let operator = start(&stage);
    let mut helm = process::command(stage.namespace().plane().program(Part::Helm3));
    helm.args(["uninstall", "victim", "--namespace", stage.namespace().name()]);
    helm.arg("--kubeconfig").arg(stage.namespace().kubeconfig(User::Admin));
    process::run(helm, None).unwrap();
    let redeployed = "addon_operator_modules_helm_release_redeployed_total{module=\"victim\"} 1\n";
    operator.wait_for_answer("/metrics", 200, &[redeployed]);
    stage.wait_for_sizes(BOTH);
    assert_says(
        &operator.wait_for(&["unexpected status"]),
        &["\"status\":\"absent\"", "\"module\":\"victim\""],
    );
    operator.stop();
}

#[test]
fn what_we_take_away_ourselves_is_no_damage() {
    let stage = Stage::build("ourselves");
    stage.write(
        "modules/020-victim/templates/b.yaml",
        "{{ if eq .Values.victim.size \"small\" }}\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {size: some}\n{{ end }}\n",
    );
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let namespace = stage.namespace().name();
    let both = [
        format!("{namespace}/ConfigMap/extra"),
        format!("{namespace}/ConfigMap/victim"),
    ];
    wait_until_watched(&operator, "victim", &json!(both));
    stage.configure(&json!({"victim": "size: large"}));
    stage.wait_for_sizes("good:small victim:large");
    wait_until_watched(&operator, "victim", &json!([format!("{namespace}/ConfigMap/victim")]));
    stage.configure(&json!({"victim": "size: large", "goodEnabled": "false"}));
    stage.wait_for_sizes("victim:large");
    // Before the converge ends, the converge itself may find that the object is missing, and then no watch reports it.
    operator.wait_for(&[CONVERGED, "ReloadAll"]);
    // The watch reports the deletion, although the objects were watched long before.
    stage.kubectl("delete configmap victim");
    stage.wait_for_sizes("victim:large");
    operator.wait_for_answer("/metrics", 200, &[&format!("{} 1\n", absences(&stage, "victim"))]);
    assert_eq!(operator.records(&[ABSENT]).len(), 1);
    assert!(operator.records(&["unexpected status"]).is_empty());
    assert_eq!(revision(&stage, "victim"), "3");
    operator.stop();
}

#[test]
fn what_is_in_the_hands_of_people_is_left_alone_until_they_give_it_back() {
    let stage = Stage::build("people");
    let operator = start(&stage);
    let label = |state: &str| {
        let label = format!("maintenance.deckhouse.io/no-resource-reconciliation={state}");
        stage.kubectl(&format!("label secret sh.helm.release.v1.good.v1 {label} --overwrite"));
    };
    label("true");
    wait_until_watched(&operator, "good", &json!("No monitor"));
    stage.kubectl("delete configmap good victim");
    stage.wait_for_sizes("victim:small");
    operator.wait_for_answer("/metrics", 200, &[&format!("{} 1\n", absences(&stage, "victim"))]);
    assert_eq!(operator.records(&[ABSENT]).len(), 1);
    label("false");
    stage.wait_for_sizes(BOTH);
    operator.stop();
}

#[test]
fn what_vanishes_while_nobody_can_see_it_is_noticed_afterwards() {
    let (stage, mut proxy) = behind_proxy("unseen");
    proxy.open();
    let operator = start(&stage);
    proxy.close();
    operator.wait_for(&["API server cannot be reached"]);
    stage.kubectl("delete configmap victim");
    proxy.open();
    stage.wait_for_sizes(BOTH);
    operator.stop();
    // A restarted operator finds a deletion by itself too.
    stage.kubectl("delete configmap victim");
    let operator = stage.start();
    stage.wait_for_sizes(BOTH);
    operator.stop();
}

#[test]
fn nothing_is_restored_by_an_operator_that_was_told_not_to() {
    let mut stage = Stage::build("off");
    stage.set("ADDON_OPERATOR_DRIFT", "off");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("delete configmap victim");
    stage.configure(&json!({"good": "size: large"}));
    stage.wait_for_sizes("good:large");
    // A second upgrade takes longer than a repair would.
    stage.configure(&json!({"good": "size: small"}));
    stage.wait_for_sizes("good:small");
    assert!(operator.records(&[ABSENT]).is_empty());
    operator.stop();
}

/// Forbids listing ConfigMaps by label, which the watches of releases need.
fn forbidden(request: &str) -> Option<&'static str> {
    let by_labels = request.starts_with("GET /api/v1/namespaces/")
        && request.contains("/configmaps?")
        && request.contains("labelSelector=");
    by_labels.then_some(FORBIDDEN)
}

#[test]
fn a_kind_that_we_may_not_watch_is_named_once_and_left_to_runs() {
    let (stage, proxy, _server) = behind_liar("forbidden");
    proxy.lie(Some(forbidden));
    let operator = stage.start();
    let told = operator.wait_for(&["objects of this kind are not watched"]);
    assert_says(&told, &["\"kind\":\"ConfigMap\"", "allow the verb", "'configmaps'"]);
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("delete configmap victim");
    stage.configure(&json!({"good": "size: large"}));
    stage.wait_for_sizes("good:large");
    stage.configure(&json!({"good": "size: large", "victim": "size: large"}));
    stage.wait_for_sizes("good:large victim:large");
    assert_eq!(operator.records(&["objects of this kind are not watched"]).len(), 1);
    assert!(operator.records(&[ABSENT]).is_empty());
    operator.wait_for_answer("/readyz", 200, &["done"]);
    operator.stop();
}
