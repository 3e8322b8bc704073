//! Times that the core gets from outside, and the delays after failures.
//!
//! Must never ask a clock or a random source: both come from outside, so that a run can be replayed.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Microseconds since the start of the process, on a clock that never goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tick(u64);

impl Tick {
    /// The start of the process.
    pub const ZERO: Self = Self(0);

    /// The tick that is `micros` microseconds after the start.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if that is later than this tick.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Tick {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub for Tick {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The moment at which the core is asked to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The monotonic time, for delays.
    pub tick: Tick,
    /// The wall-clock time, for calendars and people. It may be set back or forward.
    pub wall: Timestamp,
}

/// The delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_secs(5);
const MAX_DELAY: Duration = Duration::from_secs(32);
/// The number of failures from which on the delay is the longest one: another doubling would exceed it.
const MAX_EXPONENT: u32 = 5;
/// The delay after the first failure at a deadline.
const FIRST_DELAY_AFTER_DEADLINE: Duration = Duration::from_mins(1);
/// Delays are randomly extended by less than a second, in steps of this many milliseconds.
const JITTER_STEP_MS: u64 = 100;

/// The number of failures in a row, which determines the delay before the next attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A count of no failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of failures in a row.
    pub fn failures(self) -> u32 {
        self.failures
    }

    /// Counts a failure, and returns the delay after it.
    pub fn fail(&mut self, jitter: u64) -> Duration {
        let delay = Self::delay(self.failures, jitter);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Forgets the failures after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay after a run that its deadline ended, after `failures` earlier failures. It doubles from a minute up to
    /// the time that the run took, so that in the end such runs take half of the time.
    pub fn after_deadline(failures: u32, took: Duration) -> Duration {
        let doubled = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        FIRST_DELAY_AFTER_DEADLINE.saturating_mul(doubled).min(took)
    }

    /// The delay after a failure that follows `failures` earlier ones. `jitter` is any number.
    pub fn delay(failures: u32, jitter: u64) -> Duration {
        match failures {
            0 => FIRST_DELAY,
            1..=MAX_EXPONENT => {
                let spread = jitter % 1000 / JITTER_STEP_MS * JITTER_STEP_MS;
                let delay = FIRST_DELAY + Duration::from_secs(1 << (failures - 1)) + Duration::from_millis(spread);
                delay.min(MAX_DELAY)
            }
            _ => MAX_DELAY,
        }
    }
}

/// Random numbers for the spread of delays. The same seed gives the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    seed: u64,
    drawn: u64,
}

impl Jitter {
    /// A random number generator with the given seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The next number: the count of draws, mixed with the seed (the finish of splitmix64).
    pub fn draw(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut mixed = self.seed.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_follow_the_table() {
        let millis = |failures, jitter| Backoff::delay(failures, jitter).as_millis();
        let rows = [
            (0, 999, 5_000),
            (1, 0, 6_000),
            (1, 999, 6_900),
            (2, 150, 7_100),
            (3, 1_250, 9_200),
        ];
        for (failures, jitter, expected) in rows {
            assert_eq!(millis(failures, jitter), expected, "{failures} {jitter}");
        }
        assert_eq!(millis(4, 0), 13_000);
        assert_eq!(millis(5, 999), 21_900);
        assert_eq!(millis(6, 0), 32_000);
        assert_eq!(millis(u32::MAX, u64::MAX), 32_000);
    }

    #[test]
    fn waits_after_a_deadline_double_up_to_what_the_run_took() {
        let minutes = |failures, took| Backoff::after_deadline(failures, Duration::from_mins(took)).as_secs() / 60;
        assert_eq!(
            [0, 1, 2, 5, 6, 31, 32, u32::MAX].map(|failures| minutes(failures, 60)),
            [1, 2, 4, 32, 60, 60, 60, 60]
        );
        assert_eq!([0, 1, 2].map(|failures| minutes(failures, 3)), [1, 2, 3]);
    }

    #[test]
    fn ticks_are_ordered_and_do_not_overflow() {
        let tick = Tick::from_micros(1_500_000);
        assert_eq!((tick + Duration::from_millis(500)).to_string(), "2.000000s");
        assert_eq!(Tick::ZERO - tick, Duration::ZERO);
        assert_eq!(tick - Tick::ZERO, Duration::from_millis(1500));
        assert!(Tick::from_micros(u64::MAX) + Duration::MAX == Tick::from_micros(u64::MAX));
    }

    proptest! {
        #[test]
        fn waits_grow_until_they_are_longest_and_start_again(seed: u64, failures in 1_usize..12) {
            let mut jitter = Jitter::new(seed);
            let mut backoff = Backoff::new();
            let waits: Vec<Duration> = (0..failures).map(|_| backoff.fail(jitter.draw())).collect();
            for pair in waits.windows(2) {
                prop_assert!(pair[0] < pair[1] || pair[1] == MAX_DELAY, "{waits:?}");
            }
            prop_assert!(waits.iter().all(|wait| (FIRST_DELAY..=MAX_DELAY).contains(wait)));
            prop_assert_eq!(usize::try_from(backoff.failures()).unwrap(), failures);
            backoff.reset();
            prop_assert_eq!(backoff.fail(jitter.draw()), FIRST_DELAY);
        }

        #[test]
        fn the_same_seed_draws_the_same_numbers(seed: u64) {
            let draws = |mut jitter: Jitter| (0..20).map(|_| jitter.draw()).collect::<Vec<_>>();
            let numbers = draws(Jitter::new(seed));
            prop_assert_eq!(&numbers, &draws(Jitter::new(seed)));
            let mut distinct = numbers;
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), 20);
        }
    }
}
