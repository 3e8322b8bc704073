//! The sources that switch on many modules are lost, or the modules' directories are: no release is removed before a
//! person confirms it.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use fs_err as fs;
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Operator, PATIENCE, Stage, assert_says};

/// Names of modules that are switched on and lost together.
const MANY: [&str; 8] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"];
/// The modules of the stage, and the many.
const ALL: [&str; 10] = ["good", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "victim"];
const FEW_FLAGS: &str = "goodEnabled: true\nvictimEnabled: true\n";

fn dir(module: &str) -> String {
    format!("030-{module}")
}

fn add_many(stage: &Stage) {
    for module in MANY {
        stage.add_module(&dir(module));
    }
}

/// The flags `mNEnabled` of the many modules, all with this value.
fn flags(flag: &str) -> Vec<(String, Value)> {
    let keys = MANY.iter().map(|module| format!("{module}Enabled"));
    keys.map(|key| (key, json!(flag))).collect()
}

/// A stage on which an earlier operator has installed all modules. Only `modules/values.yaml` switches them on; the
/// ConfigMap has other edits of people.
fn installed_by_file(prefix: &str) -> (Stage, String) {
    let stage = Stage::build(prefix);
    add_many(&stage);
    let on = MANY.iter().map(|module| format!("{module}Enabled: true\n"));
    let text: String = std::iter::once(FEW_FLAGS.to_owned()).chain(on).collect();
    stage.write("modules/values.yaml", &text);
    stage.configure(&json!({"global": "{}"}));
    converge(&stage);
    stage.assert_installed(&ALL);
    (stage, text)
}

/// Starts an operator and stops it after its first converge.
fn converge(stage: &Stage) {
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
}

/// Checks, after the lost files are back, that no removal is held any more and that all objects are the same.
fn assert_as_before(stage: &Stage, before: &str) {
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert!(!operator.get("/metrics").1.contains("removal_held"), "nothing is held");
    assert_says(&operator.ask("module purge"), &["No removal is held."]);
    assert_says(&operator.ask("module why m2"), &["state: Ready"]);
    operator.stop();
    stage.assert_installed(&ALL);
    assert_eq!(objects(stage), before);
}

/// The objects of all releases with their UIDs, which tell whether an object was made anew.
fn objects(stage: &Stage) -> String {
    stage.kubectl(
        "get configmaps,secrets -l app.kubernetes.io/managed-by=Helm -o=custom-columns=K:.kind,N:.metadata.name,U:.metadata.uid --no-headers",
    )
}

/// Checks that every report of a held removal names these modules: log, readiness, metrics and Event.
#[track_caller]
fn assert_held(operator: &Operator<'_>, modules: &[&str], reason: &str) {
    let told = operator.wait_for(&[
        "Releases whose modules are no longer named are kept",
        "\"level\":\"warn\"",
    ]);
    assert_says(&told, &[reason, "module purge --confirm"]);
    operator.wait_for(&[CONVERGED]);
    // In YAML output the note is folded over several lines.
    let events = operator.wait_for_event("PurgeHeld");
    let events: Vec<&str> = events.split_whitespace().collect();
    assert_says(&events.join(" "), &[reason, "type: Warning"]);
    let (code, ready) = operator.get("/readyz?verbose");
    let metrics = operator.get("/metrics").1;
    let listed = operator.ask("module purge");
    assert_eq!(code, 200, "a held removal does not make the pod unready: {ready}");
    assert_says(&ready, &[reason]);
    assert_says(&listed, &[reason, &format!("module purge --confirm {}", modules.len())]);
    for module in modules {
        assert_says(&ready, &[&format!("removal held: {module}, ")]);
        assert_says(
            &metrics,
            &[&format!("addon_operator_removal_held{{release=\"{module}\"}} 1\n")],
        );
        assert_says(&listed, &[&format!("{module}: ")]);
    }
}

/// Waits until only the objects of these modules are left.
fn wait_for_rest(stage: &Stage, modules: &[&str]) {
    let rest: Vec<String> = modules.iter().map(|module| format!("{module}:small")).collect();
    stage.wait_for_sizes(&rest.join(" "));
    let columns = "-o=custom-columns=N:.metadata.labels.name --no-headers";
    let look = || {
        let found = stage.kubectl(&format!("get secrets -l owner=helm {columns}"));
        let mut found: Vec<&str> = found.lines().map(str::trim).collect();
        found.dedup();
        if found == modules {
            Ok(Some(()))
        } else {
            Err(found.join(" "))
        }
    };
    wait_until(PATIENCE, "the removal of the other releases", look).unwrap();
}

