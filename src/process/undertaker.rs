//! The thread that waits for processes without a waiting task: children whose run was dropped, their descendants, and
//! orphans.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::descendants::{Descendants, Undead, Where, Whose};
use super::mark::Mark;
use super::nursery::Nursery;
use super::reaper::Reaper;
use super::sys;

/// How often it looks while there are children to look after.
const ROUND: Duration = Duration::from_secs(1);

/// The process whose children orphans become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    Ours,
    Others,
}

impl Orphans {
    /// The first process of a container inherits them, and a process that has asked for it.
    pub(super) fn of_this_process() -> Self {
        if std::process::id() == 1 || sys::adopts_orphans() {
            Self::Ours
        } else {
            Self::Others
        }
    }
}

/// Starts the thread. A message begins a round; it ends with the last sender.
pub(super) fn start(nursery: Arc<Nursery>, orphans: Orphans, place: Where) -> io::Result<mpsc::Sender<()>> {
    let (rounds, inbox) = mpsc::channel();
    let tend = move || {
        let (mut reaper, mut last) = (Reaper::default(), Instant::now());
        loop {
            // The first process of a container gets orphans of strangers, too, who tell nobody.
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

/// Logs the end of processes that a run has left.
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
