//! The only place where processes are started: hooks, enabled scripts and helm.
//!
//! Every child leads a process group of its own, gets exactly the environment it is given, has a deadline, and is
//! accounted for with what it used. Whatever becomes of the caller, nothing of a run stays behind: at the deadline, at
//! a cancellation and when the future is dropped the whole group is ended. A child dies with us, too.
//! Never knows what a hook or a chart is, and never retries a program that has run.
#![expect(clippy::disallowed_methods, reason = "this is where processes are started")]

mod descendants;
mod output;
mod reaper;
mod spawner;
mod sys;
mod traced;
pub mod warrant;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub use output::{Captured, LineSink, Output};
pub use spawner::Spawner;

use output::Reader;
use spawner::{Child, Pipes};
use sys::Signal;

/// Between TERM and KILL, unless the caller says otherwise.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a program's output is still waited for after its end, when a grandchild holds the pipe open.
const LINGER: Duration = Duration::from_secs(2);
/// After KILL the pipes close by themselves, unless a descendant has left the group; that one is not waited for.
const LAST_DRAIN: Duration = Duration::from_millis(500);
/// A file that was written a moment ago may still be open in a child that has just been forked (ETXTBSY).
const BUSY_RETRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(25);

/// One program to run, complete: what is not here, the child does not get.
#[derive(Debug)]
pub struct Spawn {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment of the child.
    pub env: Vec<(OsString, OsString)>,
    /// Our own working directory if there is none.
    pub cwd: Option<PathBuf>,
    /// Nothing to read if there is none.
    pub stdin: Option<Vec<u8>>,
    pub stdout: Output,
    pub stderr: Output,
    /// How long the program may run.
    pub deadline: Duration,
    /// How long it may take to end after it was asked to.
    pub grace: Duration,
}

impl Spawn {
    /// A run without arguments, environment and input, whose output nobody reads.
    pub fn new(program: impl Into<PathBuf>, deadline: Duration) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            stdin: None,
            stdout: Output::discarded(),
            stderr: Output::discarded(),
            deadline,
            grace: GRACE,
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::start_in_group(&mut command);
        command
    }
}

/// How a program ended. Shown in the words that hook authors know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(libc::SIGHUP) => f.write_str("signal: hangup"),
            Self::Signal(libc::SIGINT) => f.write_str("signal: interrupt"),
            Self::Signal(libc::SIGABRT) => f.write_str("signal: aborted"),
            Self::Signal(libc::SIGKILL) => f.write_str("signal: killed"),
            Self::Signal(libc::SIGSEGV) => f.write_str("signal: segmentation fault"),
            Self::Signal(libc::SIGPIPE) => f.write_str("signal: broken pipe"),
            Self::Signal(libc::SIGTERM) => f.write_str("signal: terminated"),
            Self::Signal(number) => write!(f, "signal: {number}"),
        }
    }
}

/// What a run cost. Processor times and memory are the child's and those of its own children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub sys: Duration,
    pub max_rss_bytes: u64,
    pub wall: Duration,
}

/// A program that has ended, for whatever reason.
#[derive(Debug, Clone)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    pub usage: Usage,
}

impl Finished {
    /// What a program that failed says of it: all of its standard error as it was captured, or how it ended.
    pub fn complaint(&self) -> String {
        let stderr = self.stderr.text();
        match self.stderr.dropped {
            0 if stderr.trim().is_empty() => format!("cmd run: {}", self.exit),
            0 => stderr,
            more => format!("{stderr}… and {more} bytes more"),
        }
    }
}

#[derive(Debug, Error)]
pub enum ProcessError {
    #[error("cannot start {}", program.display())]
    Start {
        program: PathBuf,
        hint: Option<String>,
        source: io::Error,
    },
    #[error("cannot wait for {}", program.display())]
    Wait { program: PathBuf, source: io::Error },
    #[error("{} did not end within {deadline:?} and was ended ({})", program.display(), finished.exit)]
    TimedOut {
        program: PathBuf,
        deadline: Duration,
        finished: Box<Finished>,
    },
    /// Without a `finished` the program was not even started.
    #[error("{} was cancelled", program.display())]
    Cancelled {
        program: PathBuf,
        finished: Option<Box<Finished>>,
    },
}

impl ProcessError {
    /// What a person could do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Start { hint, .. } => hint.as_deref(),
            Self::Wait { .. } | Self::TimedOut { .. } | Self::Cancelled { .. } => None,
        }
    }
}

/// Why a program was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Deadline,
    Cancel,
}

/// Kills everything that was ever started here, tells that it was done, and ends this process with it.
pub fn end_everything(code: u8, tell: impl FnOnce()) -> ! {
    descendants::kill_all();
    tell();
    sys::exit_at_once(code.into())
}

