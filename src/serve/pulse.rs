//! The timer that counts lasting states: the loop is alive, the configuration is broken.
//!
//! Both are asked of the loop, so a loop that stands still stops the ticks and an alert on them fires.

use std::sync::Arc;
use std::time::Duration;

use addon_core::operator::query::StatusQuery;
use tokio::time::{MissedTickBehavior, interval};

use super::Loop;
use crate::mailbox::Closed;
use crate::meters::{Meters, table};

/// How often a broken configuration is counted; the ticks come every second beat.
const BEAT: Duration = Duration::from_secs(5);

/// Beats until the loop has ended.
pub async fn run(doors: Loop, meters: Arc<Meters>) {
    let mut beat = interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut beats = 0_u64;
    loop {
        beat.tick().await;
        match super::ask(&doors, StatusQuery).await {
            Ok(status) => {
                if beats.is_multiple_of(2) {
                    meters.add(&table::LIVE_TICKS, [], 1.0);
                }
                // The first one is counted where it is told.
                if beats > 0 && !status.config_problems.is_empty() {
                    meters.add(&table::CONFIG_VALUES_ERRORS, [], 1.0);
                }
                beats += 1;
            }
            Err(super::Unanswered::Closed(Closed)) => return,
            Err(super::Unanswered::Late) => {}
        }
    }
}
