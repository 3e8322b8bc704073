//! Programs that the operator runs: hooks, enabled scripts and helm. No other code starts a process.
//!
//! Every child leads a process group of its own, gets exactly the given environment and a mark, has a deadline, and its
//! resource usage is recorded. No process of a run is left behind: at its end, at the deadline, at a cancellation and
//! when the future is dropped, all processes that it has started are ended. A child also dies with the operator. This
//! crate knows nothing of hooks and charts, and never repeats a program that has run.
//!
//! ```text
//!   Spawn --> Spawner --> forkers --> vfork --> the program, in a group of its own
//!               |  (warrant: may this process still act?)      |
//!               v                                             v
//!             nursery <------------ its end ------------- output (pipes)
//!               |
//!               +-- descendants, table, mark   find all that a run has started
//!               +-- undertaker, reaper         wait for the ends that no task waits for
//! ```
//!
//! Begin with `Spawner::run`: it is the life of one program, from its start to the last of its descendants.

mod descendants;
mod forkers;
mod mark;
mod nursery;
mod ourselves;
mod output;
mod program;
mod reaper;
mod spawner;
mod starting;
mod sys;
mod table;
mod traced;
mod undertaker;
mod vfork;
pub mod warrant;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;

use thiserror::Error;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub use ourselves::{end_everything, end_runs_of_the_dead, prepare_this_process};
pub use output::{Captured, LineSink, Output};
pub use spawner::Spawner;
pub use starting::{exhausted, windows_ends};

use descendants::Descendants;
use output::Reader;
use spawner::Child;
use sys::{Pid, Signal};

/// The default time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long output is read after a program's end, if a descendant keeps the pipe open.
const LINGER: Duration = Duration::from_secs(2);
/// How long output is read after SIGKILL. Only a descendant outside of the group can keep the pipe open then.
const LAST_DRAIN: Duration = Duration::from_millis(500);
/// How long the search for descendants may delay SIGTERM to the program.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// The longest wait for processes that a program has left behind and that do not end.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// A program to run; the child gets nothing else.
#[derive(Debug)]
pub struct Spawn {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment of the child.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; none for the operator's own.
    pub cwd: Option<PathBuf>,
    /// Standard input; none for an empty one.
    pub stdin: Option<Vec<u8>>,
    pub stdout: Output,
    pub stderr: Output,
    /// The time limit of the run.
    pub deadline: Duration,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Spawn {
    /// A run without arguments, environment and input, whose output is discarded.
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
}

/// The end of a program. Its text form is the one that hook authors know.
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

/// The resource usage of a run. Processor times and memory include those child processes that the program waited for.
/// The memory is at least the operator's own peak, which the child borrowed before it ran the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub sys: Duration,
    pub max_rss_bytes: u64,
    pub wall: Duration,
}

/// A program that has ended, for any reason.
#[derive(Debug, Clone)]
pub struct Finished {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
    pub usage: Usage,
}

impl Finished {
    /// The error text of a failed program: its captured standard error, or else its exit.
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
    #[error("cannot start {}: nothing happened within {waited:?}", program.display())]
    Stuck { program: PathBuf, waited: Duration },
    #[error("cannot wait for {}", program.display())]
    Wait { program: PathBuf, source: io::Error },
    #[error("{} did not end within {deadline:?} and was ended ({})", program.display(), finished.exit)]
    TimedOut {
        program: PathBuf,
        deadline: Duration,
        finished: Box<Finished>,
    },
    /// Without `finished` the program was not even started.
    #[error("{} was cancelled", program.display())]
    Cancelled {
        program: PathBuf,
        finished: Option<Box<Finished>>,
    },
}

impl ProcessError {
    /// The remedies for a person.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Start { hint, .. } => hint.as_deref(),
            Self::Stuck { .. } => Some(STUCK_HINT),
            Self::Wait { .. } | Self::TimedOut { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// Whether the program could not be started for lack of a resource, so that it is not at fault.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::Start { source, .. } if exhausted(source).is_some())
    }
}

const STUCK_HINT: &str =
    "does the file system answer on which the program and its interpreter are? see `mount`, and the volumes of the pod";

