//! The metrics of the channel: the registry of the operator's image, and its versions.

use crate::meters::meter::{Counter, Gauge, Meter, Row, Unit};

pub static CHECKS: Meter<Counter, 1> = Meter::new(
    "channel_checks_total",
    Unit::Count,
    ["result"],
    "Rounds of questions to the registry of our image: answered or failed.",
)
.of_modules();
pub static INFO: Meter<Gauge, 3> = Meter::new(
    "channel_info",
    Unit::Count,
    ["running", "available", "state"],
    "1 for the version that runs and the one that is wanted instead, empty if none is, with one word for how things stand; absent where we do not lead.",
)
.of_modules();
pub static MISSING: Meter<Gauge, 0> = Meter::new(
    "channel_running_missing",
    Unit::Count,
    [],
    "Digests that run and that the registry has lost.",
)
.of_modules();
pub static VERIFIED: Meter<Gauge, 0> = Meter::new(
    "channel_verified",
    Unit::Count,
    [],
    "1 if the version that runs is signed by a key that we were given, 0 if it is not or if there are no keys; absent while that is not known.",
)
.of_modules();

/// The metrics of this file, by name.
pub(super) static OWN: [Row; 4] = [CHECKS.row(), INFO.row(), MISSING.row(), VERIFIED.row()];
