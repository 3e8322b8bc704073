//! The metrics of trials of other versions.

use crate::meters::meter::{Counter, Meter, Row, Unit};

pub static TRIALS: Meter<Counter, 1> = Meter::new(
    "channel_trials_total",
    Unit::Count,
    ["verdict"],
    "Trials of other versions by their verdict: passed, failed, unclear or void. The pod counts that wrote it.",
)
.of_modules();

/// The metrics of this file.
pub(super) static OWN: [Row; 1] = [TRIALS.row()];
