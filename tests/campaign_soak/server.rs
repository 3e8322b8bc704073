//! The API server of a control plane, killed and started again as it was.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use anyhow::Context;
use fs_err as fs;
use testbed::part::Part;
use testbed::plane::ControlPlane;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

/// Returns when it is ready. It is for the caller to keep.
pub(crate) fn restart(plane: &ControlPlane) -> anyhow::Result<Bound> {
    let words = |id: &u32| -> Vec<OsString> {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.map(|word| OsString::from_vec(word.to_vec())).collect()
    };
    let program = plane.program(Part::KubeApiserver);
    let mut running = plane.processes().into_iter().map(|id| (id, words(&id)));
    let (id, words) = running
        .find(|(_, words)| words.first().is_some_and(|first| *first == *program))
        .context("the API server runs")?;
    process::signal(id, libc::SIGKILL);
    let start = || -> anyhow::Result<Bound> {
        let log = fs::File::create(plane.folder().join("kube-apiserver-again.log"))?;
        let mut command = process::command(&program);
        command.args(&words[1..]).current_dir(plane.folder()).env_clear();
        command.stdout(log.file().try_clone()?).stderr(log.into_parts().0);
        Ok(Bound::start(command, Bond::Group)?)
    };
    let mut again = start()?;
    wait_until(Duration::from_mins(2), "the API server to be ready again", || {
        // As long as the killed one lets go of its port, the next one ends at once.
        if again.ended()?.is_some() {
            again = start()?;
        }
        let ready = plane.kubectl(["get", "--raw", "/readyz", "--request-timeout=5s"]);
        ready.map(|_| Some(())).map_err(anyhow::Error::from)
    })?;
    Ok(again)
}
