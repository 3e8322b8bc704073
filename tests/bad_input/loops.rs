//! Hooks that cause their own next runs, and modules that hooks switch to and fro.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use fs_err as fs;
use serde_json::json;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage};

/// The log message about a hook that waits.
const SLOWED: &str = "A hook causes its own next run again and again";
/// The most runs that come before a wait, with room for changes that are combined or reported late.
const FAST: usize = 16;

/// A hook with this configuration. Each run adds a line to a file, and does the work.
fn hook(stage: &Stage, path: &str, config: &str, work: &str) {
    let count = stage.path("runs").join(path.replace('/', "_"));
    fs::create_dir_all(count.parent().unwrap()).unwrap();
    let script = format!(
        "#!/usr/bin/env bash\nif [[ ${{1-}} == --config ]]; then echo '{config}'; exit; fi\necho >> {}\n{work}\n",
        count.display()
    );
    stage.write(path, &script);
}

fn runs(stage: &Stage, path: &str) -> usize {
    let count = stage.path("runs").join(path.replace('/', "_"));
    fs::read_to_string(count).map_or(0, |text| text.lines().count())
}

/// The configuration of a hook that watches one ConfigMap of the namespace.
fn watching(stage: &Stage, name: &str) -> String {
    let namespace = stage.namespace().name();
    json!({"configVersion": "v1", "kubernetes": [{
        "name": "m", "apiVersion": "v1", "kind": "ConfigMap", "nameSelector": {"matchNames": [name]},
        "namespace": {"nameSelector": {"matchNames": [namespace]}},
    }]})
    .to_string()
}

/// A line for the patch file of a hook that writes the time into a ConfigMap.
fn write_time(stage: &Stage, name: &str) -> String {
    let namespace = stage.namespace().name();
    format!(
        "echo '{{\"operation\": \"MergePatch\", \"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"name\": \"{name}\", \
         \"namespace\": \"{namespace}\", \"mergePatch\": {{\"data\": {{\"t\": \"'$(date +%s%N)'\"}}}}}}' >> $KUBERNETES_PATCH_PATH"
    )
}

#[test]
fn a_module_whose_hook_changes_a_value_in_every_run_is_slowed_down_and_ready() {
    let stage = Stage::installed("loopafter");
    let change = r#"echo '[{"op": "add", "path": "/good/x", "value": "'$(date +%s%N)'"}]' > $VALUES_JSON_PATCH_PATH"#;
    hook(
        &stage,
        "modules/010-good/hooks/h.sh",
        r#"{"configVersion": "v1", "afterHelm": 1}"#,
        change,
    );
    stage.write(
        "modules/010-good/templates/x.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {x: {{ .Values.good.x | default \"\" | quote }}}\n",
    );
    let operator = stage.start();
    operator.wait_for(&[SLOWED]);
    assert!(runs(&stage, "modules/010-good/hooks/h.sh") <= FAST);
    let texts = [
        "state: Ready",
        "waits for: the next run of hook 'hooks/h.sh', in ",
        "it changes the value /good/x in each of its runs, ",
    ];
    operator.wait_for_why("good", &texts);
    operator.wait_for(&[CONVERGED]);
    // The edit of a person counts at once.
    stage.configure(&json!({"good": "size: large"}));
    stage.wait_for_sizes("good:large victim:small x:<none>");
    operator.stop();
}

#[test]
fn a_hook_that_patches_the_object_it_watches_is_slowed_down() {
    let stage = Stage::installed("selfpatch");
    stage.kubectl("create configmap target");
    hook(
        &stage,
        "modules/010-good/hooks/h.sh",
        &watching(&stage, "target"),
        &write_time(&stage, "target"),
    );
    let operator = stage.start();
    operator.wait_for(&[SLOWED]);
    assert!(runs(&stage, "modules/010-good/hooks/h.sh") <= FAST);
    operator.wait_for_why(
        "good",
        &[
            "the next run of hook 'hooks/h.sh'",
            "it writes ConfigMap",
            "each time that it changes",
        ],
    );
    // A change by another writer is told at once, long before the wait ends.
    let before = runs(&stage, "modules/010-good/hooks/h.sh");
    stage.kubectl("label configmap target by=others");
    wait_until(PATIENCE, "the hook is told of the change", || {
        let after = runs(&stage, "modules/010-good/hooks/h.sh");
        (after > before).then_some(Some(())).ok_or(format!("{after} runs"))
    })
    .unwrap();
    operator.stop();
}

