//! The contract with hooks and admins: recorded scenarios are played against the built operator and a real API server.
//!
//! The runner in `tests/contract/scenarios` judges. This target only calls it, and shows that it can fail. It knows
//! nothing about the expectations of a scenario.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

use testbed::part::Part;
use testbed::plane::User;
use testbed::{process, shared};

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

/// Several scenarios share a core, because a scenario mostly waits for hooks and for time to pass.
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

/// The output without the scenarios that came out as expected.
fn failed(output: &Output) -> String {
    let text = text(output);
    let lines = text.lines().filter(|line| !line.starts_with("ok "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_recorded_scenarios_of_modules_come_out_as_expected() {
    let output = check(Path::new(OPERATOR), "modules", &[]);
    assert!(output.status.success(), "{}", failed(&output));
}

/// Scenarios recorded with the original, which has helm 3, must have the same result with helm 4. The scenarios' own
/// helm commands still use helm 3, which has to read the revisions of helm 4.
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
    assert!(output.status.success(), "{}", failed(&output));
}

#[test]
fn the_recorded_scenarios_of_hooks_come_out_as_expected() {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    // A program called `shell-operator` serves hooks without modules.
    let operator = files.path().join("shell-operator");
    symlink(OPERATOR, &operator).expect("the folder can be written");
    let output = check(&operator, "hooks", &[]);
    assert!(output.status.success(), "{}", failed(&output));
    let present = fs_err::read_dir(folder().join("hooks")).unwrap().count();
    let passed = format!("{present} passed, 0 failed\n");
    assert!(text(&output).ends_with(&passed), "{}", failed(&output));
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
