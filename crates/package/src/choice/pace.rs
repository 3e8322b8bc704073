//! The pace of questions to one registry, and the end of the time for them.
//!
//! Must never let a question through before its turn.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::Manners;

/// The turns of the questions to one registry.
pub(super) struct Pace {
    gap: Duration,
    next: Mutex<Instant>,
    end: Instant,
}

impl Pace {
    pub(super) fn new(manners: Manners) -> Self {
        let now = Instant::now();
        Self {
            gap: Duration::from_secs(1) / manners.per_second.max(1),
            next: Mutex::new(now),
            end: now + manners.within,
        }
    }

    /// Waits for a turn. False if the time ends before it.
    pub(super) async fn turn(&self) -> bool {
        let turn = {
            let mut next = self.next.lock().await;
            let turn = (*next).max(Instant::now());
            if turn > self.end {
                return false;
            }
            *next = turn + self.gap;
            turn
        };
        sleep_until(turn).await;
        true
    }

    /// The end of the time for questions.
    pub(super) fn end(&self) -> Instant {
        self.end
    }
}
