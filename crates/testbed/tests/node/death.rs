//! However the owner of a node ends, no process and no mount of its pods stays.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use testbed::plane::ControlPlane;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

use super::stage::{self, PATIENCE};

/// Starts an owner in another process, with a pod that has a child process and ignores signals. Returns the owner and
/// the folder of its files.
fn owner() -> (Bound, PathBuf) {
    let mut command = process::command(env!("CARGO_BIN_EXE_testbed"));
    command.args(["up", "--node"]).stdout(Stdio::piped());
    let mut owner = Bound::start(command, Bond::Group).unwrap();
    let mut lines = BufReader::new(owner.take_stdout().unwrap()).lines();
    let kubeconfig = lines.find_map(|line| line.unwrap().strip_prefix("export KUBECONFIG=").map(PathBuf::from));
    let folder = kubeconfig
        .expect("the owner starts, or has said above what it lacks")
        .parent()
        .unwrap()
        .to_owned();
    let plane = ControlPlane::join(&folder).unwrap();
    let (image, _) = stage::push_image(&plane, "app", "1");
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "deaf" }, "spec": { "containers": [
        { "name": "main", "image": image, "args": ["trap '' TERM; sleep 100000 & echo up; wait"] },
    ] } });
    plane.admin().feed(["create", "-f", "-"], &pod.to_string()).unwrap();
    wait_until(PATIENCE, "the pod to run", || {
        let said = plane.kubectl(["logs", "deaf"]).map_err(|error| error.to_string())?;
        Ok::<_, String>(said.contains("up").then_some(()))
    })
    .unwrap();
    (owner, folder)
}

fn mounts_of(folder: &Path) -> usize {
    let table = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    table
        .lines()
        .filter(|line| line.contains(folder.to_str().unwrap()))
        .count()
}

/// The control groups whose name contains the folder of their owner.
fn groups_of(folder: &Path) -> usize {
    let name = folder.to_str().unwrap().replace('/', "+");
    let hierarchies = fs_err::read_dir("/sys/fs/cgroup").unwrap().filter_map(Result::ok);
    let folders = hierarchies
        .filter_map(|entry| std::fs::read_dir(entry.path()).ok())
        .flatten();
    let entries = folders.chain(std::fs::read_dir("/sys/fs/cgroup").unwrap());
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().contains(&name))
        .count()
}

#[test]
fn a_killed_owner_leaves_no_process_and_no_mount_and_the_next_one_removes_its_files() {
    if testbed::shared::has_no_node() {
        return;
    }
    let (mut owner, folder) = owner();
    let users = || {
        let entries = fs_err::read_dir("/proc").unwrap().filter_map(Result::ok);
        let tables = entries.filter_map(|entry| fs_err::read_to_string(entry.path().join("mountinfo")).ok());
        tables.filter(|table| table.contains(folder.to_str().unwrap())).count()
    };
    assert!(users() >= 6, "containerd, kubelet, kube-proxy, and those of the pod");
    assert_eq!(
        mounts_of(&folder),
        0,
        "the mount namespace of the machine has no new mount"
    );
    assert!(groups_of(&folder) > 0);
    process::signal(owner.id(), libc::SIGKILL);
    owner.wait().unwrap();
    wait_until(PATIENCE, "the processes of the node to end", || match users() {
        0 => Ok(Some(())),
        count => Err(format!("{count} are there")),
    })
    .unwrap();
    drop(stage::start());
    assert!(!folder.exists(), "the next start removes its files");
    assert_eq!(groups_of(&folder), 0, "and its control groups");
}

#[test]
fn an_owner_that_ends_in_order_has_removed_everything() {
    if testbed::shared::has_no_node() {
        return;
    }
    let (mut owner, folder) = owner();
    process::signal(owner.id(), libc::SIGINT);
    assert_eq!(process::exit_code(owner.wait().unwrap()), 0);
    assert!(!folder.exists());
    assert_eq!(groups_of(&folder), 0);
}
