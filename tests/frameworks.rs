//! The shell framework as hooks use it: small hooks are written and run with a file of binding contexts, and their
//! output is compared.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::process;

fn framework() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("frameworks/shell")
}

/// A folder with one hook in it.
struct Hook {
    folder: TempDir,
}

impl Hook {
    /// A hook with this text between the framework and `hook::run`.
    fn new(body: &str) -> Self {
        Self::sourcing(&framework().join("shell_lib.sh"), body)
    }

    fn sourcing(library: &Path, body: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let text = format!(
            "#!/usr/bin/env bash\nsource '{}'\n{body}\nhook::run \"$@\"\n",
            library.display()
        );
        let path = folder.path().join("hook.sh");
        fs_err::write(&path, text).expect("the folder can be written");
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
        Self { folder }
    }

    fn run(&self, contexts: &Value) -> Output {
        let contexts_file = self.folder.path().join("contexts it's.json");
        fs_err::write(&contexts_file, contexts.to_string()).expect("the folder can be written");
        let mut command = process::command(self.folder.path().join("hook.sh"));
        command.env("BINDING_CONTEXT_PATH", contexts_file);
        // In a folder with files an unquoted star would expand to their names.
        command.current_dir(self.folder.path());
        process::run(command, None).expect("the hook is executable, and bash is installed")
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The text of shell functions, each of which prints its name.
fn functions(names: &[&str]) -> String {
    let functions = names.iter().map(|name| format!("{name}() {{ echo {name}; }}\n"));
    functions.collect::<Vec<_>>().concat()
}

#[test]
fn each_context_calls_the_first_function_that_is_there() {
    let event = |what: &str| json!({"binding": "pods", "type": "Event", "watchEvent": what});
    let conversion = json!({"binding": "up", "type": "Conversion", "fromVersion": "g.io/v1", "toVersion": "g.io/v2"});
    let of = |binding: &str, kind: &str| json!({"binding": binding, "type": kind});
    let rows: &[(Value, &[&str])] = &[
        (json!({"binding": "onStartup"}), &["__on_startup"]),
        (
            of("pods", "Synchronization"),
            &["__on_kubernetes::pods::synchronization", "__on_kubernetes::pods"],
        ),
        (
            event("Added"),
            &[
                "__on_kubernetes::pods::added",
                "__on_kubernetes::pods::added_or_modified",
                "__on_kubernetes::pods",
            ],
        ),
        (
            event("Modified"),
            &[
                "__on_kubernetes::pods::modified",
                "__on_kubernetes::pods::added_or_modified",
                "__on_kubernetes::pods",
            ],
        ),
        (
            event("Deleted"),
            &["__on_kubernetes::pods::deleted", "__on_kubernetes::pods"],
        ),
        (
            json!({"binding": "pods", "type": "Group", "groupName": "all"}),
            &["__on_group::all", "__on_group::pods"],
        ),
        (of("every-hour", "Schedule"), &["__on_schedule::every-hour"]),
        (of("p.example.com", "Validating"), &["__on_validating::p.example.com"]),
        (of("p.example.com", "Mutating"), &["__on_mutating::p.example.com"]),
        (
            conversion,
            &["__on_conversion::up::g.io.v1::g.io.v2", "__on_conversion::up"],
        ),
        (json!({"binding": "beforeHelm"}), &[]),
        (of("pods", "Strange"), &[]),
    ];
    for (context, names) in rows {
        let mut names = names.to_vec();
        names.push("__main__");
        while !names.is_empty() {
            let output = Hook::new(&functions(&names)).run(&json!([context]));
            let report = format!("{context} {names:?}: {}", err(&output));
            assert_eq!(out(&output), format!("{}\n", names[0]), "{report}");
            assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""), "{report}");
            names.remove(0);
        }
        let unrelated = functions(&["__on_schedule::other", "__on_kubernetes::other", "helper"]);
        let output = Hook::new(&unrelated).run(&json!([context]));
        assert_eq!(
            (output.status.code(), out(&output).as_str()),
            (Some(1), ""),
            "{context}"
        );
        assert!(err(&output).contains("none of the functions"), "{}", err(&output));
        assert!(err(&output).contains("__main__"), "{}", err(&output));
    }
}

#[test]
fn contexts_are_handed_out_in_order_and_each_in_a_shell_of_its_own() {
    let hook = Hook::new(
        "seen=0\n\
         __main__() { seen=$((seen + 1)); echo \"$BINDING_CONTEXT_CURRENT_INDEX $BINDING_CONTEXT_CURRENT_BINDING $seen\"\n\
                      jq -n 'env.BINDING_CONTEXT_CURRENT_INDEX'; }",
    );
    let output = hook.run(&json!([{"binding": "one"}, {"binding": "two"}, {}]));
    assert_eq!(
        out(&output),
        "0 one 1\n\"0\"\n1 two 1\n\"1\"\n2 unknown 1\n\"2\"\n",
        "{}",
        err(&output)
    );
    let output = hook.run(&json!([]));
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(0), ""));
}

