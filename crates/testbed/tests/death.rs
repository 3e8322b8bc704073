//! However the owner of a control plane ends, no process and no file stays.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use testbed::plane::{ControlPlane, Options};
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

const PATIENCE: Duration = Duration::from_mins(1);

fn program(arguments: &[&str]) -> std::process::Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_testbed"));
    command.args(arguments).stdout(Stdio::piped());
    command
}

/// Reads lines of standard output up to the first one that begins with `prefix`; returns its rest.
fn told(child: &mut Bound, prefix: &str) -> String {
    let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix(prefix).map(str::to_owned));
    line.expect("the program says how to use the control plane before it ends")
}

/// Starts `testbed up` and waits until its control plane is ready.
fn up(stderr: Stdio) -> (Bound, PathBuf) {
    let mut command = program(&["up"]);
    command.stderr(stderr);
    let mut owner = Bound::start(command, Bond::Group).unwrap();
    let kubeconfig = PathBuf::from(told(&mut owner, "export KUBECONFIG="));
    (owner, kubeconfig.parent().unwrap().to_owned())
}

/// The processes whose command line or environment contains `folder`, with their command lines.
fn users_of(folder: &Path) -> BTreeMap<u32, String> {
    let folder = folder.to_str().unwrap();
    let processes = fs_err::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbered = processes.filter_map(|process| Some((process.file_name().to_str()?.parse().ok()?, process.path())));
    let lines = numbered.filter_map(|(id, path)| Some((id, fs_err::read_to_string(path.join("cmdline")).ok()?)));
    lines
        .filter(|(_, line)| line.contains(folder))
        .map(|(id, line)| (id, line.replace('\0', " ")))
        .collect()
}

fn wait_for_no_users_of(folder: &Path) {
    wait_until(PATIENCE, "all processes of the control plane to end", || {
        let users = users_of(folder);
        if users.is_empty() {
            Ok(Some(()))
        } else {
            Err(format!("{users:#?}"))
        }
    })
    .unwrap();
}

#[test]
fn a_killed_owner_leaves_no_process_and_the_next_start_removes_its_folder() {
    let (mut owner, folder) = up(Stdio::inherit());
    assert!(
        users_of(&folder).len() >= 3,
        "etcd, API server and controllers: {:?}",
        users_of(&folder)
    );
    process::signal(owner.id(), libc::SIGKILL);
    owner.wait().unwrap();
    wait_for_no_users_of(&folder);
    drop(ControlPlane::start(&Options::default()).unwrap());
    assert!(!folder.exists());
}

#[test]
fn an_interrupted_owner_cleans_up_and_counts_that_as_its_normal_end() {
    let (mut owner, folder) = up(Stdio::inherit());
    process::signal(owner.id(), libc::SIGINT);
    assert_eq!(process::exit_code(owner.wait().unwrap()), 0);
    assert_eq!(users_of(&folder), BTreeMap::new());
    assert!(!folder.exists());
}

#[test]
fn an_interrupted_start_cleans_up() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("plane");
    let mut owner = Bound::start(program(&["up", "--dir", folder.to_str().unwrap()]), Bond::Group).unwrap();
    let server = || folder.join("kube-apiserver.log").exists().then_some(());
    wait_until(PATIENCE, "the API server to be started", || Ok::<_, String>(server())).unwrap();
    process::signal(owner.id(), libc::SIGTERM);
    assert_eq!(process::exit_code(owner.wait().unwrap()), 143);
    assert_eq!(users_of(&folder), BTreeMap::new());
    assert!(!folder.exists());
}

#[test]
fn run_lends_the_control_plane_and_exits_as_the_command_did() {
    let script = "kubectl get --raw /readyz >&2 || exit 1; helm list >&2 || exit 2; echo dir=$TESTBED_DIR; exit 7";
    let mut run = Bound::start(program(&["run", "--", "sh", "-c", script]), Bond::Group).unwrap();
    let folder = PathBuf::from(told(&mut run, "dir="));
    assert_eq!(process::exit_code(run.wait().unwrap()), 7);
    assert_eq!(users_of(&folder), BTreeMap::new());
    assert!(!folder.exists());
}

#[test]
fn run_passes_signals_on_and_stays_until_the_command_ends() {
    // The command shows that the control plane still answers after the signal. Until then it reads from a pipe of its
    // own, which never ends. A signal right before a read has bash run its trap only after that read.
    let script = "trap 'kubectl get --raw /readyz >&2; exit $((40 + $?))' TERM
                  mkfifo $TESTBED_DIR/pipe; exec 3<>$TESTBED_DIR/pipe; echo dir=$TESTBED_DIR; until read -r -t 1 line <&3; do :; done";
    let mut run = Bound::start(program(&["run", "--", "bash", "-c", script]), Bond::Group).unwrap();
    let folder = PathBuf::from(told(&mut run, "dir="));
    process::signal(run.id(), libc::SIGTERM);
    assert_eq!(process::exit_code(run.wait().unwrap()), 40);
    assert!(!folder.exists());
}

/// As cargo and its test binary: the signal ends the command, and its child has a command line of its own.
#[test]
fn run_ends_what_an_interrupted_command_leaves() {
    let parent = tempfile::tempdir().unwrap();
    let told = parent.path().join("told");
    let child = "trap 'echo asked >$TOLD; exit' TERM; sleep 600 & echo children=$$ $!; wait";
    let mut command = program(&["run", "--", "bash", "-c", "setsid bash -c \"$CHILD\" & wait"]);
    command.env("TOLD", &told).env("CHILD", child);
    let mut run = Bound::start(command, Bond::Group).unwrap();
    let children = self::told(&mut run, "children=");
    process::signal(run.id(), libc::SIGINT);
    assert_eq!(process::exit_code(run.wait().unwrap()), 130);
    assert_eq!(fs_err::read_to_string(told).unwrap(), "asked\n");
    for child in children.split(' ') {
        // A process that has ended may still wait to be reaped.
        let line = fs_err::read_to_string(format!("/proc/{child}/cmdline"));
        assert!(line.as_ref().map_or(true, String::is_empty), "{line:?}");
    }
}

#[test]
fn a_control_plane_that_breaks_is_not_a_silent_one() {
    let (mut owner, folder) = up(Stdio::piped());
    let etcd = users_of(&folder)
        .into_iter()
        .find(|(_, line)| line.contains("bin/etcd"))
        .unwrap();
    process::signal(etcd.0, libc::SIGKILL);
    let complaint = BufReader::new(owner.take_stderr().unwrap()).lines().map(Result::unwrap);
    let complaint: Vec<String> = complaint.filter(|line| line.contains("error:")).collect();
    assert!(
        complaint.len() == 1 && complaint[0].contains("etcd ended (signal: 9"),
        "{complaint:?}"
    );
    assert_eq!(process::exit_code(owner.wait().unwrap()), 1);
    assert_eq!(users_of(&folder), BTreeMap::new());
    assert!(!folder.exists());
}
