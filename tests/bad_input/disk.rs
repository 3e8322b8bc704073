//! Files and directories of modules that are missing, unreadable, or of the wrong kind.

use std::os::unix::fs::symlink;

use fs_err as fs;
use serde_json::json;

use super::stage::{CONVERGED, Stage, assert_says, shown};

#[test]
fn a_modules_directory_that_does_not_exist() {
    let mut stage = Stage::installed("no-directory");
    let nowhere = stage.path("nowhere");
    stage.set("ADDON_OPERATOR_MODULES_DIR", &nowhere);
    let said = stage.refused();
    assert_says(&said, &[shown(&nowhere), "does not exist", "--modules-dir"]);
    // The report names each missing directory, even if all are missing.
    let (more, hooks) = (stage.path("no-more"), stage.path("no-hooks"));
    stage.set(
        "ADDON_OPERATOR_MODULES_DIR",
        format!("{}:{}", shown(&nowhere), shown(&more)),
    );
    stage.set("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", &hooks);
    let said = stage.refused();
    let missing = [&nowhere, &more, &hooks].map(|dir| format!("{}: does not exist", shown(dir)));
    assert_says(&said, &missing.each_ref().map(String::as_str));
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn an_empty_modules_directory_purges_nothing() {
    let stage = Stage::installed("empty");
    stage.rename("modules", "away");
    fs::create_dir(stage.path("modules")).unwrap();
    let operator = stage.start();
    let told = operator.wait_for(&["holds no modules", "warn"]);
    assert_says(&told, &[shown(&stage.path("modules"))]);
    let kept = operator.wait_for(&["Releases without a module are kept"]);
    assert_says(
        &kept,
        &[
            "good,victim",
            "is empty or could not be read completely",
            "put the modules back",
        ],
    );
    operator.wait_for_answer("/readyz?verbose", 200, &["removal held: good", "removal held: victim"]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);

    fs::remove_dir(stage.path("modules")).unwrap();
    stage.rename("away", "modules");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// The directory becomes a link to itself, which root cannot read either.
#[test]
fn a_modules_directory_that_became_unreadable() {
    let stage = Stage::installed("unreadable");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.rename("modules", "away");
    symlink(stage.path("modules"), stage.path("modules")).unwrap();
    stage.configure(&json!({"victim": "size: large", "goodEnabled": "true"}));
    let failed = operator.wait_for(&["ModuleRun failed", "victim"]);
    assert_says(&failed, &[shown(&stage.path("modules/020-victim")), "hint"]);
    stage.assert_installed(&["good", "victim"]);

    let said = stage.path("modules");
    operator.stop();
    assert_says(&stage.refused(), &[shown(&said), "cannot be read", "symbolic links"]);
    stage.assert_installed(&["good", "victim"]);

    fs::remove_file(stage.path("modules")).unwrap();
    stage.rename("away", "modules");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:small victim:large");
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn two_modules_of_one_name() {
    let mut stage = Stage::installed("same-name");
    stage.write(
        "more/005-victim/Chart.yaml",
        "apiVersion: v2\nname: other\nversion: 9.9.9\n",
    );
    stage.write("more/005-victim/values.yaml", "victim: {size: stolen}\n");
    stage.add_module("030-late");
    let mut dirs = stage.path("modules").into_os_string();
    dirs.push(":");
    dirs.push(stage.path("more"));
    stage.set("ADDON_OPERATOR_MODULES_DIR", dirs);
    let operator = stage.start();
    let told = operator.wait_for(&["'victim' is taken from"]);
    assert_says(
        &told,
        &[
            "warn",
            shown(&stage.path("modules/020-victim")),
            shown(&stage.path("more/005-victim")),
        ],
    );
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:small late:small victim:small");
    stage.assert_installed(&["good", "late", "victim"]);
}

#[test]
fn a_values_file_of_a_module_that_is_no_yaml() {
    let stage = Stage::installed("module-values");
    stage.write("modules/020-victim/values.yaml", "victim:\n  size: [small\n");
    stage.add_module("030-late");
    let operator = stage.start();
    let told = operator.wait_for(&["Module cannot be run as it is declared"]);
    let path = stage.path("modules/020-victim/values.yaml");
    assert_says(
        &told,
        &["victim", shown(&path), "is not YAML", "line", "correct the files"],
    );
    operator.wait_for(&["first converge is finished"]);
    let why = operator.ask("module why victim");
    assert_says(&why, &["enabled: yes", shown(&path), "is not YAML"]);
    assert_says(
        &operator.get("/metrics").1,
        &["failures_total{class=\"invalid\",step=\"declaration\"} 1"],
    );
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}

#[test]
fn a_values_file_of_a_modules_directory_that_is_no_yaml() {
    let stage = Stage::installed("common-values");
    stage.write("modules/values.yaml", "goodEnabled: true\nvictimEnabled: {\n");
    let said = stage.refused();
    assert_says(
        &said,
        &[
            shown(&stage.path("modules/values.yaml")),
            "is not YAML",
            "line",
            "correct",
        ],
    );
    stage.assert_installed(&["good", "victim"]);
}

/// An admin switches off a module whose files are broken. The log says that it cannot be removed like this, and the
/// module stays.
#[test]
fn a_broken_module_that_is_switched_off_is_told_and_stays() {
    let stage = Stage::installed("broken-off");
    stage.write("modules/values.yaml", "goodEnabled: true\nvictimEnabled: false\n");
    stage.write("modules/020-victim/module.yaml", "dependOn: [good]\n");
    let operator = stage.start();
    let path = stage.path("modules/020-victim/module.yaml");
    let told = operator.wait_for(&[shown(&path)]);
    assert_says(
        &told,
        &[
            "\"level\":\"warn\"",
            "\"module\":\"victim\"",
            "line 1: unknown field dependOn, is dependsOn meant?",
            "neither run nor removed",
        ],
    );
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}
