//! A module on a file system that hangs, such as a network volume whose server is gone. Only that module fails. Other
//! work goes on, and a stop of the operator does not wait for the file system. Needs root to mount it.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use serde_json::json;

use super::stage::{CONVERGED, Stage, assert_says};

/// A mounted file system that hangs: every process that reads it waits, because its server never answers.
#[derive(Debug)]
struct Dead {
    place: PathBuf,
    _server: OwnedFd,
}

impl Dead {
    fn over(place: &Path) -> rustix::io::Result<Self> {
        let server = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let number = server.as_raw_fd();
        let options = CString::new(format!("fd={number},rootmode=40000,user_id=0,group_id=0")).unwrap();
        rustix::mount::mount("dead", place, "fuse", MountFlags::NODEV, options.as_c_str())?;
        Ok(Self {
            place: place.to_owned(),
            _server: server,
        })
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.place, UnmountFlags::DETACH).unwrap();
    }
}

const HOOK: &str =
    "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1\nsettings: {timeout: 3s}'; fi\n";

fn grow(stage: &Stage, size: &str) {
    let section = |name: &str| (name.to_owned(), json!(format!("size: {size}\n")));
    let data: serde_json::Map<_, _> = ["good", "quiet", "victim"].map(section).into_iter().collect();
    stage.configure(&data.into());
}

#[test]
fn a_module_on_a_disk_that_does_not_answer_fails_alone_and_holds_up_no_stop() {
    let mut stage = Stage::build("dead-disk");
    stage.set("ADDON_OPERATOR_PATIENCE", "3s");
    stage.write("modules/020-victim/hooks/hook.sh", HOOK);
    // This module has only a chart, no hook.
    stage.add_module("015-quiet");
    let flags = "goodEnabled: true\nquietEnabled: true\nvictimEnabled: true\n";
    stage.write("modules/values.yaml", flags);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_sizes("good:small quiet:small victim:small");

    let dead = ["modules/015-quiet", "modules/020-victim"].map(|module| Dead::over(&stage.path(module)));
    let dead = match dead {
        [Ok(quiet), Ok(victim)] => [quiet, victim],
        refused => {
            eprintln!("skipped: nobody lets us mount a file system that does not answer: {refused:?}");
            return;
        }
    };
    for size in ["large", "huge"] {
        grow(&stage, size);
        stage.wait_for_sizes(&format!("good:{size} quiet:small victim:small"));
    }
    let told = operator.wait_for(&[
        "ModuleRun failed",
        "\"module\":\"victim\"",
        "nothing happened within 3s",
    ]);
    assert_says(&told, &["hooks/hook.sh", "file system"]);
    operator.wait_for(&["A run takes long.", "the release of module 'quiet'"]);
    operator.wait_for_answer("/healthz", 200, &[]);
    operator.stop();

    drop(dead);
    let operator = stage.start();
    stage.wait_for_sizes("good:huge quiet:huge victim:huge");
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.assert_installed(&["good", "quiet", "victim"]);
}
