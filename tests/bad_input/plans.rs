//! Plans of edits: they say what happens, and change nothing.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

mod campaign;
mod files;
mod images;
mod kinds;
mod modules;
mod rights;
mod start;
mod warned;

use serde_json::{Value, json};
use testbed::process;

use super::stage::{CONVERGED, Stage, assert_says};

/// A hook of a module without a chart.
const BARE: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nafterDeleteHelm: 1'; fi\n";

const SCHEMA: &str = "type: object\nproperties: {size: {type: string, enum: [small, large, wide]}}\n";

#[test]
fn a_plan_says_which_objects_change_and_changes_nothing() {
    let stage = Stage::build("planned");
    stage.add_module("030-late");
    stage.write("modules/020-victim/openapi/config-values.yaml", SCHEMA);
    stage.write("modules/040-bare/hooks/hook.sh", BARE);
    stage.configure(&json!({"lateEnabled": "false", "bareEnabled": "true"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let (objects, revisions) = (stage.objects(), stage.kubectl("get secrets -o=name -l owner=helm"));

    let edit = json!({"lateEnabled": "true", "good": "size: large", "goodEnabled": "true", "bareEnabled": "true"});
    stage.write("edit.yaml", &manifest(&edit));
    let plan = format!("plan -f {}", stage.path("edit.yaml").display());
    let said = operator.ask_for_code(2, &plan);
    let expected = [
        "1. good runs",
        "size: small → large",
        "~ ConfigMap good",
        "data.size: small → large",
        "2. victim runs\n   hooks    hooks/hook.sh (beforeHelm), with the values of its last run\n   release  no object changes",
        "3. late is switched on, and runs (ConfigMap)",
        "+ ConfigMap late",
        "modules: 1 switched on, 2 run again; objects: 1 created, 1 changed, 0 deleted",
    ];
    assert_says(&said, &expected);

    // The same is said of a removal, of a section that breaks its schema, and of an edit that changes nothing.
    stage.write(
        "removal.yaml",
        "goodEnabled: \"false\"\nlateEnabled: \"false\"\nbareEnabled: \"false\"\nvictim: 'size: 7'\n",
    );
    let removal = format!("plan -f {}", stage.path("removal.yaml").display());
    let said = operator.ask_for_code(2, &removal);
    assert_says(
        &said,
        &[
            "1. bare is switched off (ConfigMap)",
            "2. good is removed",
            "- ConfigMap good",
            "not applied",
            "victim: ",
            "size",
        ],
    );
    stage.write(
        "same.yaml",
        &manifest(&json!({"lateEnabled": "false", "bareEnabled": "true"})),
    );
    let said = operator.ask(&format!("plan -f {}", stage.path("same.yaml").display()));
    assert_says(&said, &["nothing would change"]);

    // A plan changes nothing, and what it says comes true.
    assert_eq!(stage.objects(), objects);
    assert_eq!(stage.kubectl("get secrets -o=name -l owner=helm"), revisions);
    stage.configure(&edit);
    stage.wait_for_sizes("good:large late:small victim:small");
    let after = stage.sizes();
    operator.stop();
    assert_eq!(after, "good:large late:small victim:small");
}

#[test]
fn a_plan_on_a_terminal_has_colours_and_goes_through_the_pager() {
    let stage = Stage::build("paged");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.write("edit.yaml", "good: 'size: large'\n");
    let plan = format!("plan -f {}", stage.path("edit.yaml").display());
    let said = on_a_terminal(&stage, &plan, &[("PAGER", "sed 's/^/paged: /'")]);
    assert_says(&said, &["paged: 1. good \u{1b}[33mruns", "paged: modules: 1 run again"]);
    // A pager that is not there loses nothing.
    let said = on_a_terminal(&stage, &plan, &[("PAGER", "no-such-pager"), ("NO_COLOR", "1")]);
    assert_says(&said, &["1. good runs", "modules: 1 run again"]);
    assert!(!said.contains('\u{1b}'), "{said}");
    // A person may leave the pager early.
    on_a_terminal(&stage, &plan, &[("PAGER", "true")]);
    // A pipe is no terminal.
    assert!(!operator.ask_for_code(2, &plan).contains("paged"));
    operator.stop();
}

/// The answer to a command on a terminal with these variables. It ends with the exit code of a change.
fn on_a_terminal(stage: &Stage, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut command = process::command("script");
    let typed = format!("{} {arguments}", env!("CARGO_BIN_EXE_addon-operator"));
    command.args(["--quiet", "--return", "--command", &typed, "/dev/null"]);
    command
        .env("DEBUG_UNIX_SOCKET", stage.path("debug.socket"))
        .env("TERM", "xterm")
        .envs(variables.iter().copied());
    let output = process::run(command, None).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn a_plan_counts_the_confirmation_of_removals() {
    let stage = Stage::build("confirmed");
    for dir in ["031-one", "032-two", "033-three"] {
        stage.add_module(dir);
    }
    let flags = json!({"oneEnabled": "true", "twoEnabled": "true", "threeEnabled": "true"});
    stage.configure(&flags);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.write("edit.yaml", "apiVersion: v1\nkind: ConfigMap\ndata: {}\n");
    let plan = format!("plan -f {}", stage.path("edit.yaml").display());
    let said = operator.ask_for_code(2, &plan);
    assert_says(&said, &["held until a person confirms", "one: ", "two: ", "three: "]);
    assert!(!said.contains("is removed"), "{said}");
    let confirmed =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {addon-operator/confirm-removals: '3'}}\ndata: {}\n";
    stage.write("edit.yaml", confirmed);
    let said = operator.ask_for_code(2, &plan);
    assert_says(
        &said,
        &["one is removed", "two is removed", "three is removed", "3 deleted"],
    );
    operator.stop();
}

#[test]
fn a_plan_names_what_stands_in_its_way() {
    let stage = Stage::build("unplanned");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let said = operator.ask_in_vain("plan -f /nowhere.yaml");
    assert_says(&said, &["cannot read /nowhere.yaml"]);
    stage.write("bad.yaml", "apiVersion: v1\nkind: Secret\ndata: {}\n");
    let said = operator.ask_in_vain(&format!("plan -f {}", stage.path("bad.yaml").display()));
    assert_says(
        &said,
        &["bad.yaml", "should be a ConfigMap, but is a Secret", "config check"],
    );
    operator.stop();
}

/// A template that renders an object of the same name in two modules, if a module asks for it.
const SHARED: &str = "{{ if .Values.NAME.more }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {of: NAME}\n{{ end }}\n";

#[test]
fn a_plan_keeps_no_object_from_another_module() {
    let stage = Stage::build("unclaimed");
    for dir in ["010-good", "030-late"] {
        let (name, file) = (&dir[4..], format!("modules/{dir}/templates/b.yaml"));
        stage.add_module(dir);
        stage.write(&file, &SHARED.replace("NAME", name));
    }
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.write("edit.yaml", &manifest(&json!({"good": "more: true"})));
    let said = operator.ask_for_code(2, &format!("plan -f {}", stage.path("edit.yaml").display()));
    assert_says(&said, &["+ ConfigMap shared"]);
    stage.configure(&json!({"late": "{more: true, size: large}"}));
    stage.wait_for_sizes("good:small late:large shared:<none> victim:small");
    assert_eq!(stage.kubectl("get configmap shared -o=jsonpath={.data.of}"), "late");
    operator.stop();
}

/// A hook that waits until a file is there.
const WAITS: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n\
                     until [ -e \"$(dirname \"$0\")/go\" ]; do sleep 0.1; done\n";

#[test]
fn a_plan_beside_running_work_never_says_that_nothing_would_change() {
    let stage = Stage::build("unfinished");
    stage.write("modules/020-victim/hooks/hook.sh", WAITS);
    stage.write("modules/020-victim/hooks/go", "");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    fs_err::remove_file(stage.path("modules/020-victim/hooks/go")).unwrap();
    let edit = json!({"victim": "size: large"});
    stage.configure(&edit);
    operator.wait_for_more(&["Execute hook", "hook.sh"], 2);
    stage.write("edit.yaml", &manifest(&edit));
    let said = operator.ask_for_code(2, &format!("plan -f {}", stage.path("edit.yaml").display()));
    assert_says(&said, &["still at work", "hook.sh"]);
    stage.write("modules/020-victim/hooks/go", "");
    stage.wait_for_sizes("good:small victim:large");
    operator.stop();
}

#[test]
fn a_plan_shows_no_secret_that_the_edit_brings() {
    let stage = Stage::build("secretive");
    stage.add_module("040-url");
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\ndata: {size: 'https://u:{{ .Values.url.word }}@x/', other: {{ .Values.global.password | quote }}}\n";
    stage.write("modules/040-url/templates/a.yaml", template);
    stage.write(
        "modules/values.yaml",
        "urlEnabled: true\nglobal: {password: firstglobal}\n",
    );
    stage.write("modules/040-url/values.yaml", "url: {word: firstsecret}\n");
    let schema = "type: object\nproperties: {word: {type: string, x-secret: true}}\n";
    for name in ["values", "config-values"] {
        stage.write(&format!("modules/040-url/openapi/{name}.yaml"), schema);
    }
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let edit = json!({"url": "word: secondsecret", "global": "password: secondglobal"});
    stage.write("edit.yaml", &manifest(&edit));
    for form in ["text", "json", "yaml"] {
        let command = format!("plan -o {form} -f {}", stage.path("edit.yaml").display());
        let said = operator.ask_for_code(2, &command);
        assert_says(&said, &["data.size", "data.other", "word", "password"]);
        for secret in ["firstsecret", "secondsecret", "firstglobal", "secondglobal"] {
            assert!(!said.contains(secret), "{secret} is in: {said}");
        }
    }
    operator.stop();
}

fn manifest(data: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data}).to_string()
}

/// A hook that computes a value, asks for an object, and notes each run.
const COMPUTES: &str = r#"#!/bin/bash
if [[ $1 == --config ]]; then echo '{configVersion: v1, dryRun: true, beforeHelm: 1}'; exit; fi
echo "${ADDON_OPERATOR_DRY_RUN:-in earnest}" >>"$(dirname "$0")/runs"
size=$(jq -r .made.base "$VALUES_PATH")
echo '{"op": "add", "path": "/made/size", "value": "'"$size"'"}' >"$VALUES_JSON_PATCH_PATH"
echo '{"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-hook-'"$size"'", "namespace": "'"$ADDON_OPERATOR_NAMESPACE"'"}}}' >"$KUBERNETES_PATCH_PATH"
"#;

#[test]
fn a_hook_that_allows_it_is_tried_and_nothing_that_it_asks_for_is_done() {
    let stage = Stage::build("tried");
    stage.add_module("040-made");
    stage.write(
        "modules/values.yaml",
        "goodEnabled: true\nvictimEnabled: true\nmadeEnabled: true\n",
    );
    stage.write("modules/040-made/values.yaml", "made: {size: small, base: small}\n");
    stage.write("modules/040-made/hooks/compute.sh", COMPUTES);
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.write("edit.yaml", &manifest(&json!({"made": "base: large"})));
    let said = operator.ask_for_code(2, &format!("plan -f {}", stage.path("edit.yaml").display()));
    let expected = [
        "base: small → large",
        "size: small → large",
        "hooks/compute.sh (beforeHelm), tried",
        "asks for: CreateOrUpdate ConfigMap ",
        "/by-hook-large",
        "data.size: small → large",
    ];
    assert_says(&said, &expected);
    let runs = fs_err::read_to_string(stage.path("modules/040-made/hooks/runs")).unwrap();
    assert_eq!(runs, "in earnest\ntrue\n");
    assert_eq!(stage.kubectl("get configmap by-hook-large --ignore-not-found"), "");
    stage.configure(&json!({"made": "base: large"}));
    stage.wait_for_sizes("good:small made:large victim:small");
    stage.kubectl("get configmap by-hook-large");
    operator.stop();
}
