//! The threads that fork. They are permanent, because the kernel sends the parent-death signal when the *thread* that
//! forked ends. Usually there is one. A program on a file system that hangs blocks its thread; then another thread
//! takes over, up to a limit.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::mark::Mark;
use super::nursery::{BirthId, Nursery};
use super::program::Program;
use super::spawner::{Grave, Home, Newborn};
use super::sys::{self, Pid};
use super::table;
use super::vfork::{self, PidCell};
use super::warrant::Warrant;

/// The largest number of threads. If so many hang, the machine has lost its disks.
pub(super) const MOST: usize = 16;

/// A request to start a program.
pub(super) struct Request {
    pub(super) program: Box<Program>,
    pub(super) warrant: Warrant,
    pub(super) mark: Mark,
    pub(super) home: Home,
    pub(super) progress: Arc<Progress>,
    pub(super) reply: oneshot::Sender<io::Result<Newborn>>,
}

/// The progress of a request.
#[derive(Debug, Default)]
pub(super) struct Progress {
    is_begun: AtomicBool,
    birth: Mutex<Option<BirthId>>,
}

impl Progress {
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Acquire)
    }

    pub(super) fn birth(&self) -> Option<BirthId> {
        *self.birth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, birth: BirthId) {
        *self.birth.lock().unwrap_or_else(PoisonError::into_inner) = Some(birth);
    }
}

/// The threads that start processes. The threads end when the last sender of requests is dropped.
#[derive(Debug)]
pub(super) struct Forkers {
    inbox: Arc<Mutex<mpsc::Receiver<Request>>>,
    threads: AtomicUsize,
    nursery: Arc<Nursery>,
}

impl Forkers {
    /// Starts the first thread.
    pub(super) fn start(nursery: Arc<Nursery>) -> io::Result<(Self, mpsc::Sender<Request>)> {
        let (requests, inbox) = mpsc::channel();
        let forkers = Self {
            inbox: Arc::new(Mutex::new(inbox)),
            threads: AtomicUsize::new(0),
            nursery,
        };
        forkers.another()?;
        Ok((forkers, requests))
    }

    /// Starts another thread because a request waits, unless there are too many.
    pub(super) fn relieve(&self) -> io::Result<()> {
        // A thread is free, so the request waits for the machine and not for a thread.
        if self.nursery.births() < self.threads.load(Ordering::Acquire) {
            return Ok(());
        }
        self.another()
    }

    fn another(&self) -> io::Result<()> {
        let claimed = self
            .threads
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |threads| {
                (threads < MOST).then_some(threads + 1)
            });
        let Ok(before) = claimed else { return Ok(()) };
        let (inbox, nursery) = (Arc::clone(&self.inbox), Arc::clone(&self.nursery));
        let started = std::thread::Builder::new()
            .name(format!("forker-{before}"))
            .spawn(move || serve(&inbox, &nursery));
        if started.is_err() {
            self.threads.fetch_sub(1, Ordering::AcqRel);
        }
        started.map(drop)
    }
}

fn serve(inbox: &Mutex<mpsc::Receiver<Request>>, nursery: &Nursery) {
    loop {
        // One thread waits for a request, the others for the lock.
        let next = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        let Request {
            program,
            warrant,
            mark,
            home,
            progress,
            reply,
        } = request;
        progress.is_begun.store(true, Ordering::Release);
        if !reply.is_closed() {
            let allowed = warrant.may_begin().map_err(io::Error::other);
            // If no task waits for the reply any more, `send` fails and drops the new process, which kills it.
            drop(reply.send(allowed.and_then(|()| fork(nursery, &program, mark, home, &progress))));
        }
    }
}

fn fork(nursery: &Nursery, program: &Program, mark: Mark, home: Home, progress: &Progress) -> io::Result<Newborn> {
    let (streams, theirs) = program.streams()?;
    let cell = Arc::<PidCell>::default();
    let birth = nursery.expect(Arc::clone(&cell));
    progress.begin(birth);
    let started = vfork::start(program, &theirs, &cell);
    match started {
        Ok(pid) => nursery.born(birth, pid),
        Err(_) => nursery.stillborn(birth),
    }
    let pid = started?;
    // From here on dropping the guard ends the group if a step fails.
    let grave = Grave::new(pid, mark, home);
    until_it_left_our_memory(pid)?;
    sys::die_first(pid);
    Ok(Newborn {
        pidfd: sys::open_pidfd(pid)?,
        streams,
        grave,
    })
}

/// Returns when the child has a memory of its own, or has ended. The start returns a moment earlier, while the child
/// still shares the operator's memory. Then a kernel before 5.10 would apply the child's out-of-memory score to the
/// operator, too.
fn until_it_left_our_memory(child: Pid) -> io::Result<()> {
    while table::row(child)?.is_some_and(|row| !row.has_run && !row.ended) {
        std::thread::yield_now();
    }
    Ok(())
}
