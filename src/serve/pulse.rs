//! The timer that counts lasting states: the loop works, the configuration is broken.
//!
//! Both states are read from the loop, so if the loop hangs the counter stops and an alert on it fires.

use std::sync::Arc;
use std::time::Duration;

use addon_core::operator::query::StatusQuery;
use mailbox::Closed;
use telling::meters::{Meters, table};
use tokio::time::{MissedTickBehavior, interval};

use listeners::Loop;

/// The interval at which a broken configuration is counted. The tick of the loop is counted at every second interval.
const BEAT: Duration = Duration::from_secs(5);

/// Counts until the loop has ended.
pub async fn run(doors: Loop, meters: Arc<Meters>) {
    let mut beat = interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut beats = 0_u64;
    loop {
        beat.tick().await;
        match listeners::ask(&doors, StatusQuery).await {
            Ok(status) => {
                if beats.is_multiple_of(2) {
                    meters.add(&table::LIVE_TICKS, [], 1.0);
                }
                // The first occurrence is counted when it is reported.
                if beats > 0 && !status.config_problems.is_empty() {
                    meters.add(&table::CONFIG_VALUES_ERRORS, [], 1.0);
                }
                beats += 1;
            }
            Err(listeners::Unanswered::Closed(Closed)) => return,
            Err(listeners::Unanswered::Late) => {}
        }
    }
}
