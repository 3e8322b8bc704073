//! The contexts of a run that are still wanted: schedules may have a condition on snapshots.
//!
//! Must never count as a reading of snapshots: a hook that is not run has seen nothing.

use std::collections::BTreeMap;

use addon_core::hook::context::BindingContext;
use addon_core::operator::effect::HookRun;
use names::{BindingName, MonitorId};

use watches::Monitors;

/// Drops the contexts whose conditions are not met. False if that leaves none, so that the hook need not run.
pub(super) fn keep_wanted(monitors: &Monitors, run: &mut HookRun) -> bool {
    let (before, known) = (run.contexts.len(), &run.snapshots);
    run.contexts.retain(|context| is_wanted(monitors, known, context));
    before == 0 || !run.contexts.is_empty()
}

fn is_wanted(monitors: &Monitors, known: &BTreeMap<BindingName, MonitorId>, context: &BindingContext) -> bool {
    context.condition().is_none_or(|when| {
        let named = when.snapshots.iter().filter_map(|name| Some((name, *known.get(name)?)));
        let (names, ids): (Vec<_>, Vec<_>) = named.unzip();
        let shown = names.into_iter().zip(monitors.snapshot(&ids));
        when.is_met(
            &shown
                .filter_map(|(name, reading)| Some((name.clone(), reading?.objects)))
                .collect(),
        )
    })
}
