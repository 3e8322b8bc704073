//! Starts programs, and makes sure that every child is reaped. Never waits for a program to end, nor for a file system
//! that hangs.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use report::secrets::Secrets;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::descendants::{Descendants, Where, Whose};
use super::forkers::{Forkers, Progress, Request};
use super::mark::{Mark, Marks};
use super::nursery::Nursery;
use super::program::{Ours, Program};
use super::sys::{self, Ended, Pid, Signal};
use super::undertaker::{self, Orphans};
use super::warrant::Warrant;

/// How long a request waits for a thread before another thread is started.
const RELIEF: Duration = Duration::from_secs(1);

/// Starts programs. Clones share the threads, which end with the last clone.
#[derive(Debug, Clone)]
pub struct Spawner {
    home: Home,
    forkers: Arc<Forkers>,
    marks: Marks,
    place: Where,
    secrets: Secrets,
    warrant: Warrant,
}

/// Why a program was not started.
#[derive(Debug)]
pub(super) enum Unborn {
    Refused(io::Error),
    /// The start hangs: it was neither refused nor successful.
    Stuck,
    Cancelled,
}

impl Spawner {
    /// Starts the threads. In a process that adopts orphans (such as process 1 of a container) the spawner also reaps
    /// the orphans.
    pub fn new() -> io::Result<Self> {
        Self::with(Orphans::of_this_process())
    }

    pub(super) fn with(orphans: Orphans) -> io::Result<Self> {
        let nursery = Arc::new(Nursery::default());
        let place = match orphans {
            Orphans::Others => Where::Everywhere,
            Orphans::Ours => Where::Below,
        };
        let (forkers, requests) = Forkers::start(Arc::clone(&nursery))?;
        let rounds = undertaker::start(Arc::clone(&nursery), orphans, place)?;
        Ok(Self {
            home: Home {
                requests,
                rounds,
                nursery,
            },
            forkers: Arc::new(forkers),
            marks: Marks::new(),
            place,
            secrets: Secrets::default(),
            warrant: Warrant::default(),
        })
    }

    /// Masks these secrets in output that is shown, also where it is cut.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The secrets for code that cuts the output of programs.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The same spawner, bound to a warrant: it starts nothing after the warrant has expired.
    #[must_use]
    pub fn under(self, warrant: Warrant) -> Self {
        Self { warrant, ..self }
    }

    /// The warrant that permits the spawner to start programs.
    pub fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    pub(super) fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(super) fn descendants(&self, mark: Mark) -> Descendants {
        Descendants::of(Whose::Run(mark), self.place)
    }

    pub(super) fn place(&self) -> Where {
        self.place
    }

    pub(super) fn nursery(&self) -> &Nursery {
        &self.home.nursery
    }

    /// Returns when the program runs, could not be started, or was not started in time.
    pub(super) async fn spawn(
        &self,
        program: Program,
        mark: Mark,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<(Child, Pipes), Unborn> {
        let (reply, mut answer) = oneshot::channel();
        let progress = Arc::<Progress>::default();
        let request = Request {
            program: Box::new(program),
            warrant: self.warrant.clone(),
            mark,
            home: self.home.clone(),
            progress: Arc::clone(&progress),
            reply,
        };
        let gone = || Unborn::Refused(io::Error::other("the threads that start programs have ended"));
        self.home.requests.send(request).map_err(|_| gone())?;
        let why = loop {
            tokio::select! {
                newborn = &mut answer => {
                    let newborn = newborn.map_err(|_| gone())?;
                    return newborn.and_then(Newborn::settle).map_err(Unborn::Refused);
                }
                () = sleep_until(until) => break Unborn::Stuck,
                () = cancel.cancelled() => break Unborn::Cancelled,
                () = sleep(RELIEF), if !progress.is_begun() => {
                    if let Err(error) = self.forkers.relieve() {
                        tracing::warn!(%error, "Cannot start another thread that starts programs");
                    }
                }
            }
        };
        drop(answer);
        self.give_up(&progress);
        Err(why)
    }

    /// Kills a child that hangs between fork and exec; the kernel decides when it ends.
    fn give_up(&self, progress: &Progress) {
        if let Some(birth) = progress.birth()
            && let Err(error) = self.home.nursery.give_up(birth)
        {
            tracing::warn!(%error, "Cannot kill a program that has not finished its start");
        }
    }
}

/// The threads that fork and reap. They live as long as a clone of this value.
#[derive(Debug, Clone)]
pub(super) struct Home {
    requests: mpsc::Sender<Request>,
    rounds: mpsc::Sender<()>,
    nursery: Arc<Nursery>,
}

/// A child from a forking thread, not yet connected to the async runtime.
pub(super) struct Newborn {
    pub(super) pidfd: OwnedFd,
    pub(super) streams: Ours,
    pub(super) grave: Grave,
}

impl Newborn {
    /// Connects the child to the async runtime.
    fn settle(self) -> io::Result<(Child, Pipes)> {
        let Self { pidfd, streams, grave } = self;
        let child = Child {
            pidfd: sys::watch(pidfd)?,
            grave,
        };
        let pipes = Pipes {
            stdin: streams
                .stdin
                .map(|end| pipe::Sender::from_owned_fd(end.into()))
                .transpose()?,
            stdout: pipe::Receiver::from_owned_fd(streams.stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(streams.stderr.into())?,
        };
        Ok((child, pipes))
    }
}

/// The operator's ends of the child's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// A running program that is not reaped. Dropping it kills it with all that it started.
pub(super) struct Child {
    pidfd: AsyncFd<OwnedFd>,
    grave: Grave,
}

impl Child {
    /// Returns when the program has ended. It stays in the process table until it is reaped.
    pub(super) async fn ended(&self) -> io::Result<()> {
        self.pidfd.readable().await.map(drop)
    }

    pub(super) fn pid(&self) -> Pid {
        self.grave.pid
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        sys::signal_group(self.grave.pid, signal);
    }

    pub(super) fn reap(mut self) -> io::Result<Ended> {
        let ended = self.grave.home.nursery.reap(self.grave.pid)?;
        let ended = ended.ok_or_else(|| io::Error::other("the program still runs"))?;
        self.grave.mark = None;
        Ok(ended)
    }
}

/// Ensures that a child is reaped.
pub(super) struct Grave {
    pid: Pid,
    /// The mark of a child that is not reaped yet.
    mark: Option<Mark>,
    home: Home,
}

impl Grave {
    pub(super) fn new(pid: Pid, mark: Mark, home: Home) -> Self {
        Self {
            pid,
            mark: Some(mark),
            home,
        }
    }
}

impl Drop for Grave {
    fn drop(&mut self) {
        if let Some(mark) = self.mark.take() {
            self.home.nursery.abandon(self.pid, mark);
        }
        // If the reaping thread has ended, this process is ending, too, and the kernel reaps its children.
        let _ = self.home.rounds.send(());
    }
}
