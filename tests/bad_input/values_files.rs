//! Removals of modules that are meant and must happen, and losses that must remove nothing: the common values file
//! differs from the one of the releases, a module's directory is a file, or files change while they are read.

use std::os::unix::fs::symlink;

use fs_err as fs;
use serde_json::json;

use super::stage::{CONVERGED, Stage, assert_says, shown};

/// The objects of the releases by name and UID. The UID shows whether an object was made anew.
fn objects(stage: &Stage) -> String {
    let columns = "-o=custom-columns=N:.metadata.name,U:.metadata.uid --no-headers";
    let table = stage.kubectl(&format!(
        "get configmaps -l app.kubernetes.io/managed-by=Helm {columns}"
    ));
    // The width of a column depends on its contents.
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_values_file_that_is_gone_or_empty_switches_nothing_off() {
    let stage = Stage::installed("values-gone");
    let (before, file) = (objects(&stage), stage.path("modules/values.yaml"));
    for text in [None, Some("")] {
        match text {
            None => fs::remove_file(&file).unwrap(),
            Some(text) => stage.write("modules/values.yaml", text),
        }
        let operator = stage.start();
        let told = operator.wait_for(&["missing or empty", "modules that it switched on stay on"]);
        assert_says(
            &told,
            &["\"level\":\"warn\"", shown(&file), "good,victim", "put the file back"],
        );
        operator.wait_for(&[CONVERGED]);
        operator.wait_for_answer("/readyz?verbose", 200, &[shown(&file)]);
        assert_says(
            &operator.ask("module why victim"),
            &["enabled: yes", "as it was", shown(&file)],
        );
        let events = operator.wait_for_event("ValuesFileLost");
        assert_says(&events, &[shown(&file)]);
        operator.stop();
        stage.assert_installed(&["good", "victim"]);
        assert_eq!(objects(&stage), before);
    }

    // An edit by a person counts even so.
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"victimEnabled": "false"}));
    stage.wait_for_sizes("good:small");
    operator.stop();
    assert!(before.contains(objects(&stage).trim()));
}

#[test]
fn a_values_file_that_held_values_is_missed_by_its_modules() {
    let stage = Stage::build("values-held");
    let flags = "goodEnabled: true\nvictimEnabled: true\n";
    fs::remove_file(stage.path("modules/020-victim/values.yaml")).unwrap();
    stage.write("modules/values.yaml", &format!("{flags}victim: {{size: large}}\n"));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:small victim:large");
    let before = objects(&stage);

    fs::remove_file(stage.path("modules/values.yaml")).unwrap();
    let operator = stage.start();
    let told = operator.wait_for(&["Module cannot be run as it is declared", "victim"]);
    assert_says(
        &told,
        &[shown(&stage.path("modules/values.yaml")), "missing or empty", "{}"],
    );
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:small victim:large");
    assert_eq!(objects(&stage), before);
    stage.assert_installed(&["good", "victim"]);

    // To remove modules on purpose, a person leaves a valid file without their flags.
    stage.write("modules/values.yaml", "{}\n");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"goodEnabled": "true"}));
    stage.wait_for_sizes("good:small");
    operator.stop();
}

