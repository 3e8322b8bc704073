//! The contract with hooks and admins: recorded scenarios, played against the built operator and a real API server.
//!
//! The runner in `tests/contract/scenarios` judges; this target only calls it, and shows that it can say no. Nothing here
//! knows what a scenario expects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

use testbed::plane::User;
use testbed::{process, shared};

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

/// A scenario mostly waits for hooks and for time to pass, so that a core serves several.
const SCENARIOS_PER_CORE: usize = 2;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/scenarios")
}

/// Runs `run check` on the control plane of this test run.
fn check(operator: &str, arguments: &[&str]) -> Output {
    let plane = shared::plane();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut command = process::command(folder().join("run"));
    command.arg("check").args(["--operator", operator]);
    command.arg("--kubeconfig").arg(plane.kubeconfig(User::Admin));
    command.arg("--bin").arg(plane.programs());
    command.arg("--jobs").arg((cores * SCENARIOS_PER_CORE).to_string());
    command.args(arguments).arg(folder().join("modules"));
    process::run(command, None).expect("the runner is executable, and python3 is installed")
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{out}{err}")
}

#[test]
fn the_recorded_scenarios_come_out_as_expected() {
    let output = check(OPERATOR, &[]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn an_operator_that_does_nothing_does_not_pass() {
    let output = check("false", &["--only", "^(values-layers|helm-release|discovery-order)$"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).ends_with("0 passed, 3 failed\n"), "{}", text(&output));
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