#[test]
fn a_common_values_file_that_is_lost_removes_nothing() {
    let (stage, text) = installed_by_file("lost-values");
    let before = objects(&stage);
    let path = stage.path("modules/values.yaml");
    let lose = |say: &dyn Fn()| {
        say();
        let operator = stage.start();
        operator.wait_for(&[CONVERGED]);
        let why = operator.ask("module why m3");
        assert_says(&why, &["enabled: yes", "values.yaml is missing or empty"]);
        operator.stop();
        stage.assert_installed(&ALL);
        assert_eq!(objects(&stage), before);
    };
    lose(&|| fs::remove_file(&path).unwrap());
    lose(&|| stage.write("modules/values.yaml", ""));

    stage.write("modules/values.yaml", &text);
    assert_as_before(&stage, &before);
}

#[test]
fn a_common_values_file_that_was_cut_is_held_until_it_is_whole_or_a_person_confirms() {
    let (stage, text) = installed_by_file("cut-values");
    let before = objects(&stage);
    stage.write("modules/values.yaml", FEW_FLAGS);
    let operator = stage.start();
    let reason = "8 of our 10 releases would go within ten minutes, and nobody said so";
    assert_held(&operator, &MANY, reason);
    assert_says(
        &operator.ask("module why m3"),
        &[
            "enabled: no, by default",
            "state: Held",
            "a person who confirms its removal",
            reason,
        ],
    );
    assert_says(&operator.ask("module list -o wide"), &["Held"]);
    stage.assert_installed(&ALL);
    operator.stop();

    stage.write("modules/values.yaml", &text);
    assert_as_before(&stage, &before);

    stage.write("modules/values.yaml", FEW_FLAGS);
    let operator = stage.start();
    assert_held(&operator, &MANY, reason);
    for (said, answer) in [
        (
            "--confirm",
            "confirm the number of releases, or name the releases to remove",
        ),
        ("--confirm 7", "8 removals are held, not 7: m0,m1,m2,m3,m4,m5,m6,m7"),
        ("--confirm m1,good", "the removal of 'good' is not held; held are: m0,"),
    ] {
        let refused = operator.ask_in_vain(&format!("module purge {said}"));
        assert_says(&refused, &["nothing is removed", answer]);
    }
    stage.assert_installed(&ALL);
    assert_says(
        &operator.ask("module purge --confirm m1,m2"),
        &["confirmed, and removed from now on: m1,m2"],
    );
    wait_for_rest(&stage, &["good", "m0", "m3", "m4", "m5", "m6", "m7", "victim"]);
    operator.ask("module purge --confirm 6");
    wait_for_rest(&stage, &["good", "victim"]);
    assert_says(&operator.ask("module purge"), &["No removal is held."]);
    operator.wait_for_event("PurgeConfirmed");
    operator.stop();
}

#[test]
fn half_of_the_modules_directories_missing_removes_nothing_before_a_person_confirms() {
    let (stage, _) = installed_by_file("half-missing");
    let before = objects(&stage);
    fs::create_dir(stage.path("away")).unwrap();
    let missing = ["m0", "m2", "m4", "m6"];
    let move_all = |from: &str, to: &str, modules: &[&str]| {
        for module in modules {
            stage.rename(&format!("{from}/{}", dir(module)), &format!("{to}/{}", dir(module)));
        }
    };
    move_all("modules", "away", &missing);
    let operator = stage.start();
    let reason = "4 of our 10 releases would go within ten minutes, and nobody said so";
    assert_held(&operator, &missing, reason);
    assert_says(
        &operator.ask("module why m2"),
        &[
            "release: m2, its module is gone",
            "a person who confirms its removal",
            reason,
        ],
    );
    operator.stop();
    stage.assert_installed(&ALL);

    move_all("away", "modules", &missing);
    assert_as_before(&stage, &before);

    move_all("modules", "away", &missing);
    let operator = stage.start();
    assert_held(&operator, &missing, reason);
    operator.ask("module purge --confirm 4");
    wait_for_rest(&stage, &["good", "m1", "m3", "m5", "m7", "victim"]);
    operator.stop();
}

#[test]
fn a_config_map_that_leaves_out_what_it_had_switched_on_is_held_and_an_explicit_no_is_not() {
    let stage = Stage::build("silent-map");
    add_many(&stage);
    stage.configure(&flags("true").into_iter().collect());
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.assert_installed(&ALL);
    let before = objects(&stage);
    stage.configure(&json!({"global": "{}"}));
    assert_held(
        &operator,
        &MANY,
        "8 of our 10 releases would go within ten minutes, and nobody said so",
    );
    stage.configure(&flags("true").into_iter().collect());
    operator.wait_for_answer("/readyz?verbose", 200, &["Startup converge done.\n"]);
    let look = || {
        let listed = operator.ask("module purge");
        if listed.contains("No removal is held.") {
            Ok(Some(()))
        } else {
            Err(listed)
        }
    };
    wait_until(PATIENCE, "the end of the hold", look).unwrap();
    stage.assert_installed(&ALL);
    assert_eq!(objects(&stage), before);
    stage.configure(&flags("false").into_iter().collect());
    wait_for_rest(&stage, &["good", "victim"]);
    operator.stop();
}
