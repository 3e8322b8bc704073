//! Programs on a file system that hangs, because its server never answers.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};

use super::*;

/// A mounted file system in which every call hangs.
struct Dead {
    dir: TempDir,
    _server: OwnedFd,
}

impl Dead {
    fn mount() -> Self {
        let dir = TempDir::new().unwrap();
        let server = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let server = server.expect("a test of a dead disk opens /dev/fuse, which takes root");
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let server_number = server.as_raw_fd();
        let options = format!("fd={server_number},rootmode=40000,user_id={user},group_id={group}");
        let options = CString::new(options).unwrap();
        let mounted = rustix::mount::mount("dead", dir.path(), "fuse", MountFlags::NODEV, options.as_c_str());
        mounted.expect("a test of a dead disk mounts one, which takes root");
        Self { dir, _server: server }
    }

    fn program(&self) -> Spawn {
        Spawn::new(self.dir.path().join("hook"), LONG)
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        rustix::mount::unmount(self.dir.path(), UnmountFlags::DETACH).unwrap();
    }
}

#[tokio::test]
async fn programs_that_do_not_get_started_hold_up_no_other_and_can_be_cancelled() {
    let dead = Dead::mount();
    let spawner = Spawner::new().unwrap();
    let cancel = CancellationToken::new();
    let stuck = futures::future::join_all((0..3).map(|_| spawner.run(dead.program(), &cancel)));
    let others = async {
        until("all of them hang", || spawner.nursery().births() > 0).await;
        for _ in 0..3 {
            let other = spawner.run(bash("echo here"), &CancellationToken::new()).await.unwrap();
            assert_eq!(other.stdout.text(), "here\n");
        }
        until("each has a thread for itself", || spawner.nursery().births() == 3).await;
        cancel.cancel();
    };
    let (stuck, ()) = tokio::join!(stuck, others);
    for run in stuck {
        assert!(
            matches!(run, Err(ProcessError::Cancelled { finished: None, .. })),
            "{run:?}"
        );
    }
    until("they are killed", || spawner.nursery().births() == 0).await;
}

#[tokio::test]
async fn a_program_that_does_not_get_started_fails_at_its_deadline_by_name() {
    let dead = Dead::mount();
    let spawner = Spawner::new().unwrap();
    let deadline = Duration::from_millis(300);
    let spawn = Spawn {
        deadline,
        ..dead.program()
    };
    let program = spawn.program.display().to_string();
    let error = spawner.run(spawn, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot start {program}: nothing happened within 300ms")
    );
    assert!(error.hint().unwrap().contains("file system"));
    until("it is killed", || spawner.nursery().births() == 0).await;
}
