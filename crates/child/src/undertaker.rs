//! The thread that reaps processes without a waiting task: children of dropped runs, their descendants, and orphans.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::descendants::{Descendants, Undead, Where, Whose};
use super::mark::Mark;
use super::nursery::Nursery;
use super::reaper::Reaper;
use super::sys;

/// The interval at which the thread looks for such processes, as long as there are any.
const ROUND: Duration = Duration::from_secs(1);

/// Whether orphans become children of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    Ours,
    Others,
}

impl Orphans {
    /// Orphans become children of the first process of a container, and of a process that has asked for it.
    pub(super) fn of_this_process() -> Self {
        if std::process::id() == 1 || sys::adopts_orphans() {
            Self::Ours
        } else {
            Self::Others
        }
    }
}

/// Starts the thread. Each message starts a round. The thread ends with the last sender.
pub(super) fn start(nursery: Arc<Nursery>, orphans: Orphans, place: Where) -> io::Result<mpsc::Sender<()>> {
    let (rounds, inbox) = mpsc::channel();
    let tend = move || {
        let (mut reaper, mut last) = (Reaper::default(), Instant::now());
        loop {
            // The first process of a container also gets orphans of other programs, without any message.
            let is_needed =
                nursery.has_abandoned() || orphans == Orphans::Ours && (std::process::id() == 1 || sys::has_children());
            let next = if is_needed {
                inbox.recv_timeout(ROUND)
            } else {
                inbox.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
            };
            if next == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
            for mark in nursery.bury_abandoned() {
                end_leftovers(mark, place);
            }
            if orphans == Orphans::Ours && last.elapsed() >= ROUND && sys::any_zombie() {
                reaper.round(&nursery);
                last = Instant::now();
            }
        }
    };
    std::thread::Builder::new().name("undertaker".to_owned()).spawn(tend)?;
    Ok(rounds)
}

fn end_leftovers(mark: Mark, place: Where) {
    tell(Descendants::of(Whose::Run(mark), place).end(Duration::ZERO));
}

/// Logs that processes of a run were ended after it.
pub(super) fn tell(ended: Result<usize, Undead>) {
    match ended {
        Ok(0) => {}
        Ok(processes) => tracing::info!(processes, "Ended processes that a program left running"),
        Err(Undead::Left(processes)) => {
            tracing::warn!(
                processes,
                "Processes that a program left running were killed and do not end"
            );
        }
        Err(Undead::Unseen(error)) => {
            tracing::warn!(%error, "Processes that a program left running cannot be found: the process table cannot be read");
        }
    }
}
