//! Sends the stage of a version's trial to the loop.
//!
//! The part that reads the record of trials publishes the stage. This module must never judge it: the core decides what
//! follows from a verdict.

use addon_core::operator::event::{Event, TrialStage};
use tokio::sync::watch;

use listeners::Loop;

/// Sends each change of the trial's stage to the loop; nothing while the stage is unknown.
pub async fn tell(mut said: watch::Receiver<Option<TrialStage>>, doors: Loop) {
    loop {
        let stage = *said.borrow_and_update();
        if let Some(stage) = stage
            && doors.configure(Event::TrialSeen(stage)).await.is_err()
        {
            return;
        }
        if said.changed().await.is_err() {
            // All senders are dropped.
            return std::future::pending().await;
        }
    }
}