#[test]
fn the_configuration_is_printed_without_a_context() {
    let hook = Hook::new("__config__() { echo 'configVersion: v1'; }");
    let mut command = process::command(hook.folder.path().join("hook.sh"));
    command.arg("--config").env_remove("BINDING_CONTEXT_PATH");
    let output = process::run(command, None).unwrap();
    assert_eq!(
        (output.status.code(), out(&output).as_str()),
        (Some(0), "configVersion: v1\n")
    );
}

#[test]
fn strange_names_are_names_and_never_code() {
    let names = [
        "it's \"quoted\"",
        "$(touch made)",
        "`touch made`",
        "* ?",
        "a;touch made",
        "-n",
        "two\nlines",
        "",
    ];
    let hook = Hook::new("__main__() { printf '%s|' \"$BINDING_CONTEXT_CURRENT_BINDING\"; context::get binding; }");
    for name in names {
        for kind in ["Event", "Group", "Schedule", "Conversion"] {
            let output = hook.run(&json!([{"binding": name, "type": kind, "groupName": name, "watchEvent": name}]));
            assert_eq!(out(&output), format!("{name}|{name}\n"), "{}", err(&output));
        }
    }
    assert!(!hook.folder.path().join("made").exists());
}

#[test]
fn of_a_name_with_blanks_the_first_word_decides() {
    let hook = Hook::new(&functions(&["__on_kubernetes::my", "pods", "__main__"]));
    let output = hook.run(&json!([{"binding": "my pods", "type": "Event", "watchEvent": "Added"}]));
    assert_eq!(out(&output), "__on_kubernetes::my\n", "{}", err(&output));
}

#[test]
fn values_are_found_by_path() {
    let context = json!({
        "binding": "pods",
        "object": {"metadata": {
            "name": "a b", "empty": "", "null": null, "yes": true, "no": false, "large": 9_007_199_254_740_993_i64,
            "labels": {"app.kubernetes.io/name": "dotted", "dash-ed": "dashed", "it's": "quoted", "a\\b": "backslash"}}},
        "snapshots": {"my pods": [{"filterResult": {"n": 1}}, {"filterResult": {"n": 2}}]},
    });
    let rows = [
        ("object.metadata.name", "a b"),
        ("object.metadata.empty", ""),
        ("object.metadata.null", "null"),
        ("object.metadata.missing", "null"),
        ("object.metadata.missing.deeper", "null"),
        ("object.metadata.labels.dash-ed", "dashed"),
        ("object.metadata.labels.\"app.kubernetes.io/name\"", "dotted"),
        ("object.metadata.labels.'app.kubernetes.io/name'", "dotted"),
        ("object.metadata.labels.\"it's\"", "quoted"),
        ("object.metadata.labels.\"a\\b\"", "backslash"),
        (".object.metadata.name", "a b"),
        ("snapshots.\"my pods\".1.filterResult.n", "2"),
        ("snapshots.'my pods'[0].filterResult.n", "1"),
        ("snapshots.\"my pods\" | length", "2"),
        ("snapshots[\"my pods\"] | map(.filterResult.n) | join(\",\")", "1,2"),
    ];
    let hook = Hook::new("__main__() { context::get \"$WANTED\"; }");
    for (path, expected) in rows {
        let body = format!("__main__() {{ context::get {}; }}", quoted(path));
        let output = Hook::new(&body).run(&json!([context]));
        assert_eq!(out(&output), format!("{expected}\n"), "{path}: {}", err(&output));
    }
    let output = hook.run(&json!([{}]));
    assert!(
        err(&output).contains("WANTED: unbound variable"),
        "unset variables are errors: {}",
        err(&output)
    );
    let whole = Hook::new("__main__() { context::get '' | jq -c .; }").run(&json!([{"binding": "b"}]));
    assert_eq!(out(&whole), "{\"binding\":\"b\"}\n");
}

