//! One process of the operator, from its start to its end, with a log of its own.
//!
//! The operator dies when the demo dies. The end of the process is detected without reaping it, so that the kernel
//! cannot give its id to another process before its group has been ended too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use fs_err as fs;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

/// The program to run as the operator.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

impl Program {
    pub(crate) fn new<A: Into<OsString>>(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            path: path.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }
}

/// A running operator.
#[derive(Debug)]
pub(crate) struct Life {
    bound: Bound,
    log: PathBuf,
    started: Instant,
}

impl Life {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let output = fs::File::create(&log)?;
        command
            .stdout(output.file().try_clone()?)
            .stderr(fs::File::into_parts(output).0);
        let program = PathBuf::from(command.get_program());
        let started = Instant::now();
        let bound =
            Bound::start(command, Bond::Group).with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { bound, log, started })
    }

    pub(crate) fn id(&self) -> u32 {
        self.bound.id()
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How long ago it was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether the process has ended without being asked.
    pub(crate) fn has_ended(&self) -> bool {
        state(self.id()).is_none_or(|state| state == 'Z')
    }

    /// Sends SIGKILL to the operator's process alone. Its children must end without our help.
    pub(crate) fn kill(self) -> anyhow::Result<()> {
        process::signal(self.id(), libc::SIGKILL);
        let gone = || Ok::<_, String>(self.has_ended().then_some(()));
        Ok(wait_until(
            Duration::from_secs(10),
            "the end of a killed operator",
            gone,
        )?)
    }

    /// Asks the operator to stop, and returns how long it took.
    pub(crate) fn stop(self, patience: Duration) -> anyhow::Result<Duration> {
        let asked = Instant::now();
        process::signal(self.id(), libc::SIGTERM);
        let gone = || Ok::<_, String>(self.has_ended().then_some(()));
        wait_until(patience, "the end of the operator after SIGTERM", gone)?;
        Ok(asked.elapsed())
    }
}

/// All processes whose environment or command line contains the path, by id and command line.
pub(crate) fn marked(mark: &Path) -> Vec<(u32, String)> {
    let mark = mark.as_os_str().as_encoded_bytes();
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = ids.filter(|id: &u32| {
        // A process that cannot be read has ended meanwhile or belongs to another user, and so is not ours.
        let carries = |file: &str| {
            let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
            bytes.windows(mark.len()).any(|window| window == mark)
        };
        *id != own && (carries("environ") || carries("cmdline"))
    });
    marked.map(|id| (id, command_line(id))).collect()
}

fn command_line(id: u32) -> String {
    let bytes = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .replace('\0', " ")
}

/// The state letter of a process, as in `ps`.
fn state(id: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    text.rsplit(')').next()?.trim_start().chars().next()
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let skipped = text.lines().count().saturating_sub(lines);
    text.lines().skip(skipped).collect::<Vec<_>>().join("\n")
}