impl Spawner {
    /// Runs the program to its end, and all of its group if it has to be ended early.
    async fn run_to_the_end(&self, mut spawn: Spawn, cancel: &CancellationToken) -> Result<Finished, ProcessError> {
        if cancel.is_cancelled() {
            return Err(ProcessError::Cancelled {
                program: spawn.program,
                finished: None,
            });
        }
        let started = Instant::now();
        let (child, pipes) = self.start(&mut spawn).await?;
        let (mut stdout, mut stderr) = (
            Reader::new(pipes.stdout, spawn.stdout),
            Reader::of_words(pipes.stderr, spawn.stderr),
        );
        let cause = {
            let input = spawn.stdin.take();
            let pumping = pin!(async {
                tokio::join!(stdout.drain(), stderr.drain(), output::feed(pipes.stdin, input));
            });
            let limits = Limits {
                deadline: started + spawn.deadline,
                grace: spawn.grace,
                cancel,
            };
            limits.supervise(&child, pumping).await
        };
        let cause = cause.map_err(|source| ProcessError::Wait {
            program: spawn.program.clone(),
            source,
        })?;
        let ended = child.reap().map_err(|source| ProcessError::Wait {
            program: spawn.program.clone(),
            source,
        })?;
        let finished = Finished {
            exit: ended.exit,
            stdout: stdout.finish(),
            stderr: stderr.finish_hiding(self.secrets()),
            usage: Usage {
                user: ended.user,
                sys: ended.sys,
                max_rss_bytes: ended.max_rss_bytes,
                wall: started.elapsed(),
            },
        };
        match cause {
            None => Ok(finished),
            Some(Cause::Deadline) => Err(ProcessError::TimedOut {
                program: spawn.program,
                deadline: spawn.deadline,
                finished: Box::new(finished),
            }),
            Some(Cause::Cancel) => Err(ProcessError::Cancelled {
                program: spawn.program,
                finished: Some(Box::new(finished)),
            }),
        }
    }

    // By unique reference, though nothing is changed: a sink need not be `Sync`, and the future has to be `Send`.
    async fn start(&self, spawn: &mut Spawn) -> Result<(Child, Pipes), ProcessError> {
        let mut busy = 0;
        loop {
            match self.spawn(spawn.command()).await {
                Ok(started) => return Ok(started),
                Err(source) if source.kind() == io::ErrorKind::ExecutableFileBusy && busy < BUSY_RETRIES => {
                    busy += 1;
                    sleep(BUSY_PAUSE).await;
                }
                Err(source) => {
                    let hint = start_hint(spawn, &source);
                    return Err(ProcessError::Start {
                        program: spawn.program.clone(),
                        hint,
                        source,
                    });
                }
            }
        }
    }
}

/// The kernel's "no such file" may mean the program, its interpreter or the working directory.
fn start_hint(spawn: &Spawn, error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::NotFound if spawn.cwd.as_deref().is_some_and(|cwd| !cwd.is_dir()) => {
            Some("the working directory does not exist".to_owned())
        }
        io::ErrorKind::NotFound if spawn.program.exists() => Some(match interpreter_of(&spawn.program) {
            Some(interpreter) => format!("bad interpreter? the first line of the file asks for `{interpreter}`"),
            None => "bad interpreter? the program needs a loader that is not here".to_owned(),
        }),
        io::ErrorKind::PermissionDenied if spawn.program.is_dir() => Some("it is a directory".to_owned()),
        io::ErrorKind::PermissionDenied => {
            Some("is the file executable, is its volume mounted without `noexec`? try chmod +x".to_owned())
        }
        _ => None,
    }
}

/// What stands behind `#!` in the first line.
fn interpreter_of(program: &Path) -> Option<String> {
    let head = fs_err::read(program).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(
        String::from_utf8_lossy(line)
            .trim_matches([' ', '\t'])
            .escape_debug()
            .to_string(),
    )
}

/// How long a run may take and who may end it.
struct Limits<'a> {
    deadline: Instant,
    grace: Duration,
    cancel: &'a CancellationToken,
}

impl Limits<'_> {
    /// Watches the child until it has ended and its output is read, or may be given up.
    ///
    /// The ended child stays in the process table meanwhile, so that the number of its group cannot become that of
    /// strangers before the last signal is sent.
    async fn supervise(
        &self,
        child: &Child,
        mut pumping: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<Option<Cause>> {
        let mut drained = false;
        let cause = tokio::select! {
            ended = pump_until(child.ended(), pumping.as_mut(), &mut drained) => { ended?; None }
            () = sleep_until(self.deadline) => Some(Cause::Deadline),
            () = self.cancel.cancelled() => Some(Cause::Cancel),
        };
        let mut patience = LINGER;
        if cause.is_some() {
            let asked = Instant::now();
            child.signal_group(Signal::Terminate);
            let obeyed = timeout(self.grace, pump_until(child.ended(), pumping.as_mut(), &mut drained)).await;
            if let Ok(ended) = obeyed {
                ended?;
            } else {
                child.signal_group(Signal::Kill);
                pump_until(child.ended(), pumping.as_mut(), &mut drained).await?;
            }
            patience = self.grace.saturating_sub(asked.elapsed());
        }
        if !drained {
            drained = timeout(patience, pumping.as_mut()).await.is_ok();
        }
        if cause.is_some() || !drained {
            child.signal_group(Signal::Kill);
        }
        if !drained && timeout(LAST_DRAIN, pumping).await.is_err() {
            tracing::warn!("a descendant of the program has left its process group and keeps its output open");
        }
        Ok(cause)
    }
}

/// Waits for the first future while the pipes are kept flowing.
async fn pump_until<T>(
    first: impl Future<Output = T>,
    mut pumping: Pin<&mut impl Future<Output = ()>>,
    drained: &mut bool,
) -> T {
    let mut first = pin!(first);
    loop {
        tokio::select! {
            value = &mut first => return value,
            () = pumping.as_mut(), if !*drained => *drained = true,
        }
    }
}

#[cfg(test)]
mod tests;
