//! Counts what happened in the last minute, second by second.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The number of seconds over which events are counted.
const SECONDS: usize = 60;

/// The number of events in each of the last seconds.
#[derive(Debug)]
pub struct LastMinute {
    began: Instant,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    /// The second of the newest count, from the beginning.
    newest: u64,
    of: [u32; SECONDS],
}

impl Default for LastMinute {
    fn default() -> Self {
        let of = [0; SECONDS];
        Self {
            began: Instant::now(),
            counts: Mutex::new(Counts { newest: 0, of }),
        }
    }
}

impl LastMinute {
    /// Counts an event now.
    pub fn note(&self) {
        let now = self.began.elapsed().as_secs();
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).note(now);
    }

    /// The events a second, on average of the last minute; of a shorter time if less than a minute has passed.
    pub fn per_second(&self) -> f64 {
        let passed = self.began.elapsed();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        f64::from(counts.sum(passed.as_secs())) / passed.as_secs_f64().clamp(1.0, 60.0)
    }
}

impl Counts {
    fn note(&mut self, now: u64) {
        self.go_on(now);
        let count = &mut self.of[place(now)];
        *count = count.saturating_add(1);
    }

    fn sum(&mut self, now: u64) -> u32 {
        self.go_on(now);
        self.of.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Forgets the seconds that are over.
    fn go_on(&mut self, now: u64) {
        for second in self.newest + 1..=now.min(self.newest + SECONDS as u64) {
            self.of[place(second)] = 0;
        }
        self.newest = self.newest.max(now);
    }
}

fn place(second: u64) -> usize {
    usize::try_from(second % SECONDS as u64).expect("it is less than sixty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_for_a_minute() {
        let mut counts = Counts {
            newest: 0,
            of: [0; SECONDS],
        };
        for second in [0, 0, 1, 30] {
            counts.note(second);
        }
        let sums = [30, 59, 60, 61, 89, 90, 10_000].map(|now| counts.sum(now));
        assert_eq!(sums, [4, 4, 2, 1, 1, 0, 0]);
        counts.note(10_000);
        assert_eq!(counts.sum(10_059), 1);
    }
}