/// The text quoted as one word for bash.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn questions_are_answered_by_the_exit_status() {
    let context = json!({"binding": "b", "yes": true, "no": false, "null": null, "text": "true",
                         "list": [1, {"k": null}], "dots": {"a.b": 1}});
    let rows = [
        ("has yes", true),
        ("has null", true),
        ("has missing", false),
        ("has missing.deeper.still", false),
        ("has text.deeper", false),
        ("has list.1", true),
        ("has list.2", false),
        ("has list.1.k", true),
        ("has 'dots.\"a.b\"'", true),
        ("has dots.a.b", false),
        ("has ''", true),
        ("is_true yes", true),
        ("is_true no", false),
        ("is_true text", false),
        ("is_true missing", false),
        ("is_false no", true),
        ("is_false yes", false),
        ("is_false null", false),
        ("is_null null", true),
        ("is_null missing", true),
        ("is_null no", false),
        ("get --required yes >/dev/null", true),
        ("get --required null >/dev/null", true),
        ("get --required missing 2>/dev/null", false),
    ];
    let asked = rows
        .iter()
        .map(|(question, _)| format!("  if context::{question}; then echo true; else echo false; fi\n"));
    let body = asked.collect::<Vec<_>>().concat();
    let output = Hook::new(&format!("__main__() {{\n{body}}}")).run(&json!([context]));
    assert_eq!(err(&output), "");
    let answers = out(&output);
    assert_eq!(answers.lines().count(), rows.len());
    for ((question, expected), answer) in rows.iter().zip(answers.lines()) {
        assert_eq!(answer, expected.to_string(), "{question}");
    }
}

#[test]
fn arguments_of_jq_are_passed_on() {
    let body = "__main__() { context::jq -r --arg name two '.list[] | select(.n == $name) | .v'\n\
                context::global::jq -c 'map(.binding)'; context::jq; }";
    let contexts = json!([{"binding": "b", "list": [{"n": "one", "v": 1}, {"n": "two", "v": 2}]}]);
    let output = Hook::new(body).run(&contexts);
    assert!(
        out(&output).starts_with("2\n[\"b\"]\n{\n"),
        "{}{}",
        out(&output),
        err(&output)
    );
}

#[test]
fn a_failure_ends_the_hook_and_says_where() {
    let body = "deeper() { context::get --required object.missing; }\n\
                __main__() {\n  echo begun\n  deeper\n  echo 'never reached'\n}";
    let output = Hook::new(body).run(&json!([{"binding": "one"}, {"binding": "two"}]));
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), "begun\n"));
    let error = err(&output);
    for line in [
        "ERROR: the binding context has no 'object.missing', which is required\n",
        "hook.sh:6 in __main__: deeper\n",
        "hook.sh:3 in deeper: deeper() { context::get --required object.missing; }\n",
        "The exit status was 1\n",
    ] {
        assert!(error.contains(line), "{line:?} is missing in {error}");
    }
    assert_eq!(error.matches("Traceback").count(), 1, "told once: {error}");
}

#[test]
fn no_failure_goes_by_unseen() {
    let rows = [
        ("false | true", 1),
        ("x=$(false; echo late)", 1),
        ("ls /nowhere/*.none", 1),
        ("echo \"$undefined\"", 1),
        ("exit 7", 7),
        ("(exit 5)", 5),
    ];
    for (command, status) in rows {
        let output = Hook::new(&format!("__main__() {{ {command}; echo 'never reached'; }}")).run(&json!([{}]));
        assert_eq!(output.status.code(), Some(status), "{command}: {}", err(&output));
        assert_eq!(out(&output), "", "{command}");
    }
    let hook = Hook::new("__main__() { :; }");
    let output = hook.run(&json!("no list"));
    assert_ne!(output.status.code(), Some(0), "contexts that cannot be read");
}

#[test]
fn the_library_finds_its_folder_and_sources_all_of_it() {
    let image = tempfile::tempdir().unwrap();
    let folder = image.path().join("frameworks/shell");
    fs_err::create_dir_all(folder.join("more/..data")).unwrap();
    for name in ["shell_lib.sh", "hook.sh", "context.sh"] {
        fs_err::copy(framework().join(name), folder.join(name)).unwrap();
    }
    fs_err::write(folder.join("more/an addition.sh"), "declare -A TABLE=([key]=added)\n").unwrap();
    fs_err::write(folder.join("more/notes.txt"), "exit 3\n").unwrap();
    fs_err::write(folder.join("more/..data/hidden.sh"), "exit 3\n").unwrap();
    let body = "__main__() { echo \"${TABLE[key]}\"; }";
    let beside = image.path().join("shell_lib.sh");
    fs_err::copy(framework().join("shell_lib.sh"), &beside).unwrap();
    let linked = image.path().join("linked.sh");
    symlink("frameworks/shell/shell_lib.sh", &linked).unwrap();
    for library in [folder.join("shell_lib.sh"), beside, linked] {
        let output = Hook::sourcing(&library, body).run(&json!([{}]));
        assert_eq!(out(&output), "added\n", "{}: {}", library.display(), err(&output));
    }
}
