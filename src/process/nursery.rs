//! All children: those that are being started, those that run, and those that no task waits for any more. Waits for a
//! child and signals to a group happen only here, so that no id is used after it was reused. The lock is never held
//! during anything slow.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader, Read as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::mark::Mark;
use super::sys::{self, Ended, Pid, Signal};
use super::table;

/// The children of one life of the process.
#[derive(Debug, Default)]
pub(super) struct Nursery(Mutex<Children>);

#[derive(Debug, Default)]
struct Children {
    /// The children that are being started, by a number. Fork returns the id only after exec, so the child reports its
    /// id itself.
    births: BTreeMap<u64, Birth>,
    last_birth: u64,
    /// Children whose end a run awaits.
    running: BTreeSet<Pid>,
    /// Killed children that no task waits for.
    abandoned: BTreeMap<Pid, Mark>,
}

/// A child between fork and exec.
#[derive(Debug)]
struct Birth {
    word: PipeReader,
    told: Option<Pid>,
}

impl Birth {
    /// The process id of the child, if the child has reported it.
    fn pid(&mut self) -> Option<Pid> {
        if self.told.is_none() {
            let mut number = [0; size_of::<u32>()];
            // The pipe does not block, and contains the whole id or nothing.
            if self.word.read_exact(&mut number).is_ok() {
                self.told = Pid::new(u32::from_ne_bytes(number));
            }
        }
        self.told
    }
}

/// The number of a child that is being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BirthId(u64);

/// The knowledge about a process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A child of the operator that a task waits for.
    Ours,
    /// Possibly a child of the operator that a task waits for.
    Perhaps,
    /// The process is no child of the operator.
    Nobodys,
}

impl Nursery {
    fn children(&self) -> MutexGuard<'_, Children> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a child is about to be forked. It reports its id through this non-blocking pipe.
    pub(super) fn expect(&self, word: PipeReader) -> BirthId {
        let mut children = self.children();
        children.last_birth += 1;
        let number = children.last_birth;
        children.births.insert(number, Birth { word, told: None });
        BirthId(number)
    }

    /// Records that the child runs.
    pub(super) fn born(&self, birth: BirthId, pid: Pid) {
        let mut children = self.children();
        children.births.remove(&birth.0);
        children.running.insert(pid);
    }

    /// Records that there is no child.
    pub(super) fn stillborn(&self, birth: BirthId) {
        self.children().births.remove(&birth.0);
    }

    /// Kills a child whose start hangs.
    pub(super) fn give_up(&self, birth: BirthId) -> io::Result<()> {
        let told = self.children().births.get_mut(&birth.0).and_then(Birth::pid);
        let Some(pid) = told else { return Ok(()) };
        // The child may have been waited for meanwhile. Another process with its id is no child of this process.
        match (sys::find(pid)?, table::row(pid)?) {
            (Some(handle), Some(row)) if row.parent == std::process::id() => sys::signal(&handle, Signal::Kill),
            _ => Ok(()),
        }
    }

    /// The number of children that are being started.
    pub(super) fn births(&self) -> usize {
        self.children().births.len()
    }

    /// Reaps the ended child.
    pub(super) fn reap(&self, pid: Pid) -> io::Result<Option<Ended>> {
        let mut children = self.children();
        let ended = sys::reap(pid)?;
        if ended.is_some() {
            children.running.remove(&pid);
        }
        Ok(ended)
    }

    /// Kills the child's group, without a task that waits.
    pub(super) fn abandon(&self, pid: Pid, mark: Mark) {
        let mut children = self.children();
        children.running.remove(&pid);
        sys::signal_group(pid, Signal::Kill);
        children.abandoned.insert(pid, mark);
    }

    /// Reaps ended children that no task waits for, and returns their marks.
    pub(super) fn bury_abandoned(&self) -> Vec<Mark> {
        let mut children = self.children();
        let ended = children
            .abandoned
            .extract_if(.., |pid, _| !matches!(sys::reap(*pid), Ok(None)));
        ended.map(|(_, mark)| mark).collect()
    }

    /// Whether there are children that no task waits for.
    pub(super) fn has_abandoned(&self) -> bool {
        !self.children().abandoned.is_empty()
    }

    /// Kills the groups of all children. Needs neither memory nor file descriptors.
    pub(super) fn kill_all_groups(&self) {
        let children = self.children();
        for pid in children.running.iter().chain(children.abandoned.keys()) {
            sys::signal_group(*pid, Signal::Kill);
        }
    }

    /// The knowledge about an ended child's id.
    pub(super) fn know(&self, pid: Pid) -> Known {
        let mut children = self.children();
        if children.running.contains(&pid) || children.abandoned.contains_key(&pid) {
            return Known::Ours;
        }
        let told: Vec<Option<Pid>> = children.births.values_mut().map(Birth::pid).collect();
        if told.contains(&Some(pid)) {
            Known::Ours
        } else if told.contains(&None) {
            Known::Perhaps
        } else {
            Known::Nobodys
        }
    }
}
