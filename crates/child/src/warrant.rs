//! The time until which this process may act. The part that holds the lease sets it, every fork and every write checks
//! it, and a thread of its own watches it.
//!
//! It uses a clock that also runs while the machine sleeps, and a check only reads an atomic number. Must never allow
//! an action because the part that would forbid it was late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use addon_core::release::tenure::{Holder, Tenure};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use thiserror::Error;

/// The exit code of a process that ended itself because its lease had run out and another replica may lead.
pub const OVERDUE: u8 = 75;

/// No limit: for an operator without an election, and for a standby, which only reads.
const NEVER: u64 = u64::MAX;

/// A time since the boot of the computer.
pub type Moment = Duration;

/// The clock of warrants.
pub fn boot_time() -> Moment {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The permission to act on the cluster. Clones share it.
#[derive(Debug, Clone)]
pub struct Warrant(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The time from which nothing may begin, in microseconds since the boot of the computer.
    begins_until: AtomicU64,
    /// The time from which another replica may lead, in microseconds since the boot of the computer.
    ends: AtomicU64,
    term: OnceLock<Term>,
}

/// A period in which this process leads.
#[derive(Debug)]
pub struct Term {
    /// The identity of the leader.
    pub holder: Holder,
    /// The time after which no process of an earlier leader can be running.
    pub clear: Moment,
}

/// The error that the lease has run out.
#[derive(Debug, Clone, Copy, Error)]
#[error("our lease has run out: another replica may lead")]
pub struct RunOut;

impl Default for Warrant {
    fn default() -> Self {
        Self(Arc::new(Shared {
            begins_until: AtomicU64::new(NEVER),
            ends: AtomicU64::new(NEVER),
            term: OnceLock::new(),
        }))
    }
}

impl Warrant {
    /// Extends the warrant: work may begin until the first time, and must be over at the second.
    pub fn extend(&self, begins_until: Moment, ends: Moment) {
        self.0.ends.store(micros(ends), Ordering::SeqCst);
        self.0.begins_until.store(micros(begins_until), Ordering::SeqCst);
    }

    /// Sets the leadership to which this warrant belongs, for its whole life.
    pub fn name(&self, term: Term) {
        self.0.term.get_or_init(|| term);
    }

    /// Revokes the warrant: nothing may begin from now on, and running work has its time to end.
    pub fn revoke(&self) {
        self.0.begins_until.store(0, Ordering::SeqCst);
    }

    /// Ends the warrant because none of our work runs any more.
    pub fn lay_down(&self) {
        self.0.begins_until.store(0, Ordering::SeqCst);
        self.0.ends.store(NEVER, Ordering::SeqCst);
    }

    /// Whether work may begin now.
    pub fn may_begin(&self) -> Result<(), RunOut> {
        until(self.0.begins_until.load(Ordering::SeqCst))
    }

    /// Whether running work may still write.
    pub fn may_write(&self) -> Result<(), RunOut> {
        until(self.0.ends.load(Ordering::SeqCst))
    }

    /// The leadership, if this process was elected.
    pub fn tenure(&self) -> Option<Tenure> {
        let term = self.0.term.get()?;
        Some(Tenure {
            holder: term.holder.clone(),
            overlap: term.clear.saturating_sub(boot_time()),
        })
    }

    /// Blocks this thread until the warrant has run out, however often it was extended. Returns early if the warrant
    /// was ended.
    pub fn outlast(&self) -> Result<(), RunOut> {
        loop {
            let end = self.0.ends.load(Ordering::SeqCst);
            if end == NEVER {
                return Ok(());
            }
            until(end)?;
            let end = Duration::from_micros(end);
            let request = Timespec {
                tv_sec: i64::try_from(end.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: end.subsec_nanos().into(),
            };
            // An interrupted sleep is repeated.
            let _ = clock_nanosleep_absolute(ClockId::Boottime, &request);
        }
    }
}

fn until(end: u64) -> Result<(), RunOut> {
    if micros(boot_time()) < end { Ok(()) } else { Err(RunOut) }
}

fn micros(moment: Moment) -> u64 {
    u64::try_from(moment.as_micros()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn nothing_begins_after_the_deadline_and_nothing_is_written_after_the_end() {
        let warrant = Warrant::default();
        assert!(
            warrant.may_begin().is_ok() && warrant.may_write().is_ok(),
            "nobody limits it"
        );
        assert!(warrant.outlast().is_ok(), "nothing has to be ended");
        let now = boot_time();
        warrant.extend(now + LONG, now + 2 * LONG);
        assert!(warrant.may_begin().is_ok() && warrant.may_write().is_ok());
        warrant.extend(now, now + LONG);
        assert!(warrant.may_begin().is_err() && warrant.may_write().is_ok());
        warrant.extend(now + LONG, now + LONG);
        warrant.revoke();
        assert!(warrant.may_begin().is_err() && warrant.may_write().is_ok());
        warrant.extend(now, now);
        assert!(warrant.may_begin().is_err() && warrant.may_write().is_err());
        assert!(warrant.outlast().is_err());
        warrant.lay_down();
        assert!(warrant.outlast().is_ok());
    }

    #[test]
    fn the_end_is_waited_for() {
        let warrant = Warrant::default();
        let end = boot_time() + Duration::from_millis(20);
        warrant.extend(end, end);
        assert!(warrant.outlast().is_err());
        assert!(boot_time() >= end);
    }
}
