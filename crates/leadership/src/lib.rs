//! Takes part in the election of a leader: carries out the core's decisions about the lease, and informs the other
//! parts. A leader that must yield to another version is stopped as by a signal, and releases the lease when none of
//! its work runs any more.
//!
//! A standby does its other work meanwhile: listeners answer, hooks are asked for their configuration, the `ConfigMap`
//! is read. Must never lead on after the lease has run out. First the loop ends everything; then remaining work is
//! aborted with the runtime, shortly before another replica may lead; if even that takes too long, a separate thread
//! ends the process.
//!
//! ```text
//!   lease --> channel_core::leadership::Election --> warrant      the time until which work may begin
//!     ^            ^                            --> the loop     Elected, Deposed, LedByAnother
//!     |            |                            --> marks        the leader's label and the endpoints of its Services
//!   holder_watch  handle   versions that may lead, of the channel
//! ```
//!
//! Begin with `start`, then read `Candidate::run`.

mod candidate;
mod endpoints;
pub mod handle;
mod holder;
mod holder_watch;
mod leader;
pub mod lease;
mod marks;
mod process;
pub mod standing;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use child::warrant::Warrant;
use listeners::Loop;
use settings::Settings;
use settings::leadership::Leadership;
use telling::meters::Meters;
use telling::telemetry::Spools;
use tokio::sync::watch;

pub use candidate::start;

/// The part of a deposed leader's remaining time that its work must not use. The kernel needs it to end processes that
/// have not stopped, and clocks may differ.
const MARGIN: Duration = Duration::from_secs(3);

/// How long running work may go on after its leader was deposed.
pub fn farewell(settings: &Settings) -> Duration {
    match &settings.leadership {
        Leadership::Elected { timing, .. } => timing.farewell().saturating_sub(MARGIN),
        Leadership::Alone => Duration::ZERO,
    }
}

/// The parts that learn of a change of leadership.
#[derive(Debug, Clone)]
pub struct Concerned {
    pub doors: Loop,
    pub meters: Arc<Meters>,
    /// The role of this replica, which the listeners report.
    pub standing: watch::Sender<standing::ActingRole>,
    /// The time until which work may begin, or its revocation.
    pub warrant: Warrant,
    pub spools: Spools,
}

impl Concerned {
    fn tell(&self, standing: standing::ActingRole) {
        self.standing.send_if_modified(|told| {
            let differs = *told != standing;
            *told = standing;
            differs
        });
    }
}
