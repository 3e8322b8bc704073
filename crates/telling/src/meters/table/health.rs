//! The metrics of modules that are not healthy, or wait for others or for a person.

use crate::meters::meter::{Meter, Row, Sampled, Unit};

pub static MODULE_HEALTH: Meter<Sampled, 2> = Meter::new(
    "module_health",
    Unit::Count,
    ["module", "state"],
    "1 for every module with a release and the health of its objects: Healthy, RollingOut or Unhealthy.",
)
.of_modules();
pub static MODULE_WAITS_FOR_NEED: Meter<Sampled, 2> = Meter::new(
    "module_waits_for_need",
    Unit::Count,
    ["module", "needs"],
    "1 for every module that cannot run before another one, which it needs, has succeeded.",
)
.of_modules();
pub static MODULE_UPGRADE_HELD: Meter<Sampled, 1> = Meter::new(
    "module_upgrade_held",
    Unit::Count,
    ["module"],
    "1 for every module whose upgrade waits for a person because of what it would delete.",
)
.of_modules();

pub static OBJECT_UNHEALTHY: Meter<Sampled, 5> = Meter::new(
    "object_unhealthy",
    Unit::Count,
    ["module", "kind", "namespace", "name", "reason"],
    "1 for every object of a module that is not healthy, up to 200; the reason is RollingOut or Failed.",
)
.of_modules();

/// The metrics of this file.
pub(super) static OWN: [Row; 4] = [
    OBJECT_UNHEALTHY.row(),
    MODULE_HEALTH.row(),
    MODULE_UPGRADE_HELD.row(),
    MODULE_WAITS_FOR_NEED.row(),
];
