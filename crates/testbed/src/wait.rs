//! Waits for a condition. A time-out names the condition and the state that was seen last.
//!
//! Only this module lets a thread sleep on behalf of a test; a test itself never sleeps.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

/// The condition was not met in time.
#[derive(Debug, Error)]
#[error("waited {} s for {what}; last seen: {seen}", .waited.as_secs())]
pub struct TimedOut {
    what: String,
    waited: Duration,
    seen: String,
}

/// Short compared with the time that a control plane needs for its work, long compared with a read: a waiting test must
/// leave the machine to the programs.
const PAUSE: Duration = Duration::from_millis(100);

/// A pause is this many times as long as the check before it: a check that starts a process would otherwise use half of a
/// processor, and wait for itself on a busy machine.
const REST: u32 = 3;

/// One slow check must not cause a long pause. On a busy machine many checks are slow, and with shorter pauses the
/// checks would keep it busy.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Short compared with one request to a control plane.
const CLOSE: Duration = Duration::from_millis(3);

/// Repeats `check` until it returns a value, for at most `patience`. `None` and an error both mean "not yet". The
/// time-out's message shows the last error, so the error should describe the state.
pub fn wait_until<T, E: Display>(
    patience: Duration,
    what: &str,
    check: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, TimedOut> {
    wait(rest_from(PAUSE), patience, what, check)
}

/// Like [`wait_until`] with short pauses, for states that pass quickly and a cheap `check`.
pub fn wait_closely<T, E: Display>(
    patience: Duration,
    what: &str,
    check: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, TimedOut> {
    wait(rest_from(CLOSE), patience, what, check)
}

/// Like [`wait_until`] with even pauses that a slow check does not lengthen.
pub fn wait_evenly<T, E: Display>(
    pause: Duration,
    patience: Duration,
    what: &str,
    check: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, TimedOut> {
    wait(|_| pause, patience, what, check)
}

/// Returns the function that computes a pause from the duration of the check before it.
fn rest_from(shortest: Duration) -> impl Fn(Duration) -> Duration {
    move |took| shortest.max((took * REST).min(LONGEST_PAUSE))
}

fn wait<T, E: Display>(
    pause: impl Fn(Duration) -> Duration,
    patience: Duration,
    what: &str,
    mut check: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, TimedOut> {
    let started = Instant::now();
    let mut seen = "nothing yet".to_owned();
    loop {
        let looked = Instant::now();
        match check() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(error) => seen = error.to_string(),
        }
        let waited = started.elapsed();
        if waited >= patience {
            return Err(TimedOut {
                what: what.to_owned(),
                waited,
                seen,
            });
        }
        thread::sleep(pause(looked.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_returns_what_the_check_found() {
        let mut tries = 0;
        let found = wait_until(Duration::from_secs(5), "the third try", || {
            tries += 1;
            Ok::<_, String>((tries == 3).then_some(tries))
        });
        assert_eq!(found.unwrap(), 3);
    }

    #[test]
    fn a_vain_wait_says_for_what_and_what_was_there_instead() {
        let vain = wait_until(Duration::ZERO, "three replicas", || Err::<Option<()>, _>("one replica"));
        assert_eq!(
            vain.unwrap_err().to_string(),
            "waited 0 s for three replicas; last seen: one replica"
        );
    }
}
