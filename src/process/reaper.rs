//! Waits for orphans that have become our children: the kernel gives them to the first process of a container, and to a
//! process that has asked for them. Never touches a child that a run waits for: its end and its resource usage belong
//! to that run. Libraries start children, too, and wait for them at once; so only a child that is still a zombie at the
//! next round is an orphan.

use std::collections::BTreeSet;

use super::nursery::{Known, Nursery};
use super::sys::{self, Pid};
use super::table;

/// Those that had ended at the last round.
#[derive(Debug, Default)]
pub(super) struct Reaper(BTreeSet<(Pid, u64)>);

impl Reaper {
    /// Waits for every ended child that was there in the last round already, and that is unknown.
    pub(super) fn round(&mut self, nursery: &Nursery) {
        let before = std::mem::take(&mut self.0);
        // Without a process table, or descriptors to read it, there are none to see.
        let rows = table::rows().unwrap_or_default();
        let us = std::process::id();
        for row in rows.iter().filter(|row| row.ended && row.parent == us) {
            if nursery.know(row.pid) != Known::Nobodys {
                continue;
            }
            let life = (row.pid, row.started);
            if before.contains(&life) {
                match sys::reap(row.pid) {
                    Ok(_) => tracing::debug!(pid = row.pid.number(), "an orphan was waited for"),
                    Err(error) => tracing::debug!(pid = row.pid.number(), %error, "an orphan could not be waited for"),
                }
            } else {
                self.0.insert(life);
            }
        }
    }
}