#[test]
fn a_hook_that_writes_by_kubectl_is_slowed_down() {
    let stage = Stage::installed("kubectl");
    // The API server names no writers of an object that was made without any data.
    stage.kubectl("create configmap target --from-literal=a=b");
    let namespace = stage.namespace().name();
    let work = format!("kubectl annotate configmap target --namespace {namespace} --overwrite t=$(date +%s%N)");
    hook(
        &stage,
        "modules/010-good/hooks/h.sh",
        &watching(&stage, "target"),
        &work,
    );
    let operator = stage.start();
    operator.wait_for(&[SLOWED]);
    assert!(runs(&stage, "modules/010-good/hooks/h.sh") <= FAST);
    operator.stop();
}

#[test]
fn hooks_of_two_modules_that_answer_each_other_are_slowed_down() {
    let stage = Stage::installed("answers");
    for (module, watched, written) in [("010-good", "ping", "pong"), ("020-victim", "pong", "ping")] {
        stage.kubectl(&format!("create configmap {watched}"));
        let path = format!("modules/{module}/hooks/h.sh");
        hook(&stage, &path, &watching(&stage, watched), &write_time(&stage, written));
    }
    let operator = stage.start();
    operator.wait_for(&[SLOWED]);
    for module in ["010-good", "020-victim"] {
        let count = runs(&stage, &format!("modules/{module}/hooks/h.sh"));
        assert!(count <= FAST, "{module}: {count}");
    }
    operator.stop();
}

#[test]
fn global_values_that_change_in_each_converge_are_slowed_down() {
    let stage = Stage::installed("globals");
    let change = r#"echo '[{"op": "add", "path": "/global/x", "value": "'$(date +%s%N)'"}]' > $VALUES_JSON_PATCH_PATH"#;
    hook(
        &stage,
        "global-hooks/h.sh",
        r#"{"configVersion": "v1", "afterAll": 1}"#,
        change,
    );
    let operator = stage.start();
    operator.wait_for(&[SLOWED]);
    assert!(runs(&stage, "global-hooks/h.sh") <= FAST);
    operator.stop();
}

#[test]
fn a_module_that_a_global_hook_switches_by_its_own_object_keeps_its_state_for_a_while() {
    let stage = Stage::installed("flip");
    let work = "n=$(jq '.[0] | .snapshots.m // .objects // [] | length' $BINDING_CONTEXT_PATH)\n\
                event=$(jq -r '.[-1].watchEvent // \"\"' $BINDING_CONTEXT_PATH)\n\
                on=true; if [[ $event == Added || $n -gt 0 ]]; then on=false; fi; [[ $event != Deleted ]] || on=true\n\
                echo '[{\"op\": \"add\", \"path\": \"/victimEnabled\", \"value\": '$on'}]' > $VALUES_JSON_PATCH_PATH";
    hook(&stage, "global-hooks/flip.sh", &watching(&stage, "victim"), work);
    let operator = stage.start();
    operator.wait_for(&["A module is switched again and again"]);
    assert!(runs(&stage, "global-hooks/flip.sh") <= FAST);
    operator.wait_for_why(
        "victim",
        &["a global hook, which has switched it 3 times within 10 minutes: it stays so for"],
    );
    // A person decides at once.
    stage.configure(&json!({"victimEnabled": "false"}));
    stage.wait_for_sizes("good:small");
    operator.stop();
}
