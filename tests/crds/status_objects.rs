//! Status objects: kubectl waits for modules, and each write has a reason.

use addon_core::digest::Digest;
use serde_json::{Value, json};
use testbed::audit::{Mark, Records};
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Stage};
use super::world::PATIENCE;

const CRDS: &str = "charts/addon-operator/crds/status-objects.yaml";
/// The longest wait of a kubectl. The wait of a test for its conditions is as long.
const WAIT: &str = "--timeout=60s";

/// A stage in whose cluster the kinds of status objects are served.
fn build(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    let apply = ["apply", "--server-side", "--filename", CRDS];
    stage.namespace().kubectl_as(User::Admin).run(apply).unwrap();
    let crds = ["crd/modules.addon-operator.io", "crd/operators.addon-operator.io"];
    let wait = ["wait", "--for=condition=Established", WAIT, crds[0], crds[1]];
    // Until a CRD has conditions, kubectl fails at once.
    let established = || stage.namespace().kubectl(wait).map(Some);
    wait_until(PATIENCE, "the kinds of status objects", established).unwrap();
    stage
}

impl Stage {
    /// The status of a module's object, once it fits.
    fn module(&self, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let look = || {
            let found = self.namespace().object("module", name).unwrap();
            let status = found.map(|mut found| found["status"].take()).unwrap_or_default();
            if fits(&status) {
                Ok(Some(status))
            } else {
                Err(status.to_string())
            }
        };
        wait_until(PATIENCE, &format!("the object of {name} to tell: {what}"), look).unwrap()
    }

    fn wait_for_condition(&self, object: &str, condition: &str) {
        // Without the first, kubectl refuses to wait for an object that is not there yet.
        for state in ["create".to_owned(), format!("condition={condition}")] {
            self.kubectl(&format!("wait --for={state} {object} {WAIT}"));
        }
    }

    fn mark(&self) -> Mark {
        self.namespace().plane().audit().mark().unwrap()
    }

    /// The operator's requests for status objects since the mark.
    fn requests(&self, since: Mark) -> Vec<String> {
        let records = self.namespace().plane().audit().since(since).unwrap();
        let Records(records) = records.of(User::Operator).within(self.namespace().name());
        let of_objects = records
            .into_iter()
            .filter(|record| matches!(record.resource.as_str(), "modules" | "operators"));
        of_objects
            .map(|record| format!("{} {} {}", record.verb, record.resource, record.name))
            .collect()
    }
}

/// The status of a condition.
fn holds<'a>(status: &'a Value, kind: &str) -> &'a str {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("absent")
}

#[test]
fn kubectl_waits_for_modules_and_shows_them() {
    let stage = build("objects");
    stage.configure(&json!({"victim": "size: large"}));
    let operator = stage.start();
    stage.wait_for_condition("module.addon-operator.io/victim", "Ready");
    stage.wait_for_condition("operator.addon-operator.io/operator", "Ready");
    let status = stage.module("victim", "its revision", |status| status["revision"] == 1);
    assert_eq!(status["state"], "Ready");
    assert_eq!(status["health"], "Healthy");
    assert_eq!(status["version"], "0.1.0");
    assert_eq!(status["objects"], json!({"total": 1, "unhealthy": 0}));
    // As `md5sum` says of the section.
    assert_eq!(status["observedConfig"], Digest::of_bytes(b"size: large").to_string());
    let listed = stage.kubectl("get modules.addon-operator.io");
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "STATE", "HEALTH", "READY", "VERSION", "MESSAGE"]);
    assert_eq!(rows[1], ["good", "Ready", "Healthy", "True", "0.1.0"]);
    let told = stage.namespace().object("operator", "operator").unwrap().unwrap();
    assert_eq!(
        told["status"]["modules"],
        json!({"enabled": 2, "ready": 2, "stalled": 0})
    );

    // A module that is off is not waited for, and one that is gone has no object.
    stage.configure(&json!({"victim": "size: large", "victimEnabled": "false"}));
    let off = stage.module("victim", "it is off", |status| status["state"] == "Disabled");
    assert_eq!(holds(&off, "Ready"), "absent");
    operator.stop();
    fs_err::remove_dir_all(stage.path("modules/020-victim")).unwrap();
    let operator = stage.start();
    let look = || match stage.namespace().object("module", "victim").unwrap() {
        None => Ok(Some(())),
        Some(found) => Err(found.to_string()),
    };
    wait_until(PATIENCE, "the object of a module that is gone to be gone", look).unwrap();
    operator.stop();
}