#[test]
fn what_cannot_be_looked_at_is_unknown_and_never_absent() {
    let stage = Stage::installed("unseen");
    let before = objects(&stage);
    let unread = ["\"level\":\"warn\"", "cannot be read"];
    let parts = [
        ("020-victim", unread),
        ("020-victim/Chart.yaml", unread),
        // The operator knows that the module has a chart, so its run fails.
        ("020-victim/templates", ["\"level\":\"error\"", "cannot read the chart"]),
        ("020-victim/hooks", unread),
    ];
    for (part, said) in parts {
        let part = format!("modules/{part}");
        stage.rename(&part, "away");
        symlink(stage.path(&part), stage.path(&part)).unwrap();
        let operator = stage.start();
        operator.wait_for(&[said[0], said[1], shown(&stage.path(&part))]);
        operator.wait_for(&[CONVERGED]);
        operator.wait_for_answer("/readyz", 200, &[]);
        operator.stop();
        stage.assert_installed(&["good", "victim"]);
        fs::remove_file(stage.path(&part)).unwrap();
        stage.rename("away", &part);
    }

    // A file takes the place of the directory.
    stage.rename("modules/020-victim", "away");
    stage.write("modules/020-victim", "half a copy");
    let operator = stage.start();
    operator.wait_for(&["is a file where the directory of a module is expected"]);
    let kept = operator.wait_for(&["Releases without a module are kept"]);
    assert_says(&kept, &["victim", "could not be read completely"]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
    assert_eq!(objects(&stage), before);

    // The module is removed for good.
    fs::remove_file(stage.path("modules/020-victim")).unwrap();
    let operator = stage.start();
    operator.wait_for(&["Release without a module is removed", "victim"]);
    assert_eq!(stage.sizes(), "good:small");
    operator.stop();
}

/// A hook puts the directory back after the operator has missed it, and before the removal begins.
#[test]
fn directories_that_change_while_they_are_read_remove_nothing() {
    let stage = Stage::installed("changing");
    let before = objects(&stage);
    let from = stage.path("away");
    let back = format!(
        "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; exit; fi\nmv {} {}\n",
        shown(&from),
        shown(&stage.path("modules/020-victim"))
    );
    stage.write("global-hooks/back.sh", &back);
    stage.rename("modules/020-victim", "away");
    let operator = stage.start();
    let told = operator.wait_for(&["modules directories changed since they were read"]);
    assert_says(&told, &["module 'victim' has come", "start the operator again"]);
    let kept = operator.wait_for(&["Releases without a module are kept"]);
    assert_says(&kept, &["victim", "changed since they were read"]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
    assert_eq!(objects(&stage), before);

    fs::remove_file(stage.path("global-hooks/back.sh")).unwrap();
    stage.rename("modules/020-victim", "away");
    let operator = stage.start();
    operator.wait_for(&["Release without a module is removed", "victim"]);
    assert_eq!(stage.sizes(), "good:small");
    operator.stop();
}

#[test]
fn a_directory_that_is_not_what_its_manifest_says() {
    let stage = Stage::installed("manifest");
    let before = objects(&stage);
    let modules = stage.path("modules");
    stage.write(
        "modules/.addon-operator-manifest.json",
        &Stage::tell(&["module", "manifest", shown(&modules)]),
    );
    let parts = [
        ("020-victim/templates/a.yaml", "neither run nor removed"),
        ("020-victim/templates", "neither run nor removed"),
        ("020-victim", "releases of absent modules are kept"),
    ];
    for (part, consequence) in parts {
        let part = format!("modules/{part}");
        stage.rename(&part, "away");
        let operator = stage.start();
        let told = operator.wait_for(&["\"level\":\"warn\"", "the manifest of the modules directory names it"]);
        assert_says(&told, &[shown(&stage.path(&part)), consequence]);
        operator.wait_for(&[CONVERGED]);
        operator.stop();
        stage.rename("away", &part);
        stage.assert_installed(&["good", "victim"]);
        assert_eq!(objects(&stage), before);
    }
    let common = stage.path("modules/values.yaml");
    stage.rename("modules/values.yaml", "away");
    assert_says(&stage.refused(), &[shown(&common), "is missing, and the manifest"]);
    stage.rename("away", "modules/values.yaml");

    stage.write("modules/.addon-operator-manifest.json", "{");
    assert_says(&stage.refused(), &["is no manifest of a modules directory"]);
    stage.assert_installed(&["good", "victim"]);

    // A person who removes a module also writes the manifest anew.
    fs::remove_dir_all(stage.path("modules/020-victim")).unwrap();
    stage.write(
        "modules/.addon-operator-manifest.json",
        &Stage::tell(&["module", "manifest", shown(&modules)]),
    );
    let operator = stage.start();
    operator.wait_for(&["Release without a module is removed", "victim"]);
    assert_eq!(stage.sizes(), "good:small");
    operator.stop();
}

/// An image before had the shipped modules in the directory of a person, and on. A later one has them in another
/// directory, and off, and that directory is empty.
#[test]
fn modules_of_an_image_before_keep_their_releases_until_the_config_map_decides() {
    let mut stage = Stage::installed("moved");
    let before = objects(&stage);
    fs::create_dir(stage.path("shipped")).unwrap();
    for module in ["010-good", "020-victim"] {
        stage.rename(&format!("modules/{module}"), &format!("shipped/{module}"));
    }
    stage.write("shipped/values.yaml", "{}\n");
    let file = stage.path("modules/values.yaml");
    fs::remove_file(&file).unwrap();
    let dirs = format!("{}:{}", shown(&stage.path("modules")), shown(&stage.path("shipped")));
    stage.set("ADDON_OPERATOR_MODULES_DIR", dirs);
    let operator = stage.start();
    let told = operator.wait_for(&["missing or empty", "modules that it switched on stay on"]);
    assert_says(&told, &[shown(&file), "good,victim"]);
    operator.wait_for(&[CONVERGED]);
    stage.assert_installed(&["good", "victim"]);

    // A person keeps one of them.
    stage.configure(&json!({"goodEnabled": "true", "victimEnabled": "false"}));
    stage.wait_for_sizes("good:small");
    operator.stop();
    assert!(
        before.contains(objects(&stage).trim()),
        "the release that stays is not made anew"
    );
}
