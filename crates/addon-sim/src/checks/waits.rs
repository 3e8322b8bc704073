//! W1: an enabled module that is not ready always tells the reason: a wait, a failure or a failing task.

use super::{Violation, ensure};
use crate::life::Seen;

/// Checks the reports of one moment.
pub(super) fn check(seen: &Seen) -> Result<(), Violation> {
    let silent = seen.modules.values().find(|module| {
        let is_told = !module.waits_for.is_empty() || module.fails || !module.failing.is_empty();
        module.enabled && module.state != "Ready" && !is_told
    });
    ensure(silent.is_none(), "W1", || {
        let told =
            silent.map(|module| format!("{} is enabled and {}, and waits for nothing", module.name, module.state));
        told.unwrap_or_default()
    })
}