#[test]
fn a_failure_is_stalled_without_the_secrets_of_its_values() {
    let stage = build("stalled");
    let broken = "{{ fail (printf \"no entry with %s\" .Values.victim.password) }}";
    let template = format!("{{{{- if .Values.victim.password }}}}{broken}{{{{- end }}}}\n");
    stage.write("modules/020-victim/templates/b.yaml", &template);
    let operator = stage.start();
    stage.wait_for_condition("module.addon-operator.io/victim", "Ready");
    stage.configure(&json!({"victim": "password: open-sesame"}));
    stage.wait_for_condition("module.addon-operator.io/victim", "Stalled");
    let status = stage.module("victim", "the next try", |status| {
        status["failure"]["nextTry"].is_string()
    });
    assert_eq!(holds(&status, "Ready"), "False");
    let message = status["failure"]["message"].as_str().unwrap();
    assert!(message.contains("no entry with"), "{message}");
    assert!(!status.to_string().contains("open-sesame"), "{status}");
    stage.configure(&json!({}));
    stage.wait_for_condition("module.addon-operator.io/victim", "Ready");
    operator.stop();
}

#[test]
fn the_obstacle_of_a_start_is_told_without_its_secrets() {
    let stage = build("obstacle");
    let fails = "if [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; exit; fi\n\
                 echo no entry with open-sesame >&2; exit 1\n";
    stage.write("global-hooks/hook.sh", &format!("#!/bin/sh\n{fails}"));
    stage.configure(&json!({"global": "password: open-sesame"}));
    let operator = stage.start();
    let look = || {
        let found = stage.namespace().object("operator", "operator").unwrap();
        let status = found.map(|found| found["status"].to_string()).unwrap_or_default();
        if status.contains("no entry with") {
            Ok(Some(status))
        } else {
            Err(status)
        }
    };
    let status = wait_until(
        PATIENCE,
        "the object of the operator to tell the error of the hook",
        look,
    )
    .unwrap();
    assert!(!status.contains("open-sesame"), "{status}");
    operator.stop();
}

#[test]
fn a_converge_of_fifty_modules_writes_each_twice_at_most() {
    let stage = build("fifty");
    let names: Vec<String> = (100..148).map(|order| format!("m{order}")).collect();
    let mut data = serde_json::Map::new();
    for name in &names {
        stage.add_module(&format!("{}-{name}", &name[1..]));
        data.insert(format!("{name}Enabled"), json!("true"));
    }
    stage.configure(&Value::Object(data));
    let mark = stage.mark();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let all = ["good", "victim"].into_iter().chain(names.iter().map(String::as_str));
    for name in all.clone() {
        stage.module(name, "it is ready", |status| holds(status, "Ready") == "True");
    }
    operator.stop();
    let requests = stage.requests(mark);
    for name in all {
        let writes = requests
            .iter()
            .filter(|request| **request == format!("patch modules {name}"));
        assert!((1..=2).contains(&writes.count()), "{name}: {requests:?}");
    }
}

#[test]
fn a_restart_with_nothing_changed_writes_no_module() {
    let stage = build("unwritten");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    for name in ["good", "victim"] {
        stage.wait_for_condition(&format!("module.addon-operator.io/{name}"), "Ready");
    }
    stage.wait_for_condition("operator.addon-operator.io/operator", "Ready");
    operator.stop();
    let mark = stage.mark();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    // This edit comes after all that the start could have written.
    stage.configure(&json!({"good": "size: large"}));
    stage.module("good", "its second revision", |status| status["revision"] == 2);
    let requests = stage.requests(mark);
    // That of the operator tells the restart.
    let mut of_modules = requests.iter().filter(|request| request.contains(" modules "));
    assert!(
        of_modules.all(|request| ["list modules ", "patch modules good"].contains(&request.as_str())),
        "{requests:?}"
    );
    operator.stop();
}
