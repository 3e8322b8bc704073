//! The way into the loop for how the trial of a version stands. Whoever reads the record of trials says it here.
//!
//! Must never judge: what follows from a verdict is the core's.

use addon_core::operator::event::{Event, TrialStage};
use tokio::sync::watch;

use crate::serve::Loop;

/// Tells the loop whenever something else is said; nothing, as long as nothing is known.
pub(super) async fn tell(mut said: watch::Receiver<Option<TrialStage>>, doors: Loop) {
    loop {
        let stage = *said.borrow_and_update();
        if let Some(stage) = stage
            && doors.configure(Event::TrialSeen(stage)).await.is_err()
        {
            return;
        }
        if said.changed().await.is_err() {
            // Nobody will say anything any more.
            return std::future::pending().await;
        }
    }
}
