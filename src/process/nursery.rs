//! All children: those that are being started, those that run, and those that no task waits for any more. Waits for a
//! child and signals to a group are done here alone, so that no process id is used after another process may have got
//! it. Never held over anything that takes time.

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
    /// By number of the birth. The kernel tells the number of a child only once it has been executed, so it tells itself.
    births: BTreeMap<u64, Birth>,
    last_birth: u64,
    /// Each waited for by its run.
    running: BTreeSet<Pid>,
    /// Killed, without a waiting task.
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
            // The pipe does not wait, and holds all of the number or nothing.
            if self.word.read_exact(&mut number).is_ok() {
                self.told = Pid::new(u32::from_ne_bytes(number));
            }
        }
        self.told
    }
}

/// Names a birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BirthId(u64);

/// The knowledge of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// One of us waits for it.
    Ours,
    /// One of us may be about to wait for it.
    Perhaps,
    /// No child of ours.
    Nobodys,
}

impl Nursery {
    fn children(&self) -> MutexGuard<'_, Children> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A child is about to be made, and tells its number by this pipe, which does not wait.
    pub(super) fn expect(&self, word: PipeReader) -> BirthId {
        let mut children = self.children();
        children.last_birth += 1;
        let number = children.last_birth;
        children.births.insert(number, Birth { word, told: None });
        BirthId(number)
    }

    /// The child runs.
    pub(super) fn born(&self, birth: BirthId, pid: Pid) {
        let mut children = self.children();
        children.births.remove(&birth.0);
        children.running.insert(pid);
    }

    /// There is no child.
    pub(super) fn stillborn(&self, birth: BirthId) {
        self.children().births.remove(&birth.0);
    }

    /// Kills a child that does not get to run.
    pub(super) fn give_up(&self, birth: BirthId) -> io::Result<()> {
        let told = self.children().births.get_mut(&birth.0).and_then(Birth::pid);
        let Some(pid) = told else { return Ok(()) };
        // It may have been waited for meanwhile; a stranger of its number is no child of ours.
        match (sys::find(pid)?, table::row(pid)?) {
            (Some(handle), Some(row)) if row.parent == std::process::id() => sys::signal(&handle, Signal::Kill),
            _ => Ok(()),
        }
    }

    /// How many are being born right now.
    pub(super) fn births(&self) -> usize {
        self.children().births.len()
    }

    /// Takes the ended child out of the process table.
    pub(super) fn reap(&self, pid: Pid) -> io::Result<Option<Ended>> {
        let mut children = self.children();
        let ended = sys::reap(pid)?;
        if ended.is_some() {
            children.running.remove(&pid);
        }
        Ok(ended)
    }

    /// Kills the child's group; its task does not wait for it.
    pub(super) fn abandon(&self, pid: Pid, mark: Mark) {
        let mut children = self.children();
        children.running.remove(&pid);
        sys::signal_group(pid, Signal::Kill);
        children.abandoned.insert(pid, mark);
    }

    /// Waits for children without a waiting task. Returns those that have ended.
    pub(super) fn bury_abandoned(&self) -> Vec<Mark> {
        let mut children = self.children();
        let ended = children
            .abandoned
            .extract_if(.., |pid, _| !matches!(sys::reap(*pid), Ok(None)));
        ended.map(|(_, mark)| mark).collect()
    }

    /// Whether there are children without a waiting task.
    pub(super) fn has_abandoned(&self) -> bool {
        !self.children().abandoned.is_empty()
    }

    /// Kills the groups of all children. Needs neither memory nor descriptors.
    pub(super) fn kill_all_groups(&self) {
        let children = self.children();
        for pid in children.running.iter().chain(children.abandoned.keys()) {
            sys::signal_group(*pid, Signal::Kill);
        }
    }

    /// The knowledge of an ended child of that number.
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
