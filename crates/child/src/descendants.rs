//! Finds and ends processes that runs have left: those with a run's mark, and their descendants. A process escapes only
//! if it leaves its group, its session and its parent and also clears its environment before the search. The search
//! blocks: never call it on a thread of the event loop.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use super::mark::{Mark, Marks, Origin, VARIABLE};
use super::sys::{self, Pid, Signal};
use super::table::{self, Environment, Row};

/// How long to try to end a process that does not end, for example because it waits for a dead disk.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two searches.
const PAUSE: Duration = Duration::from_millis(20);
/// The number of further searches while a process hides its environment, which some do for ever.
const HIDDEN: u32 = 3;
/// The number of further searches while a program is being started. The start may have to wait for the disk.
const STARTING: u32 = 50;

/// The largest number of searches in a row. Processes may fork between two searches.
const ROUNDS: usize = 10;

/// The runs whose processes are searched for.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// The processes of one run.
    Run(Mark),
    /// The processes of all runs in one life of this process.
    Life(Marks),
    /// The processes of all runs whose operator has ended.
    Dead(Origin),
}

impl Whose {
    fn owns(&self, mark: &str) -> bool {
        match self {
            Self::Run(run) => run.as_str() == mark,
            Self::Life(marks) => marks.include(mark),
            Self::Dead(this) => Origin::of_mark(mark).is_some_and(|origin| origin.is_gone(this)),
        }
    }
}

/// The set of processes to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Search among this process's descendants: orphans become its children.
    Below,
    /// Search the whole process table.
    Everywhere,
}

#[derive(Debug, Clone)]
pub(super) struct Descendants {
    whose: Whose,
    place: Where,
    /// The found processes by id and start time. A process that was found once is not lost when its parent ends.
    seen: BTreeSet<(Pid, u64)>,
    /// The number of searches that may follow, because a process may belong to the runs although its environment does
    /// not show that yet.
    doubts: u32,
}

impl Descendants {
    pub(super) fn of(whose: Whose, place: Where) -> Self {
        Self {
            whose,
            place,
            seen: BTreeSet::new(),
            doubts: 0,
        }
    }

    /// Finds and records the present descendants, so that none is lost when its parent ends.
    pub(super) fn look(&mut self) -> io::Result<Vec<Row>> {
        // Orphans are children of this process from the end of their parent on. So without a child there is no
        // descendant, and the process table need not be read, which takes longer the more processes the machine has.
        if self.place == Where::Below && !sys::has_children() {
            self.doubts = 0;
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = table::rows()?.into_iter().filter(|row| !row.ended).collect();
        let children = by_parent(&rows);
        self.doubts = 0;
        let us = std::process::id();
        let candidates = match self.place {
            Where::Below => below(us, &children),
            Where::Everywhere => rows,
        };
        let mut found = Vec::new();
        for row in candidates {
            let is_known = self.seen.contains(&(row.pid, row.started));
            if row.pid.number() == us {
                continue;
            }
            let environment = Environment::of(row.pid)?;
            self.doubts = self.doubts.max(match environment {
                _ if is_known => 0,
                Environment::Starting => STARTING,
                Environment::Hidden if self.place == Where::Below => HIDDEN,
                Environment::Hidden | Environment::Known(_) => 0,
            });
            if is_known || environment.get(VARIABLE).is_some_and(|mark| self.whose.owns(&mark)) {
                found.push(row);
            }
        }
        let mut all: BTreeMap<Pid, Row> = found.iter().map(|row| (row.pid, *row)).collect();
        for row in found {
            all.extend(below(row.pid.number(), &children).into_iter().map(|row| (row.pid, row)));
        }
        self.seen.extend(all.values().map(|row| (row.pid, row.started)));
        Ok(all.into_values().collect())
    }

    /// Sends SIGTERM to all descendants outside of this group; the caller signals the group as a whole.
    pub(super) fn ask_beyond(&mut self, leader: Pid) -> io::Result<()> {
        for row in self.look()?.iter().filter(|row| row.group != leader.number()) {
            signal(row, Signal::Terminate)?;
        }
        Ok(())
    }

    /// Ends all descendants after `grace`, in which they may end by themselves. Returns their number. The error has the
    /// number of the descendants that are left.
    pub(super) fn end(mut self, grace: Duration) -> Result<usize, Undead> {
        let begun = Instant::now();
        let mut ended = BTreeSet::new();
        let mut searches = 0;
        loop {
            let left = self.look();
            if left.as_ref().is_ok_and(Vec::is_empty) {
                searches += 1;
                if searches > self.doubts {
                    return Ok(ended.len());
                }
            }
            let since = begun.elapsed();
            if since >= grace + PATIENCE {
                return Err(match left {
                    Ok(left) => Undead::Left(left.len()),
                    Err(error) => Undead::Unseen(error),
                });
            }
            if since >= grace {
                for row in left.iter().flatten() {
                    // A process that cannot be signalled now is found again in the next search.
                    if signal(row, Signal::Kill).is_ok() {
                        ended.insert((row.pid, row.started));
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Why processes may be left.
#[derive(Debug)]
pub(super) enum Undead {
    /// The given number of processes were killed and did not end.
    Left(usize),
    /// The process table could not be read.
    Unseen(io::Error),
}

/// Kills all descendants of this process, for an end that must not wait.
pub(super) fn kill_all() {
    for _ in 0..ROUNDS {
        // The next search may be able to read the table.
        let Ok(rows) = table::rows() else { continue };
        let rows: Vec<Row> = rows.into_iter().filter(|row| !row.ended).collect();
        let found = below(std::process::id(), &by_parent(&rows));
        if found.is_empty() {
            return;
        }
        for row in &found {
            // A process that has ended needs no signal.
            let _ = signal(row, Signal::Kill);
        }
    }
}

fn by_parent(rows: &[Row]) -> BTreeMap<u32, Vec<Row>> {
    let mut children: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for row in rows {
        children.entry(row.parent).or_default().push(*row);
    }
    children
}

/// All descendants of a process.
fn below(parent: u32, children: &BTreeMap<u32, Vec<Row>>) -> Vec<Row> {
    let mut found: Vec<Row> = Vec::new();
    let mut parents = vec![parent];
    let mut met = BTreeSet::from([parent]);
    while let Some(parent) = parents.pop() {
        for row in children.get(&parent).into_iter().flatten() {
            if met.insert(row.pid.number()) {
                found.push(*row);
                parents.push(row.pid.number());
            }
        }
    }
    found
}

/// Sends the signal to exactly this process, never to another one with the same id.
fn signal(row: &Row, signal: Signal) -> io::Result<()> {
    let Some(handle) = sys::find(row.pid)? else {
        return Ok(());
    };
    match table::row(row.pid)? {
        Some(now) if now.started == row.started => sys::signal(&handle, signal),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_is_found_at_any_depth_and_once() {
        let pid = |number| Pid::new(number).unwrap();
        let row = |number, parent| Row {
            pid: pid(number),
            parent,
            group: number,
            started: 1,
            ended: false,
            has_run: true,
            is_bare: false,
        };
        let mut children: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
        // The last two form a cycle, which cannot exist and would lead to an endless walk.
        for row in [row(2, 1), row(3, 2), row(4, 2), row(9, 8), row(5, 4), row(4, 5)] {
            children.entry(row.parent).or_default().push(row);
        }
        let mut found: Vec<u32> = below(2, &children).iter().map(|row| row.pid.number()).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4, 5]);
    }
}
