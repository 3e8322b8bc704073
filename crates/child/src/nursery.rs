//! All children: those that are being started, those that run, and those that no task waits for any more. A child that
//! runs its program is reaped only here, and its group is signalled only before that, so that no id is used after it
//! was reused. The lock is never held during anything slow.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mark::Mark;
use super::sys::{self, Ended, Pid, Signal};
use super::table;
use super::vfork::PidCell;

/// The children of one life of the process.
#[derive(Debug, Default)]
pub(super) struct Nursery(Mutex<Children>);

#[derive(Debug, Default)]
struct Children {
    /// The process ids of children that are being started, by the number of the start. The start itself returns the id
    /// only after exec.
    births: BTreeMap<u64, Arc<PidCell>>,
    last_birth: u64,
    /// Children whose end a run awaits.
    running: BTreeSet<Pid>,
    /// Killed children that no task waits for.
    abandoned: BTreeMap<Pid, Mark>,
}

/// The process id of a child that is being started; none if there is no child yet.
fn pid_in(cell: &PidCell) -> Option<Pid> {
    Pid::new(cell.load(Ordering::Acquire).unsigned_abs())
}

/// The number of a child that is being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BirthId(u64);

impl Nursery {
    fn children(&self) -> MutexGuard<'_, Children> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a child is about to be forked. Its process id will be in the cell before it runs.
    pub(super) fn expect(&self, cell: Arc<PidCell>) -> BirthId {
        let mut children = self.children();
        children.last_birth += 1;
        let number = children.last_birth;
        children.births.insert(number, cell);
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
        let told = self.children().births.get(&birth.0).and_then(|cell| pid_in(cell));
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

    /// Whether this ended process is one of these children: it is being started, running or abandoned, and is reaped as
    /// such.
    pub(super) fn owns(&self, pid: Pid) -> bool {
        let children = self.children();
        let mut births = children.births.values().filter_map(|cell| pid_in(cell));
        children.running.contains(&pid) || children.abandoned.contains_key(&pid) || births.any(|born| born == pid)
    }
}
