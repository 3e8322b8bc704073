//! Resources that run out: disk space, file descriptors, process ids, memory. Each is taken from a running operator. It
//! has to name the resource, keep running, and go on by itself when the resource is back. Needs root.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Resource, Rlimit};

use super::stage::{CONVERGED, Operator, Stage, assert_says, shown};

/// Edits the size of `victim` in the ConfigMap.
fn grow(stage: &Stage) {
    stage.configure(&serde_json::json!({"victim": "size: large\n"}));
}

/// Checks that runs of `victim` fail with an error that has these words.
fn assert_failing(operator: &Operator<'_>, words: &[&str]) {
    let told = operator.wait_for(&["ModuleRun failed", "\"module\":\"victim\""]);
    assert_says(&told, words);
}

/// Checks that the operator goes on without help when the resource is back.
fn assert_recovers(stage: &Stage, operator: Operator<'_>) {
    stage.wait_for_sizes("good:small victim:large");
    operator.wait_for_answer("/healthz", 200, &[]);
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// A small file system of the test's own.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path) -> Self {
        fs::create_dir_all(path).unwrap();
        rustix::mount::mount("small", path, "tmpfs", MountFlags::NODEV, Some(c"size=1m")).unwrap();
        Self(path.to_owned())
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk() {
    let stage = Stage::installed("full-disk");
    let disk = Disk::mount(&stage.path("tmp"));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    disk.fill();
    grow(&stage);
    assert_failing(
        &operator,
        &["No space left on device", "--tmp-dir", shown(&stage.path("tmp"))],
    );
    operator.wait_for_answer("/healthz", 200, &[]);
    assert_says(&operator.ask("module why victim"), &["No space left on device"]);
    disk.empty();
    assert_recovers(&stage, operator);
}

#[test]
fn no_file_descriptors() {
    let stage = Stage::installed("no-descriptors");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let pid = Pid::from_raw(operator.id().cast_signed()).unwrap();
    let limit = |limit| rustix::process::prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    // Files that are open stay open.
    let few = Rlimit {
        current: Some(3),
        ..rustix::process::getrlimit(Resource::Nofile)
    };
    let enough = limit(few);
    grow(&stage);
    assert_failing(
        &operator,
        &["hooks/hook.sh", "Too many open files", "raise its limit of open files"],
    );
    limit(enough);
    assert_recovers(&stage, operator);
}

/// A cgroup with a limit, if the kernel offers it.
struct Group(PathBuf);

impl Group {
    fn around(operator: &Operator<'_>, controller: &str) -> Option<Self> {
        let group = Path::new("/sys/fs/cgroup")
            .join(controller)
            .join(format!("operator-{}", operator.id()));
        fs::create_dir(&group).ok()?;
        let group = Self(group);
        group.set("cgroup.procs", &operator.id().to_string());
        Some(group)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap();
    }

    fn get(&self, file: &str) -> u64 {
        fs::read_to_string(self.0.join(file)).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that are left in the group move back to its parent.
        let parent = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            drop(fs::write(&parent, pid));
        }
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn no_numbers_for_processes() {
    let stage = Stage::installed("no-processes");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let Some(group) = Group::around(&operator, "pids") else {
        return;
    };
    group.set("pids.max", "1");
    grow(&stage);
    assert_failing(&operator, &["Resource temporarily unavailable", "limit of processes"]);
    operator.wait_for_answer("/healthz", 200, &[]);
    group.set("pids.max", "max");
    assert_recovers(&stage, operator);
}

/// A hook that uses up all memory with many processes. Each has less than the operator, because the kernel kills the
/// largest process first.
const HUNGRY: &str = r#"#!/bin/bash
if [ "$1" = --config ]; then
  echo '{"configVersion": "v1", "beforeHelm": 1}'
  exit
fi
if [ -e hungry ]; then
  for taker in {1..80}; do
    tail -n 1 < <(head -c 10M /dev/zero; exec sleep 1000) >/dev/null &
  done
  wait -n
  exit 1
fi
"#;

#[test]
fn no_memory_for_a_child() {
    let stage = Stage::installed("no-memory");
    stage.write("modules/020-victim/hooks/hook.sh", HUNGRY);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let Some(group) = Group::around(&operator, "memory") else {
        return;
    };
    let limit = group.get("memory.usage_in_bytes") + (400 << 20);
    group.set("memory.limit_in_bytes", &limit.to_string());
    stage.write("hungry", "");
    grow(&stage);
    assert_failing(&operator, &["hooks/hook.sh"]);
    operator.wait_for_answer("/healthz", 200, &[]);
    fs::remove_file(stage.path("hungry")).unwrap();
    assert_recovers(&stage, operator);
}
