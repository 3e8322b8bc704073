//! The contract with hooks and admins: recorded scenarios, played against the built operator and a real API server.
//!
//! The runner in `tests/contract/scenarios` judges; this target only calls it, and shows that it can say no. Nothing here
//! knows what a scenario expects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

use serde::Deserialize;
use testbed::part::Part;
use testbed::plane::User;
use testbed::{process, shared};

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

/// A scenario mostly waits for hooks and for time to pass, so that a core serves several.
const SCENARIOS_PER_CORE: usize = 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/scenarios")
}

/// Runs `run check` on scenarios of one kind, on the control plane of this test run.
fn check(operator: &Path, kind: &str, arguments: &[&str]) -> Output {
    let plane = shared::plane();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut command = process::command(folder().join("run"));
    command.args(["check", "--operator"]).arg(operator);
    command.arg("--kubeconfig").arg(plane.kubeconfig(User::Admin));
    command.arg("--bin").arg(plane.programs());
    command.arg("--jobs").arg((cores * SCENARIOS_PER_CORE).to_string());
    command.args(arguments).arg(folder().join(kind));
    process::run(command, None).expect("the runner is executable, and python3 is installed")
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}{err}")
}

/// What the runner says about one scenario.
#[derive(Debug, Deserialize)]
struct Outcome {
    name: String,
    ok: bool,
    text: String,
}

#[derive(Debug, Deserialize)]
struct Report {
    scenarios: Vec<Outcome>,
}

/// The scenarios that nothing passes yet, each with its reason: `name: reason`, in the order of the names.
fn not_yet(list: &str) -> BTreeMap<&str, &str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            line.split_once(": ")
                .expect("every line is a name, a colon and a reason")
        })
        .collect()
}

/// What is wrong: a scenario fails that has to pass, or the list says too much.
fn complaints(outcomes: &[Outcome], listed: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut unknown = listed.clone();
    let mut complaints = Vec::new();
    for Outcome { name, ok, text } in outcomes {
        match (ok, unknown.remove(name.as_str())) {
            (false, None) => complaints.push(format!("{name} differs:\n{text}")),
            (true, Some(_)) => complaints.push(format!("{name} passes: take it off the list")),
            (true, None) | (false, Some(_)) => {}
        }
    }
    complaints.extend(
        unknown
            .keys()
            .map(|name| format!("{name} is listed, and there is no such scenario")),
    );
    complaints
}

#[test]
fn the_recorded_scenarios_of_modules_come_out_as_expected() {
    let output = check(Path::new(OPERATOR), "modules", &[]);
    assert!(output.status.success(), "{}", text(&output));
}

/// What the original does with its helm comes out the same with helm 4. What the scenarios themselves ask helm is answered by
/// helm 3, which has to understand what helm 4 has written.
#[test]
fn the_recorded_scenarios_of_releases_come_out_as_expected_with_helm_4() {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    let operator = files.path().join("addon-operator");
    let helm = shared::program(Part::Helm4);
    let script = format!("#!/bin/sh\nHELM_BIN='{}' exec '{OPERATOR}' \"$@\"\n", helm.display());
    fs_err::write(&operator, script).expect("the folder can be written");
    fs_err::set_permissions(&operator, Permissions::from_mode(0o755)).expect("the file is ours");
    let only = "^(helm-.*|debug-render|module-lifecycle|restart)$";
    let output = check(&operator, "modules", &["--only", only]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn the_recorded_scenarios_of_hooks_come_out_as_expected() {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    // The name under which it was called tells the program that it serves hooks alone.
    let operator = files.path().join("shell-operator");
    symlink(OPERATOR, &operator).expect("the folder can be written");
    let report = files.path().join("report.json");
    let output = check(
        &operator,
        "hooks",
        &["--json", report.to_str().expect("the path is plain")],
    );
    let report = fs_err::read_to_string(report).unwrap_or_else(|error| panic!("{error}\n{}", text(&output)));
    let report: Report = serde_json::from_str(&report).expect("the runner writes its report");
    let present = fs_err::read_dir(folder().join("hooks")).unwrap().count();
    assert_eq!(report.scenarios.len(), present, "{}", text(&output));
    let list = fs_err::read_to_string(folder().join("hooks-not-yet.txt")).unwrap();
    let complaints = complaints(&report.scenarios, &not_yet(&list));
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn the_list_of_what_is_not_reached_can_only_shrink() {
    let outcome = |name: &str, ok| Outcome {
        name: name.to_owned(),
        ok,
        text: "seen: other".to_owned(),
    };
    let outcomes = [
        outcome("good", true),
        outcome("listed", false),
        outcome("reached", true),
        outcome("broken", false),
    ];
    let listed = not_yet("# why\ngone: renamed\nlisted: needs watches\nreached: needs queues: two\n");
    let expected = [
        "reached passes: take it off the list",
        "broken differs:\nseen: other",
        "gone is listed, and there is no such scenario",
    ];
    assert_eq!(complaints(&outcomes, &listed), expected);
    assert_eq!(listed["reached"], "needs queues: two");
}

#[test]
fn an_operator_that_does_nothing_does_not_pass() {
    let operator = Path::new("false");
    let output = check(
        operator,
        "modules",
        &["--only", "^(values-layers|helm-release|discovery-order)$"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).ends_with("0 passed, 3 failed\n"), "{}", text(&output));
    let output = check(operator, "hooks", &["--only", "^(startup-order|patch-merge)$"]);
    assert!(text(&output).ends_with("0 passed, 2 failed\n"), "{}", text(&output));
}

#[test]
fn the_list_of_reached_scenarios_is_true() {
    let readme = fs_err::read_to_string(folder().join("README.md")).unwrap();
    let reached = readme
        .split("\n## ")
        .find(|part| part.starts_with("Reached\n"))
        .unwrap();
    let table = reached
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let listed: BTreeSet<String> = table.map(ToOwned::to_owned).collect();
    let entries = fs_err::read_dir(folder().join("modules")).unwrap();
    let present = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(listed, present.collect::<BTreeSet<String>>());
}
