//! The mark in the environment of every program of a run, which its children inherit. It identifies the descendants of
//! a run in any group or session, even for the next operator process.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sys::Pid;
use super::table;

pub(super) const VARIABLE: &str = "ADDON_OPERATOR_RUN";

/// The identity of a process that starts programs, unique on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// Identifies the process table in which the id is valid, because a container may have its own.
    space: String,
    pid: u32,
    started: u64,
}

impl Origin {
    /// The identity of this process. Without a process table the identity is incomplete, and then no process can be
    /// found by it either.
    pub(super) fn this() -> Self {
        let pid = std::process::id();
        let row = Pid::new(pid).and_then(|pid| table::row(pid).ok().flatten());
        let space = fs_err::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
        let inode = |space: String| space.chars().filter(char::is_ascii_digit).collect();
        Self {
            space: space.map(inode).unwrap_or_default(),
            pid,
            started: row.map_or(0, |row| row.started),
        }
    }

    /// The process in whose run a program with that mark was started.
    pub(super) fn of_mark(mark: &str) -> Option<Self> {
        let mut parts = mark.split('-');
        let (space, pid, started) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            space: space.to_owned(),
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    /// Whether the process has certainly ended. A process in another table never counts as ended.
    pub(super) fn is_gone(&self, this: &Self) -> bool {
        let there = || Pid::new(self.pid).map(table::row);
        !self.space.is_empty()
            && self.space == this.space
            && match there() {
                Some(Ok(Some(row))) => row.ended || row.started != self.started,
                Some(Ok(None)) => true,
                Some(Err(_)) | None => false,
            }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.space, self.pid, self.started)
    }
}

/// The mark of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Creates the marks of one life of the process.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    life: Arc<str>,
    made: Arc<AtomicU64>,
}

impl Marks {
    pub(super) fn new() -> Self {
        let chance = RandomState::new().build_hasher().finish();
        Self {
            life: format!("{}-{chance:016x}", Origin::this()).into(),
            made: Arc::default(),
        }
    }

    pub(super) fn next(&self) -> Mark {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Mark(format!("{}-{number}", self.life))
    }

    /// Whether the mark belongs to a run of this life.
    pub(super) fn include(&self, mark: &str) -> bool {
        mark.strip_prefix(&*self.life).is_some_and(|rest| rest.starts_with('-'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_whose_it_is() {
        let (marks, others) = (Marks::new(), Marks::new());
        let (first, second) = (marks.next(), marks.next());
        assert_ne!(first, second);
        assert!(marks.include(first.as_str()) && !others.include(first.as_str()));
        let this = Origin::this();
        assert_eq!(Origin::of_mark(first.as_str()), Some(this.clone()));
        assert!(!this.is_gone(&this));
        let replaced = Origin {
            started: this.started + 1,
            ..this.clone()
        };
        // The kernel gives no process this id.
        let ended = Origin {
            pid: 4_999_999,
            ..this.clone()
        };
        let elsewhere = Origin {
            space: "1".to_owned(),
            ..ended.clone()
        };
        assert!(replaced.is_gone(&this) && ended.is_gone(&this) && !elsewhere.is_gone(&this));
        assert_eq!(Origin::of_mark("nobody"), None);
    }
}
