//! A container's process on the agent's side: it is started through the init, signalled and waited for.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use fs_err as fs;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::spec::{PROCESS, SPEC, Spec};
use crate::process::{self, Bond, Bound};
use crate::space::Network;

/// A running container.
#[derive(Debug)]
pub(super) struct Child {
    spec: PathBuf,
    /// A handle of the container's init, which ends when the container ends.
    init: OwnedFd,
    process: PathBuf,
}

/// A future of the container's exit code, which comes once.
#[derive(Debug)]
pub(super) struct End(oneshot::Receiver<u8>);

impl End {
    /// Waits for the end and returns the exit code.
    pub(super) async fn come(&mut self) -> i32 {
        // The waiting thread ends only after it has sent the code.
        (&mut self.0).await.map_or(LOST, i32::from)
    }
}

impl Child {
    /// Starts a container; its output is appended to `log`.
    pub(super) fn start(spec: &Spec, network: &Network, log: &Path) -> io::Result<(Self, End)> {
        fs::create_dir_all(&spec.folder)?;
        let file = spec.folder.join(SPEC);
        fs::write(&file, serde_json::to_vec(spec)?)?;
        // The environment may have secrets.
        fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        let _ = fs::remove_file(spec.process_file());
        let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = process::command("/proc/self/exe");
        command
            .args([OsString::from("pod-init"), file.clone().into()])
            .env_clear();
        command.stdout(log.file().try_clone()?).stderr(log.into_parts().0);
        network.place(&mut command);
        let bound = Bound::start(command, Bond::Group)?;
        let (init, ended) = held(bound)?;
        let child = Self {
            spec: file,
            init,
            process: spec.process_file(),
        };
        Ok((child, End(ended)))
    }

    /// Asks the container to stop, and kills it when it has not stopped in time.
    pub(super) async fn stop(&self, end: &mut End, grace: Duration) -> i32 {
        if let Some(first) = self.first().await.and_then(Pid::from_raw) {
            // The process's id may be reused only after its init, which waits for it, has ended. The next lines wait
            // for that end.
            if let Ok(first) = pidfd_open(first, PidfdFlags::empty()) {
                let _ = pidfd_send_signal(first.as_fd(), Signal::TERM);
            }
        }
        if let Ok(code) = timeout(grace, end.come()).await {
            return code;
        }
        let _ = pidfd_send_signal(self.init.as_fd(), Signal::KILL);
        end.come().await
    }

    /// The id of the container's first process on the machine, as soon as it exists.
    async fn first(&self) -> Option<i32> {
        for _ in 0..TRIES {
            if let Ok(text) = fs::read_to_string(&self.process) {
                return text.trim().parse().ok();
            }
            if pidfd_send_signal(self.init.as_fd(), Signal::CONT).is_err() {
                return None;
            }
            sleep(LOOK).await;
        }
        None
    }

    /// The handle for running commands in the container.
    pub(super) async fn inside(&self) -> Option<Inside> {
        Some(Inside {
            spec: self.spec.clone(),
            first: self.first().await?,
        })
    }
}

/// A handle for running commands in a running container.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    spec: PathBuf,
    first: i32,
}

/// A command in a container; dropping it kills the command.
#[derive(Debug)]
pub(super) struct Running {
    init: OwnedFd,
    pub(super) end: End,
    pub(super) input: Option<OwnedFd>,
    pub(super) output: Option<OwnedFd>,
    pub(super) errors: Option<OwnedFd>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A handle, not an id: if the command ended long ago, no other process is hit.
        let _ = pidfd_send_signal(self.init.as_fd(), Signal::KILL);
    }
}

impl Inside {
    /// The handle of the container whose files are in the folder, if the container runs.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let first = fs::read_to_string(folder.join(PROCESS)).ok()?;
        Some(Self {
            spec: folder.join(SPEC),
            first: first.trim().parse().ok()?,
        })
    }

    /// Starts a command in the container, as the container's user.
    pub(super) fn start(&self, words: &[String], [input, output, errors]: [Stdio; 3]) -> io::Result<Running> {
        let mut command = process::command("/proc/self/exe");
        command.args(["pod-init", "--within", &self.first.to_string()]);
        command.arg(&self.spec).arg("--").args(words).env_clear();
        command.stdin(input).stdout(output).stderr(errors);
        let mut bound = Bound::start(command, Bond::Group)?;
        let (input, output) = (bound.take_stdin().map(Into::into), bound.take_stdout().map(Into::into));
        let errors = bound.take_stderr().map(Into::into);
        let (init, ended) = held(bound)?;
        Ok(Running {
            init,
            end: End(ended),
            input,
            output,
            errors,
        })
    }

    /// Runs a command to its end and returns its exit code.
    pub(super) async fn run(&self, words: &[String], patience: Duration) -> io::Result<i32> {
        let mut running = self.start(words, [Stdio::null(), Stdio::null(), Stdio::null()])?;
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the command did not end in time");
        timeout(patience, running.end.come()).await.map_err(late)
    }
}

const LOOK: Duration = Duration::from_millis(10);
const TRIES: u32 = 500;

/// The exit code that is reported when the real one is unknown.
const LOST: i32 = 255;

/// Lets a thread wait for the process's end. The returned handle, unlike an id, may be signalled at any time.
fn held(mut bound: Bound) -> io::Result<(OwnedFd, oneshot::Receiver<u8>)> {
    let id = i32::try_from(bound.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| io::Error::other("a process without an id"))?;
    let handle = pidfd_open(id, PidfdFlags::empty())?;
    let (tell, ended) = oneshot::channel();
    thread::Builder::new()
        .name("testbed-waiter".to_owned())
        .spawn(move || {
            let code = bound.wait().map_or(u8::MAX, process::exit_code);
            // The receiver is gone if the pod is gone.
            let _ = tell.send(code);
        })?;
    Ok((handle, ended))
}
