//! Plans of a start: no operator runs, and the command goes through the first converge of one.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::json;
use testbed::process;

use crate::bad_input::stage::{CONVERGED, Stage, assert_says};

/// A hook that takes the number of objects that it sees for a value, and notes each run.
const COUNTS: &str = r#"#!/bin/bash
if [[ $1 == --config ]]; then
  echo '{configVersion: v1, dryRun: true, beforeHelm: 1, kubernetes: [{name: seen, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {seen: by-hook}}, executeHookOnSynchronization: false}]}'
  exit
fi
echo "${ADDON_OPERATOR_DRY_RUN:-in earnest}" >>"$(dirname "$0")/runs"
number=$(jq '.[0].snapshots.seen | length' "$BINDING_CONTEXT_PATH")
echo '{"op": "add", "path": "/counts/size", "value": "'"$number"'"}' >"$VALUES_JSON_PATCH_PATH"
"#;

/// A hook of a module without a chart.
const BARE: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nafterDeleteHelm: 1'; fi\n";
/// A hook that watches a kind that its module would bring.
const OF_ITS_OWN_KIND: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{configVersion: v1, kubernetes: [{apiVersion: rehearsed.example/v1, kind: Unheard}]}'; fi\n";
/// A cluster in which nobody listens.
const NOWHERE: &str = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}";

impl Stage {
    /// The output of a command with the variables of an operator, and with its exit code.
    pub(crate) fn typed(&self, arguments: &str) -> (Option<i32>, String) {
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(arguments.split(' '))
            .current_dir(self.path("."))
            .env_clear()
            .envs(self.environment());
        let output = process::run(command, None).unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }
}

#[test]
fn a_plan_of_a_start_needs_no_operator_and_comes_true() {
    let stage = Stage::build("rehearsed");
    stage.add_module("030-counts");
    stage.write("modules/030-counts/hooks/count.sh", COUNTS);
    stage.write(
        "modules/030-counts/templates/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'counts-{{ .Values.counts.size }}'}\n",
    );
    stage.write("modules/040-bare/hooks/hook.sh", BARE);
    stage.add_module("050-kind");
    stage.write("modules/050-kind/hooks/hook.sh", OF_ITS_OWN_KIND);
    stage.configure(&json!({"countsEnabled": "true", "bareEnabled": "true"}));
    for name in ["one", "two"] {
        stage.kubectl(&format!("create configmap {name}"));
        stage.kubectl(&format!("label configmap {name} seen=by-hook"));
    }
    let objects = stage.objects();
    let (code, said) = stage.typed("plan --start");
    let expected = [
        "1. good is switched on, and runs",
        "+ ConfigMap good",
        "victim is switched on, and runs",
        "hooks/hook.sh (beforeHelm), which has not run: its values are not known",
        "counts is switched on, and runs (ConfigMap)",
        "hooks/count.sh (beforeHelm), tried",
        "+ ConfigMap counts-2",
        "modules: 3 switched on; objects: 3 created, 0 changed, 0 deleted",
    ];
    assert_says(&said, &expected);
    assert_eq!(code, Some(2), "{said}");

    // An edit takes the place of the ConfigMap.
    let edit = "{goodEnabled: 'false', countsEnabled: 'true', kindEnabled: 'true', \
                moduleSources: 'far: {repository: r.invalid/far, version: 1.0.0}'}";
    stage.write("edit.yaml", edit);
    let (_, said) = stage.typed("plan --start -f edit.yaml");
    assert!(!said.contains("good is"), "{said}");
    let expected = [
        "counts is switched on",
        "victim is switched on",
        "kind is switched on",
        "+ ConfigMap kind",
        "hook 'hooks/hook.sh' sees no objects, because its watches cannot begin",
        "module 'far' comes from a registry, and a start would have no files for it",
    ];
    assert_says(&said, &expected);
    assert_eq!(stage.objects(), objects);
    assert_eq!(stage.kubectl("get leases,secrets --output=name"), "");
    let runs = fs_err::read_to_string(stage.path("modules/030-counts/hooks/runs")).unwrap();
    assert_eq!(runs, "true\ntrue\n");

    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("get configmap good victim counts-2");
    operator.stop();
    let (code, said) = stage.typed("plan --start");
    assert_says(&said, &["1. victim runs", "objects: 0 created, 0 changed, 0 deleted"]);
    assert_eq!(code, Some(2), "the values of its hook are not known: {said}");
    fs_err::remove_file(stage.path("modules/020-victim/hooks/hook.sh")).unwrap();
    let (code, said) = stage.typed("plan --start");
    assert_says(&said, &["nothing would change"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_start_that_cannot_be_planned_says_why() {
    let mut stage = Stage::build("unrehearsed");
    stage.configure(&json!({}));
    let (code, said) = stage.typed("plan --start --modules-dir nowhere");
    assert_eq!(code, Some(1), "{said}");
    assert_says(
        &said,
        &["the start cannot be planned", "nowhere", "is its volume mounted?"],
    );
    let (_, said) = stage.typed("plan --start --pod x");
    assert_says(&said, &["--pod and --debug-unix-socket name an operator"]);
    let (_, said) = stage.typed("plan --start --plain-http x");
    assert_says(&said, &["need --image"]);
    stage.set("KUBECONFIG", "/no/such/file");
    let (code, said) = stage.typed("plan --start");
    assert_eq!(code, Some(1), "{said}");
    assert_says(&said, &["the start cannot be planned", "neither a kubeconfig nor"]);
    stage.write("nowhere.yaml", NOWHERE);
    stage.set("KUBECONFIG", stage.path("nowhere.yaml"));
    let (code, said) = stage.typed("plan --start");
    assert_eq!(code, Some(1), "{said}");
    assert_says(
        &said,
        &["the start cannot be planned", "the first converge does not begin"],
    );
}
