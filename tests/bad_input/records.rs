//! `hook record` and `hook replay`: a run is written down without its secrets, and gives the same when it is repeated.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::os::unix::fs::PermissionsExt as _;

use fs_err as fs;
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Operator, PATIENCE, Stage, assert_says, shown};

const SECRET: &str = "opensesame77";
/// The same in base64, as a Secret holds it.
const PACKED: &str = "b3BlbnNlc2FtZTc3";

/// A hook that copies a value and a Secret into every file that it may write.
const HOOK: &str = r#"#!/bin/bash
if [ "$1" = --config ]; then
  cat <<'CONFIG'
configVersion: v1
beforeHelm: 1
kubernetes:
- name: keys
  apiVersion: v1
  kind: Secret
  executeHookOnEvent: []
  executeHookOnSynchronization: false
  nameSelector: {matchNames: [the-key]}
  namespace: {nameSelector: {matchNames: [NAMESPACE]}}
  jqFilter: .data
CONFIG
  exit
fi
size=$(grep -o '"size":"[a-z]*"' "$VALUES_PATH" | tail -1)
word=$(grep -o 'opensesame[0-9]*' "$VALUES_PATH" | head -1)
key=$(grep -o 'b3Blb[A-Za-z0-9]*' "$BINDING_CONTEXT_PATH" | head -1)
echo "the word is $word, the file is $(basename "$VALUES_PATH")"
echo "the key is $key" >&2
echo '[{"op": "add", "path": "/victim/seen", "value": {'"$size"', "word": "'"$word"'"}}]' > "$VALUES_JSON_PATCH_PATH"
echo '{"name": "runs", "action": "set", "value": 1, "labels": {"word": "'"$word"'"}}' > "$METRICS_PATH"
cat > "$KUBERNETES_PATCH_PATH" <<PATCH
operation: CreateOrUpdate
object: {apiVersion: v1, kind: Secret, metadata: {name: a-copy, namespace: NAMESPACE}, data: {key: "${key:-bm9uZQ==}"}}
PATCH
"#;

fn stage(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    stage.write(
        "modules/020-victim/values.yaml",
        &format!("victim: {{size: small, adminPassword: {SECRET}}}\n"),
    );
    let hook = HOOK.replace("NAMESPACE", stage.namespace().name());
    stage.write("modules/020-victim/hooks/copy.sh", &hook);
    stage.kubectl(&format!("create secret generic the-key --from-literal=key={SECRET}"));
    stage
}

fn listed(operator: &Operator<'_>) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&operator.ask("hook records -o json")).unwrap();
    answer["records"].as_array().unwrap().clone()
}

/// Waits for this many records, and returns them.
fn wait_for_records(operator: &Operator<'_>, number: usize) -> Vec<Value> {
    let look = || {
        let records = listed(operator);
        if records.len() == number {
            Ok(Some(records))
        } else {
            Err(format!("{records:?}"))
        }
    };
    wait_until(PATIENCE, &format!("{number} records"), look).unwrap()
}

/// The exit code and the output of a command without an operator.
fn said(stage: &Stage, arguments: &[&str]) -> (Option<i32>, String) {
    let output = stage.said(arguments);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), text)
}

