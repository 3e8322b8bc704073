//! Waits for orphans that have come to us: they do to the first process of a container, and to whoever has asked for it.
//! Never touches a child that anybody waits for: its end and its resource usage belong to its run. Some children are of
//! libraries, who tell nobody and wait at once; so only what stays ended from one round to the next is an orphan.

use std::collections::BTreeSet;

use super::nursery::{Known, Nursery};
use super::sys::{self, Pid};
use super::table;

/// Those that had ended at the last round.
#[derive(Debug, Default)]
pub(super) struct Reaper(BTreeSet<(Pid, u64)>);

impl Reaper {
    /// Waits for every ended child that was there in the last round already, and that nobody knows.
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
