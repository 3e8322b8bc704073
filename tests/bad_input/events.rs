//! The Kubernetes Events about all these failures, and that no Event is written when nothing new has happened.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::{Value, json};
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage};

/// Reasons and notes of the Events of the operator, sorted.
fn told(stage: &Stage) -> Vec<String> {
    let text = stage.kubectl("get events.events.k8s.io -o=json");
    let list: Value = serde_json::from_str(&text).unwrap();
    let ours = list["items"].as_array().unwrap().iter();
    let ours = ours.filter(|event| event["reportingController"] == "addon-operator");
    let mut lines: Vec<_> = ours
        .map(|event| {
            format!(
                "{} {}",
                event["reason"].as_str().unwrap(),
                event["note"].as_str().unwrap()
            )
        })
        .collect();
    lines.sort();
    lines
}

/// Waits for an Event that begins with this text, and returns it.
fn wait_for(stage: &Stage, beginning: &str) -> String {
    let look = || {
        let told = told(stage);
        let found = told.iter().find(|line| line.starts_with(beginning)).cloned();
        found.map(Some).ok_or_else(|| told.join("\n"))
    };
    wait_until(PATIENCE, beginning, look).unwrap()
}

#[test]
fn what_changes_is_told_and_what_stays_is_not() {
    let mut stage = Stage::build("events");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let together = "ModuleReady modules are ready, their releases are installed or upgraded: good, victim";
    wait_for(&stage, together);
    operator.stop();
    let after_install = told(&stage);
    assert_eq!(after_install.len(), 1, "{after_install:#?}");

    // Nothing new has happened, so no Event and nothing else is written.
    let audit = stage.namespace().plane().audit();
    let mark = audit.mark().unwrap();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    let writes = audit.since(mark).unwrap().of(User::Operator);
    let writes = writes.within(stage.namespace().name()).mutating();
    let writes = writes.that(|record| record.resource != "leases");
    assert!(writes.is_empty(), "{writes}");

    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"good": "just a text", "victimEnabled": "false"}));
    wait_for(&stage, "ConfigInvalid key 'good' of the ConfigMap cannot be used");
    wait_for(&stage, "ModuleDisabled module 'victim' is disabled by ConfigMap");
    wait_for(&stage, "ModuleDeleted module 'victim' is removed");
    stage.configure(&json!({}));
    wait_for(&stage, "ModuleEnabled module 'victim' is enabled by ");
    operator.stop();

    stage.write("modules/010-good/templates/b.yaml", "{{ fail \"oh no\" }}\n");
    let operator = stage.start();
    let failed = wait_for(&stage, "ModuleFailed module 'good' failed, step ");
    assert!(failed.contains("oh no"), "{failed}");
    operator.stop();

    stage.set("ADDON_OPERATOR_EVENTS", "false");
    let before = told(&stage);
    stage.write("modules/020-victim/templates/b.yaml", "{{ fail \"oh no\" }}\n");
    let operator = stage.start();
    operator.wait_for(&["ModuleRun failed", "victim"]);
    operator.stop();
    assert_eq!(told(&stage), before);
}
