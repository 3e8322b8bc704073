//! The settings of our own process that all its children share: made once, before anything is started; and the end of
//! all that was started, for the caller that must be sure of it.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use super::descendants::{self, Descendants, Where, Whose};
use super::mark::Origin;
use super::spawner::Spawner;
use super::sys;
use super::undertaker;

/// Makes orphans below us our children, so that whatever a program leaves is found; and keeps what is in our memory out of
/// the hands of others: neither we nor what we start write cores, and nobody of our user reads our memory.
pub fn prepare_this_process() -> io::Result<()> {
    sys::adopt_orphans()?;
    sys::write_no_core()?;
    sys::hide_memory()
}

/// Ends processes of killed operators on this machine, which could not do it themselves.
pub fn end_runs_of_the_dead() {
    let dead = Descendants::of(Whose::Dead(Origin::this()), Where::Everywhere);
    match dead.end(Duration::ZERO) {
        Ok(0) => {}
        Ok(processes) => tracing::warn!(processes, "Ended processes that a killed operator left running"),
        failed => undertaker::tell(failed),
    }
}

/// Kills everything that was ever started here, tells that it was done, and ends this process with it.
pub fn end_everything(code: u8, tell: impl FnOnce()) -> ! {
    descendants::kill_all();
    tell();
    sys::exit_at_once(code.into())
}

impl Spawner {
    /// Kills all that was started in this life of the process and whatever that has started in turn; returns when none is
    /// left, or that much later, and says whether that is so. Needs no runtime, and never waits for the log.
    pub fn end_all_runs(&self, within: Duration) -> bool {
        self.nursery().kill_all_groups();
        let descendants = Descendants::of(Whose::Life(self.marks().clone()), self.place());
        let inline = descendants.clone();
        let (done, over) = mpsc::channel();
        // The look may have to wait for the kernel.
        let looking = std::thread::Builder::new()
            .name("descendants".to_owned())
            .spawn(move || {
                let ended = descendants.end(Duration::ZERO);
                drop(done.send(ended));
            });
        match looking {
            Ok(_) => matches!(over.recv_timeout(within), Ok(Ok(_))),
            // No more threads can be started.
            Err(_) => inline.end(Duration::ZERO).is_ok(),
        }
    }
}