#[test]
fn a_recorded_run_hides_secrets_and_gives_the_same_elsewhere() {
    let stage = stage("recorded");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_says(&operator.ask("hook records"), &["there are no records"]);
    let told = operator.ask("hook record hooks/copy.sh --module victim --runs 2");
    assert_says(&told, &["the next 2 runs of hook 'hooks/copy.sh' of module 'victim'"]);
    stage.configure(&json!({"victim": "size: large"}));
    stage.wait_for_sizes("good:small victim:large");
    let records = wait_for_records(&operator, 1);
    assert_eq!(records[0]["end"], json!({"exitCode": 0}), "{records:?}");
    let table = operator.ask("hook records");
    let rest = "runs to come that are recorded: 1 of hook 'hooks/copy.sh' of module 'victim'";
    assert_says(&table, &["hooks/copy.sh", "victim", "beforeHelm", "exit code 0", rest]);

    let case = operator.ask(&format!("hook records {}", records[0]["id"].as_str().unwrap()));
    assert!(!case.contains(SECRET) && !case.contains(PACKED), "{case}");
    let record: Value = serde_json::from_str(&case).unwrap();
    for (file, words) in [
        (
            "VALUES_PATH",
            &["\"adminPassword\":\"<masked>\"", "\"size\":\"large\""][..],
        ),
        ("BINDING_CONTEXT_PATH", &["\"filterResult\":\"<masked>\"", "\"keys\""]),
        ("VALUES_JSON_PATCH_PATH", &["/victim/seen", "<masked>"]),
        ("KUBERNETES_PATCH_PATH", &["a-copy", "<masked>"]),
        ("METRICS_PATH", &["runs", "<masked>"]),
    ] {
        let content = &record["files"][file];
        assert_says(content["text"].as_str().unwrap(), words);
        assert_eq!(content["masked"], true, "{file}");
    }
    assert_says(record["stdout"]["text"].as_str().unwrap(), &["the word is <masked>"]);
    assert_says(record["stderr"]["text"].as_str().unwrap(), &["the key is <masked>"]);
    // The directory of the records is closed to others.
    let on_disk = fs::metadata(stage.path("tmp/hook-records")).unwrap();
    assert_eq!(on_disk.permissions().mode() & 0o777, 0o700);
    operator.stop();

    stage.write("case.json", &case);
    let case = stage.path("case.json");
    let (code, text) = said(&stage, &["hook", "replay", shown(&case)]);
    assert_eq!(code, Some(0), "{text}");
    let masked = "note: secrets are masked in BINDING_CONTEXT_PATH, VALUES_PATH, ";
    assert_says(
        &text,
        &[
            "hook 'hooks/copy.sh' of module 'victim', recorded at",
            masked,
            "same: exit code 0",
        ],
    );

    let other = HOOK
        .replace("\"$size\"", "\"${size/large/huge}\"")
        .replace("a-copy", "another");
    stage.write("other.sh", &other.replace("NAMESPACE", stage.namespace().name()));
    let other = stage.path("other.sh");
    let (code, text) = said(&stage, &["hook", "replay", shown(&case), "--program", shown(&other)]);
    assert_eq!(code, Some(1), "{text}");
    let values = "valuesPatch[0].value.size: recorded \"large\", now \"huge\"";
    let object = "objectPatches[0].object.metadata.name: recorded \"a-copy\", now \"another\"";
    let printed = format!(
        "the file is {}",
        record["files"]["VALUES_PATH"]["name"].as_str().unwrap()
    );
    assert_says(
        &text,
        &[
            values,
            object,
            "the hook printed:",
            &printed,
            "the run differs from the recorded one",
        ],
    );

    stage.write("failing.sh", "#!/bin/sh\necho lost >&2\nexit 3\n");
    let failing = stage.path("failing.sh");
    let (code, text) = said(&stage, &["hook", "replay", shown(&case), "--program", shown(&failing)]);
    assert_eq!(code, Some(1), "{text}");
    assert_says(
        &text,
        &["end: recorded exit code 0, now exit code 3", "now nothing", "lost"],
    );
}

#[test]
fn a_case_that_is_damaged_is_refused_with_its_field() {
    let stage = stage("damaged");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.ask("hook record hooks/copy.sh --module victim");
    stage.configure(&json!({"victim": "size: large"}));
    let id = wait_for_records(&operator, 1)[0]["id"].as_str().unwrap().to_owned();
    let case = operator.ask(&format!("hook records {id}"));
    assert_says(
        &operator.ask_in_vain("hook records 2026-1"),
        &["there is no record '2026-1' any more"],
    );
    operator.stop();
    let mut record: Value = serde_json::from_str(&case).unwrap();
    record["files"]["VALUES_PATH"]["text"] = json!(5);
    let rows = [
        (case[..case.len() / 2].to_owned(), "it is no JSON"),
        (
            record.to_string(),
            "field files.VALUES_PATH.text: invalid type: integer `5`",
        ),
        (case.replace("\"hook\":", "\"hoook\":"), "field hook: it is missing"),
        (case.replace("copy.sh\",", "gone.sh\","), "cannot find the program"),
    ];
    for (text, expected) in rows {
        stage.write("case.json", &text);
        let (code, text) = said(&stage, &["hook", "replay", shown(&stage.path("case.json"))]);
        assert_eq!(code, Some(1), "{text}");
        assert_says(&text, &[expected, "hint: "]);
    }
    let (_, text) = said(&stage, &["hook", "replay", shown(&stage.path("nothing.json"))]);
    assert_says(&text, &["cannot read the record", "nothing.json"]);
}