/// Why the operator ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    Deadline,
    Cancel,
}

impl Spawner {
    /// Runs the program to its end. If it has to be ended early, its whole group is ended.
    async fn run_to_the_end(&self, mut spawn: Spawn, cancel: &CancellationToken) -> Result<Finished, ProcessError> {
        if cancel.is_cancelled() {
            return Err(ProcessError::Cancelled {
                program: spawn.program,
                finished: None,
            });
        }
        let started = Instant::now();
        let mark = self.marks().next();
        let (child, pipes) = self.start(&mut spawn, &mark, cancel).await?;
        let mut left = Leftovers::of(self.descendants(mark));
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
            limits.supervise(&child, &mut left, pumping).await
        };
        let (cause, patience) = cause.map_err(|source| ProcessError::Wait {
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
        left.end(patience).await;
        match cause {
            None => Ok(finished),
            Some(EndedBy::Deadline) => Err(ProcessError::TimedOut {
                program: spawn.program,
                deadline: spawn.deadline,
                finished: Box::new(finished),
            }),
            Some(EndedBy::Cancel) => Err(ProcessError::Cancelled {
                program: spawn.program,
                finished: Some(Box::new(finished)),
            }),
        }
    }
}

/// The deadline and the cancellation of a run.
struct Limits<'a> {
    deadline: Instant,
    grace: Duration,
    cancel: &'a CancellationToken,
}

impl Limits<'_> {
    /// Waits until the child has ended and its output is read, or is given up. Returns how long its descendants may
    /// still run.
    ///
    /// The ended child stays in the process table meanwhile, so that its group id cannot be reused before the last
    /// signal is sent.
    async fn supervise(
        &self,
        child: &Child,
        left: &mut Leftovers,
        mut pumping: Pin<&mut impl Future<Output = ()>>,
    ) -> io::Result<(Option<EndedBy>, Duration)> {
        let mut drained = false;
        let cause = tokio::select! {
            ended = pump_until(child.ended(), pumping.as_mut(), &mut drained) => { ended?; None }
            () = sleep_until(self.deadline) => Some(EndedBy::Deadline),
            () = self.cancel.cancelled() => Some(EndedBy::Cancel),
        };
        let mut patience = LINGER;
        if cause.is_some() {
            let asked = Instant::now();
            left.ask_to_end(child.pid()).await;
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
        let waiting = Instant::now();
        if !drained {
            drained = timeout(patience, pumping.as_mut()).await.is_ok();
        }
        let patience = patience.saturating_sub(waiting.elapsed());
        if cause.is_some() || !drained {
            child.signal_group(Signal::Kill);
        }
        if !drained {
            // The process that holds the output open has left the group.
            left.end(Duration::ZERO).await;
            if timeout(LAST_DRAIN, pumping).await.is_err() {
                tracing::warn!("a descendant of the program cannot be ended and keeps its output open");
            }
        }
        Ok((cause, if cause.is_some() { Duration::ZERO } else { patience }))
    }
}

/// The other processes that a run has started.
struct Leftovers(Descendants);

impl Leftovers {
    fn of(descendants: Descendants) -> Self {
        Self(descendants)
    }

    /// Records all descendants before their parents end, and sends SIGTERM to those outside of the group.
    async fn ask_to_end(&mut self, leader: Pid) {
        let mut descendants = self.0.clone();
        let looking = spawn_blocking(move || {
            let asked = descendants.ask_beyond(leader);
            (descendants, asked)
        });
        // After a time-out the process table does not answer; an error means that the operator is ending.
        if let Ok(Ok((seen, asked))) = timeout(FIRST_LOOK, looking).await {
            self.0 = seen;
            if let Err(error) = asked {
                tracing::warn!(%error, "Some descendants of a program cannot be asked to end");
            }
        }
    }

    /// Ends the descendants after `patience`, in which they may end by themselves.
    async fn end(&self, patience: Duration) {
        let descendants = self.0.clone();
        let ending = spawn_blocking(move || undertaker::tell(descendants.end(patience)));
        // If the end takes longer, the blocking thread goes on alone.
        drop(timeout(patience + LAST_LOOK, ending).await);
    }
}

/// Waits for the first future while the pipes are read.
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
