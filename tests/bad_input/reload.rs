//! `module reload`: files that were edited are taken up by their module alone, and files that cannot be used change nothing.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use fs_err as fs;
use serde_json::json;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

/// A hook that counts its start-ups in a file, and says which version of itself runs.
fn counting(version: &str) -> String {
    format!(
        "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; exit; fi\n\
         echo {version} >> \"$(dirname \"$0\")/../../../ran-$(basename \"$(dirname \"$(dirname \"$0\")\")\")\"\n"
    )
}

fn runs(stage: &Stage, module: &str) -> String {
    fs::read_to_string(stage.path(&format!("ran-{module}"))).unwrap_or_default()
}

fn wait_for_runs(stage: &Stage, module: &str, expected: &str) {
    let look = || {
        let runs = runs(stage, module);
        if runs == expected { Ok(Some(())) } else { Err(runs) }
    };
    wait_until(PATIENCE, expected, look).unwrap();
}

fn revisions(stage: &Stage) -> String {
    let columns = "-o=custom-columns=N:.metadata.labels.name,V:.metadata.labels.version --no-headers";
    let listed = stage.kubectl(&format!("get secrets -l owner=helm,status=deployed {columns}"));
    let mut rows: Vec<String> = listed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(":"))
        .collect();
    rows.sort();
    rows.join(" ")
}

fn with_hooks(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    for module in ["010-good", "020-victim"] {
        stage.write(&format!("modules/{module}/hooks/count.sh"), &counting("first"));
    }
    stage
}

#[test]
fn edited_files_are_taken_up_by_their_module_alone() {
    let stage = with_hooks("reload");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"victim": "size: large"}));
    stage.wait_for_sizes("good:small victim:large");
    assert_eq!(revisions(&stage), "good:1 victim:2");

    stage.write("modules/020-victim/hooks/count.sh", &counting("second"));
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: victim}\ndata: {size: {{ .Values.victim.size | quote }}, more: {{ .Values.victim.more | quote }}}\n";
    stage.write("modules/020-victim/templates/a.yaml", template);
    stage.write("modules/020-victim/values.yaml", "victim: {size: small, more: here}\n");
    stage.write("modules/010-good/values.yaml", "good: {size: huge}\n");
    let said = operator.ask("module reload victim");
    assert_says(&said, &["module 'victim' begins a new life", "modules/020-victim"]);
    wait_for_runs(&stage, "020-victim", "first\nsecond\n");
    let more = || {
        let more = stage.kubectl("get configmap victim -o=jsonpath={.data.more},{.data.size}");
        // The section of the ConfigMap stays in force.
        if more == "here,large" { Ok(Some(())) } else { Err(more) }
    };
    wait_until(PATIENCE, "the new template", more).unwrap();
    let deployed = || {
        let found = revisions(&stage);
        if found == "good:1 victim:3" {
            Ok(Some(()))
        } else {
            Err(found)
        }
    };
    wait_until(PATIENCE, "a revision of the module alone", deployed).unwrap();
    operator.wait_for(&["Module begins a new life", "victim"]);
    assert_says(
        &operator.wait_for_event("ModuleRenewed"),
        &["module 'victim' begins a new life"],
    );
    assert_eq!(runs(&stage, "010-good"), "first\n");
    assert_eq!(operator.records(&[CONVERGED]).len(), 1, "{}", operator.said());
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn files_that_cannot_be_used_are_refused_and_the_old_ones_go_on() {
    let stage = with_hooks("unfit");
    stage.write(
        "modules/020-victim/openapi/config-values.yaml",
        "type: object\nproperties: {size: {type: string}}\n",
    );
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"victim": "size: large"}));
    stage.wait_for_sizes("good:small victim:large");

    let rows: [(&str, &str, &[&str]); 5] = [
        ("values.yaml", "victim: [", &["values.yaml", "victim"]),
        (
            "templates/a.yaml",
            "data: {{ .Values.victim",
            &["a.yaml", "unclosed action"],
        ),
        ("hooks/count.sh", "#!/bin/sh\nexit 3\n", &["count.sh", "3"]),
        ("module.yaml", "dependsOn: 7\n", &["module.yaml", "dependsOn"]),
        (
            "openapi/config-values.yaml",
            "type: object\nproperties: {size: {type: integer}}\n",
            &["section 'victim' of the ConfigMap", "size"],
        ),
    ];
    for (file, text, words) in rows {
        let path = format!("modules/020-victim/{file}");
        let before = fs::read_to_string(stage.path(&path)).ok();
        stage.write(&path, text);
        let refused = operator.ask_in_vain("module reload victim");
        assert_says(&refused, &["module is not reloaded"]);
        assert_says(&refused, words);
        match before {
            Some(before) => stage.write(&path, &before),
            None => fs::remove_file(stage.path(&path)).unwrap(),
        }
    }
    let absent = operator.ask_in_vain("module reload late");
    assert_says(&absent, &["there is no module 'late' in", "modules"]);
    assert_says(&operator.ask_in_vain("module reload Late/1"), &["not reloaded"]);
    assert_eq!(operator.records(&["begins a new life"]), [""; 0]);
    assert_eq!(runs(&stage, "020-victim"), "first\n");
    stage.wait_for_sizes("good:small victim:large");
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_failing_module_goes_on_with_mended_files_and_a_new_one_joins() {
    let stage = with_hooks("mended");
    stage.write(
        "modules/020-victim/templates/b.yaml",
        "apiVersion: v1\nkind: Nothing\nmetadata: {name: b}\n",
    );
    let operator = stage.start();
    operator.wait_for(&["victim", "Nothing"]);
    operator.wait_for(&[CONVERGED]);
    fs::remove_file(stage.path("modules/020-victim/templates/b.yaml")).unwrap();
    operator.ask("module reload victim");
    stage.wait_for_sizes("good:small victim:small");

    stage.add_module("030-late");
    operator.ask("module reload late");
    stage.wait_for_sizes("good:small late:small victim:small");
    operator.stop();

    // The next start finds the same on disk, and changes nothing.
    let before = revisions(&stage);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_eq!(revisions(&stage), before);
    operator.stop();
    stage.assert_installed(&["good", "late", "victim"]);
}