#[test]
fn the_oldest_records_go_and_no_run_fails_for_its_record() {
    const HOOKS: usize = 22;
    let stage = Stage::build("ring");
    let hook = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n";
    for number in 1..=HOOKS {
        stage.write(&format!("modules/020-victim/hooks/h{number:02}.sh"), hook);
    }
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let refused = operator.ask_in_vain("hook record h01.sh --module victim");
    assert_says(
        &refused,
        &[
            "the hook is not recorded",
            "there is no hook 'h01.sh' of module 'victim', only: hooks/h01.sh",
        ],
    );
    assert_says(
        &operator.ask_in_vain("hook record a.sh"),
        &["there is no hook 'a.sh': the operator knows none"],
    );
    assert_says(
        &operator.ask_in_vain("hook record a --module b"),
        &["there is no module 'b'"],
    );
    for number in 1..=HOOKS {
        operator.ask(&format!("hook record hooks/h{number:02}.sh --module victim"));
    }
    stage.configure(&json!({"victim": "size: large"}));
    stage.wait_for_sizes("good:small victim:large");
    let newest_is_kept = || {
        let hooks: Vec<String> = listed(&operator)
            .iter()
            .map(|record| record["hook"].as_str().unwrap_or_default().to_owned())
            .collect();
        let is_last = hooks.last().is_some_and(|last| last == &format!("hooks/h{HOOKS}.sh"));
        if is_last {
            Ok(Some(hooks))
        } else {
            Err(format!("{hooks:?}"))
        }
    };
    let hooks = wait_until(PATIENCE, "the newest record", newest_is_kept).unwrap();
    assert_eq!(hooks.len(), 20, "{hooks:?}");
    assert_eq!(hooks[0], "hooks/h03.sh");

    // In the place of the directory is a file, so no record can be written.
    fs::remove_dir_all(stage.path("tmp/hook-records")).unwrap();
    fs::write(stage.path("tmp/hook-records"), "").unwrap();
    operator.ask("hook record hooks/h01.sh --module victim");
    stage.configure(&json!({"victim": "size: huge"}));
    stage.wait_for_sizes("good:small victim:huge");
    operator.wait_for(&["Run of a hook is not recorded", "hooks/h01.sh", "hook-records"]);
    assert_eq!(operator.records(&["Module run failed"]), [""; 0]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_hook_without_modules_is_replayed_in_its_directory() {
    let mut stage = Stage::build("aside");
    stage.serve_hooks();
    let hook = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{configVersion: v1, schedule: [{name: often, crontab: \"* * * * * *\"}]}'; exit; fi\n\
                cat neighbour > \"$METRICS_PATH\"\n";
    stage.write("hooks/sub/often.sh", hook);
    stage.write("hooks/sub/neighbour", "{\"name\": \"near\", \"set\": 1}\n");
    for (name, value) in [
        ("SHELL_OPERATOR_HOOKS_DIR", stage.path("hooks").into_os_string()),
        ("SHELL_OPERATOR_TMP_DIR", stage.path("tmp").into_os_string()),
        ("SHELL_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
        ("SHELL_OPERATOR_LISTEN_PORT", stage.port().to_string().into()),
        ("SHELL_OPERATOR_NAMESPACE", stage.namespace().name().into()),
    ] {
        stage.set(name, value);
    }
    let operator = stage.start();
    operator.wait_for(&["often"]);
    let recorded = || {
        let told = operator.try_ask("hooks hook record sub/often.sh");
        if told.contains("the next run of hook 'sub/often.sh' is recorded") {
            Ok(Some(()))
        } else {
            Err(told)
        }
    };
    wait_until(PATIENCE, "a hook that is known", recorded).unwrap();
    let records = wait_for_records(&operator, 1);
    let case = operator.ask(&format!("hook records {}", records[0]["id"].as_str().unwrap()));
    operator.stop();
    stage.write("case.json", &case);
    let case = stage.path("case.json");
    let (code, text) = said(&stage, &["hooks", "hook", "replay", shown(&case)]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("note: "), "{text}");
    stage.write("hooks/sub/neighbour", "{\"name\": \"near\", \"set\": 2}\n");
    let (code, text) = said(&stage, &["hook", "replay", shown(&case)]);
    assert_eq!(code, Some(1), "{text}");
    assert_says(&text, &["metrics[0].value: recorded 1.0, now 2.0"]);
}
