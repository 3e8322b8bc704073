//! A missing helm, an old helm, and charts that no helm can render.

use super::stage::{CONVERGED, Stage, assert_says, shown};

/// Checks an operator with an unusable helm: modules without a chart go on, and existing releases stay.
fn assert_survives(stage: &Stage, words: &[&str], told_at_start: bool) {
    stage.write("modules/020-victim/templates/b.yaml", "# a change that needs helm\n");
    stage.write(
        "modules/030-late/hooks/hook.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; fi\n",
    );
    let operator = stage.start();
    if told_at_start {
        let told = operator.wait_for(&["Helm cannot be used"]);
        assert_says(&told, words);
    }
    let failed = operator.wait_for(&["ModuleRun failed", "\"module\":\"victim\""]);
    assert_says(&failed, words);
    operator.wait_for(&["Module is ready", "\"module\":\"late\""]);
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_helm_that_is_not_there() {
    let mut stage = Stage::installed("no-helm");
    let missing = stage.path("bin/helm");
    stage.set("HELM_BIN", &missing);
    assert_survives(&stage, &[shown(&missing), "install helm 3.", "HELM_BIN"], true);
}

#[test]
fn a_helm_that_is_too_old() {
    let mut stage = Stage::installed("old-helm");
    stage.write("helm", "#!/bin/sh\necho v3.2.4+g0ad800e\n");
    let old = stage.path("helm");
    stage.set("HELM_BIN", &old);
    assert_survives(&stage, &[shown(&old), "3.2.4", "install helm 3.", "HELM_BIN"], false);
}

#[test]
fn a_chart_that_does_not_render() {
    let stage = Stage::installed("no-render");
    stage.write(
        "modules/020-victim/templates/b.yaml",
        "{{ fail \"a size is needed\" }}\n",
    );
    stage.add_module("030-late");
    let operator = stage.start();
    let told = operator.wait_for(&["ModuleRun failed"]);
    assert_says(
        &told,
        &[
            "\"module\":\"victim\"",
            "templates/b.yaml",
            "a size is needed",
            "hint",
            "helm template",
        ],
    );
    operator.wait_for(&["some modules still fail", "\"modules\":\"victim\""]);
    assert_says(&operator.ask("module list -o wide"), &["b.yaml"]);
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);

    stage.write("modules/020-victim/templates/b.yaml", "");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}

#[test]
fn a_chart_that_renders_an_object_twice() {
    let stage = Stage::installed("twice");
    stage.write(
        "modules/020-victim/templates/b.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: victim}\ndata: {size: other}\n",
    );
    let operator = stage.start();
    let told = operator.wait_for(&["ModuleRun failed", "\"module\":\"victim\""]);
    let namespace = stage.namespace().name();
    let report = format!("module 'victim' renders ConfigMap 'victim' of namespace '{namespace}' twice\"");
    assert_says(&told, &[&report, "let only one of its templates render it"]);
    operator.wait_for(&["some modules still fail", "\"modules\":\"victim\""]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
    assert_eq!(stage.sizes(), "good:small victim:small");
}
