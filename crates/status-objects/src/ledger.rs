//! The ledger: which sheets are written, which should be, and when each write is due.
//!
//! A state that lasts is written at once, but each object at most once a second. A state that passes is written only if it lasts, so that
//! a converge costs few writes. Must never delete an object unless all modules are known.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::condition::Condition;
use crate::sheet::{Key, Kind, Sheet, Sheets};

/// The shortest time between two writes of an object.
const PAUSE: Duration = Duration::from_secs(1);
/// The time for which a passing state has to last. It is longer than the time between two compositions of sheets, so that a state
/// which is over by the next one is not taken for one that lasts.
const LASTS: Duration = Duration::from_secs(2);
/// The shortest time between two writes of passing states.
const PASSING_PAUSE: Duration = Duration::from_secs(3);
/// The shortest time between two writes of a passing state that differ in words alone.
const WORDS_PAUSE: Duration = Duration::from_secs(30);

/// The writes of all objects.
#[derive(Debug, Default)]
pub struct Ledger {
    wanted: BTreeMap<Key, (Sheet, Instant)>,
    written: BTreeMap<Key, (Sheet, Option<Instant>)>,
    are_complete: bool,
}

/// A write that is due.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// The object gets this content, and is created if it is not there.
    Put(Key, Box<Sheet>),
    /// The object is deleted.
    Delete(Key),
}

impl Ledger {
    /// Takes over the objects that were there before this process.
    pub fn found(&mut self, objects: BTreeMap<Key, Sheet>) {
        self.written = objects.into_iter().map(|(key, sheet)| (key, (sheet, None))).collect();
    }

    /// Takes over the sheets that should be written.
    pub fn want(&mut self, sheets: &Sheets, now: Instant) {
        self.are_complete = sheets.are_complete;
        self.wanted.retain(|key, _| sheets.all.contains_key(key));
        for (key, sheet) in &sheets.all {
            let mut sheet = sheet.clone();
            let since = match self.wanted.get(key) {
                Some((earlier, since)) if earlier.is_reworded(&sheet) => {
                    sheet.keep_next_try(earlier);
                    *since
                }
                Some(_) | None => now,
            };
            self.wanted.insert(key.clone(), (sheet, since));
        }
    }

    /// The next write that is due; the time is that of conditions that change.
    pub fn due(&self, now: Instant, time: Timestamp) -> Option<Write> {
        let puts = self
            .wanted
            .iter()
            .filter(|(key, _)| self.due_at(key).is_some_and(|at| at <= now));
        let first = puts.min_by_key(|(key, _)| self.due_at(key));
        if let Some((key, (sheet, _))) = first {
            return Some(Write::Put(key.clone(), Box::new(self.dated(key, sheet, time))));
        }
        let mut gone = self.written.keys().filter(|key| !self.wanted.contains_key(key));
        gone.next().filter(|_| self.are_complete).cloned().map(Write::Delete)
    }

    /// The time of the next write.
    pub fn next(&self) -> Option<Instant> {
        self.wanted.keys().filter_map(|key| self.due_at(key)).min()
    }

    fn due_at(&self, key: &Key) -> Option<Instant> {
        let (sheet, since) = self.wanted.get(key)?;
        let lasts = if sheet.is_passing() { *since + LASTS } else { *since };
        let Some((written, at)) = self.written.get(key) else {
            return Some(lasts);
        };
        // Until the first converge is over, no module is ready: what the process before wrote says more.
        let is_start = at.is_none() && !self.are_complete && key.kind == Kind::Module;
        if written == sheet || is_start && sheet.is_passing() {
            return None;
        }
        let pause = if !sheet.is_passing() {
            PAUSE
        } else if written.is_reworded(sheet) {
            WORDS_PAUSE
        } else {
            PASSING_PAUSE
        };
        Some(at.map_or(lasts, |at| lasts.max(at + pause)))
    }

    fn dated(&self, key: &Key, sheet: &Sheet, time: Timestamp) -> Sheet {
        let earlier: &[Condition] = self.written.get(key).map_or(&[], |(written, _)| written.conditions());
        let mut dated = sheet.clone();
        for condition in dated.conditions_mut() {
            condition.date(earlier, time);
        }
        dated
    }

    /// Notes that a write has succeeded.
    pub fn wrote(&mut self, write: Write, now: Instant) {
        match write {
            Write::Put(key, sheet) => {
                self.written.insert(key, (*sheet, Some(now)));
            }
            Write::Delete(key) => {
                self.written.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
