//! The two times that decisions need: ticks that never go back, and the calendar. Must never be read by the core, which
//! gets times from outside.

use std::time::Duration;

use clock::{Now, Tick};
use jiff::Timestamp;
use tokio::time::Instant;

/// Gives the two times that decisions need.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The tick and the calendar time of this moment.
    pub fn now(self) -> Now {
        let micros = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now {
            tick: Tick::from_micros(micros),
            wall: Timestamp::now(),
        }
    }

    /// The tick of an instant. Equal instants give equal ticks.
    pub fn tick(self, moment: Instant) -> Tick {
        let micros = moment.saturating_duration_since(self.start).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The instant of a tick, rounded up: a timer that fires early would be set again at once.
    pub fn instant(self, tick: Tick) -> Instant {
        // An instant that the clock cannot represent is replaced by one in a year: the process ends earlier than that.
        let far = Duration::from_hours(24 * 365);
        self.start + tick.since(Tick::ZERO).min(self.start.elapsed() + far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_instants_are_of_one_clock() {
        let clock = Clock::start();
        let early = clock.now().tick;
        assert!(clock.instant(early) <= Instant::now());
        assert_eq!(clock.tick(clock.instant(early)), early);
        let later = early + Duration::from_mins(1);
        let left = clock.instant(later) - Instant::now();
        assert!(
            left <= Duration::from_mins(1) && left > Duration::from_secs(30),
            "{left:?}"
        );
        assert!(clock.instant(Tick::from_micros(u64::MAX)) > Instant::now() + Duration::from_hours(24));
    }
}
