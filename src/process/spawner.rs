//! The thread that forks. It is one and permanent, because the kernel sends the parent-death signal when the *thread*
//! that forked ends, and because who alone forks also knows without a race which children are ours.
//! Never waits for a program: it forks, and buries what nobody waits for any more.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::reaper;
use super::sys::{self, Ended, Pid, Signal};
use super::warrant::Warrant;
use crate::secrets::Secrets;

/// How often the thread looks after abandoned children, and as the first process of a container after orphans.
const ROUND: Duration = Duration::from_secs(1);

/// Starts programs. Clones share one thread; it ends with the last of them.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: mpsc::Sender<Request>,
    secrets: Secrets,
    warrant: Warrant,
}

enum Request {
    Start {
        command: Box<Command>,
        warrant: Warrant,
        home: mpsc::Sender<Self>,
        reply: oneshot::Sender<io::Result<Newborn>>,
    },
    /// Waited for by its run.
    Reaped(Pid),
    /// Killed, and nobody will wait for it.
    Abandoned(Pid),
}

impl Spawner {
    /// Starts the thread. As the first process of a container (process 1) it also waits for orphans.
    pub fn new() -> io::Result<Self> {
        let orphans = if std::process::id() == 1 {
            Orphans::Ours
        } else {
            Orphans::Others
        };
        Self::with(orphans)
    }

    pub(super) fn with(orphans: Orphans) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || Nursery::new(orphans).tend(&inbox))?;
        Ok(Self {
            requests,
            secrets: Secrets::default(),
            warrant: Warrant::default(),
        })
    }

    /// The same, by which no half of these is kept of what programs say for people.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The same, which starts nothing once this has run out.
    #[must_use]
    pub fn under(self, warrant: Warrant) -> Self {
        Self { warrant, ..self }
    }

    /// Until when it starts anything.
    pub fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// What nobody is shown of what programs say, for whoever cuts it.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Forks on the thread; returns when the program has been executed, or could not be.
    pub(super) async fn spawn(&self, command: Command) -> io::Result<(Child, Pipes)> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Start {
            command: Box::new(command),
            warrant: self.warrant.clone(),
            home: self.requests.clone(),
            reply,
        };
        self.requests.send(request).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())??.settle()
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts processes has ended")
}

/// Who waits for orphans: only the first process of a container inherits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    Ours,
    Others,
}

/// What the thread knows: every child that was started and is not waited for yet.
struct Nursery {
    orphans: Orphans,
    ours: BTreeSet<Pid>,
    abandoned: BTreeSet<Pid>,
}

impl Nursery {
    fn new(orphans: Orphans) -> Self {
        Self {
            orphans,
            ours: BTreeSet::new(),
            abandoned: BTreeSet::new(),
        }
    }

    fn tend(mut self, inbox: &mpsc::Receiver<Request>) {
        loop {
            let request = if self.orphans == Orphans::Others && self.abandoned.is_empty() {
                inbox.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
            } else {
                inbox.recv_timeout(ROUND)
            };
            match request {
                Ok(Request::Start {
                    command,
                    warrant,
                    home,
                    reply,
                }) => {
                    let allowed = warrant.may_begin().map_err(io::Error::other);
                    // A caller that has gone meanwhile drops the child, which abandons it.
                    drop(reply.send(allowed.and_then(|()| self.start(*command, home))));
                }
                Ok(Request::Reaped(pid)) => {
                    self.ours.remove(&pid);
                }
                Ok(Request::Abandoned(pid)) => {
                    self.ours.remove(&pid);
                    self.abandoned.insert(pid);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            self.abandoned.retain(|pid| matches!(sys::reap(*pid), Ok(None)));
            if self.orphans == Orphans::Ours && sys::any_zombie() {
                reaper::reap_orphans(|pid| self.ours.contains(&pid) || self.abandoned.contains(&pid));
            }
        }
    }

    fn start(&mut self, mut command: Command, home: mpsc::Sender<Request>) -> io::Result<Newborn> {
        let mut started = command.spawn()?;
        let pid = Pid::new(started.id()).ok_or_else(|| io::Error::other("the kernel gave an impossible number"))?;
        self.ours.insert(pid);
        // From here on the guard ends the group if anything fails.
        let grave = Grave {
            pid,
            waited: false,
            home,
        };
        Ok(Newborn {
            pidfd: sys::open_pidfd(pid)?,
            stdin: started.stdin.take(),
            stdout: started.stdout.take(),
            stderr: started.stderr.take(),
            grave,
        })
    }
}

/// A program as it comes from the thread, which knows no event loop.
struct Newborn {
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    grave: Grave,
}

impl Newborn {
    /// Joins the event loop.
    fn settle(self) -> io::Result<(Child, Pipes)> {
        let Self {
            pidfd,
            stdin,
            stdout,
            stderr,
            grave,
        } = self;
        let child = Child {
            pidfd: sys::watch(pidfd)?,
            grave,
        };
        let pipes = Pipes {
            stdin: stdin.map(|end| pipe::Sender::from_owned_fd(end.into())).transpose()?,
            stdout: receiver(stdout)?,
            stderr: receiver(stderr)?,
        };
        Ok((child, pipes))
    }
}

fn receiver(end: Option<impl Into<OwnedFd>>) -> io::Result<pipe::Receiver> {
    let end = end.ok_or_else(|| io::Error::other("the program was started without a pipe"))?;
    pipe::Receiver::from_owned_fd(end.into())
}

/// Our ends of the child's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// A program that was started and is not waited for yet. Dropped before that, it is killed with its group.
pub(super) struct Child {
    pidfd: AsyncFd<OwnedFd>,
    grave: Grave,
}

impl Child {
    /// Returns when the program has ended. It stays in the process table until it is reaped.
    pub(super) async fn ended(&self) -> io::Result<()> {
        self.pidfd.readable().await.map(drop)
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        sys::signal_group(self.grave.pid, signal);
    }

    /// Takes the ended program out of the process table.
    pub(super) fn reap(mut self) -> io::Result<Ended> {
        let ended = sys::reap(self.grave.pid)?.ok_or_else(|| io::Error::other("the program still runs"))?;
        self.grave.waited = true;
        Ok(ended)
    }
}

/// Sees to it that every child is waited for by somebody.
struct Grave {
    pid: Pid,
    waited: bool,
    home: mpsc::Sender<Request>,
}

impl Drop for Grave {
    fn drop(&mut self) {
        let last = if self.waited {
            Request::Reaped(self.pid)
        } else {
            sys::signal_group(self.pid, Signal::Kill);
            Request::Abandoned(self.pid)
        };
        // Without the thread our own process is ending, and the kernel buries its dead.
        drop(self.home.send(last));
    }
}
