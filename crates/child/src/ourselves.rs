//! The settings of this process that its children inherit, made once before anything is started; and the immediate end
//! of everything that was started.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use super::descendants::{self, Descendants, Where, Whose};
use super::mark::Origin;
use super::spawner::Spawner;
use super::sys;
use super::undertaker;

/// Makes orphaned descendants children of this process, so that it finds those that outlive their parents. Also keeps
/// the memory private: neither this process nor its children write core files, and other processes of the user cannot
/// read its memory.
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

/// Kills all processes that were ever started here, calls `tell`, and ends this process.
pub fn end_everything(code: u8, tell: impl FnOnce()) -> ! {
    descendants::kill_all();
    tell();
    sys::exit_at_once(code.into())
}

impl Spawner {
    /// Kills everything that was started in this life, with all descendants. Returns when none is left or the time is
    /// over; `true` if none is left. Needs no async runtime, and never waits for the log.
    pub fn end_all_runs(&self, within: Duration) -> bool {
        self.nursery().kill_all_groups();
        let descendants = Descendants::of(Whose::Life(self.marks().clone()), self.place());
        let inline = descendants.clone();
        let (done, over) = mpsc::channel();
        // The search may block in the kernel.
        let looking = std::thread::Builder::new()
            .name("descendants".to_owned())
            .spawn(move || {
                let ended = descendants.end(Duration::ZERO);
                drop(done.send(ended));
            });
        match looking {
            Ok(_) => matches!(over.recv_timeout(within), Ok(Ok(_))),
            // No thread can be started.
            Err(_) => inline.end(Duration::ZERO).is_ok(),
        }
    }
}
