//! Reaps orphans that have become children of this process: the kernel gives them to the first process of a container,
//! and to a process that asks for them. Must never reap a child that a run waits for, whose end and resource usage
//! belong to that run. Libraries start children too and wait for them at once; so only a child that is still a zombie
//! in the next round counts as an orphan.

use std::collections::BTreeSet;

use super::nursery::Nursery;
use super::sys::{self, Pid};
use super::table;

/// The zombies of the last round.
#[derive(Debug, Default)]
pub(super) struct Reaper(BTreeSet<(Pid, u64)>);

impl Reaper {
    /// Reaps every unknown child that was a zombie in the last round too.
    pub(super) fn round(&mut self, nursery: &Nursery) {
        let before = std::mem::take(&mut self.0);
        // Without a process table, or file descriptors to read it, none are found.
        let rows = table::rows().unwrap_or_default();
        let us = std::process::id();
        for row in rows.iter().filter(|row| row.ended && row.parent == us) {
            if nursery.owns(row.pid) {
                continue;
            }
            let life = (row.pid, row.started);
            if before.contains(&life) {
                match sys::reap(row.pid) {
                    Ok(_) => tracing::debug!(pid = row.pid.number(), "an orphan was waited for"),
                    Err(error) => tracing::debug!(pid = row.pid.number(), %error, "cannot reap an orphaned process"),
                }
            } else {
                self.0.insert(life);
            }
        }
    }
}
