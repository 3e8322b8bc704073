//! The settings as decisions know them.
//!
//! Must never read anything but settings and environment.

use addon_core::operator::policy::{Leadership, OnTrial, Policy};
use jiff::tz::TimeZone;
use tracing::warn;

use super::{GRACE, mode};
use crate::cluster::installation::trial_set::ON_TRIAL;
use crate::settings::{Environment, Order, Settings, Work, leadership};

pub(in crate::app) fn policy(settings: &Settings, environment: &Environment, restores: bool) -> Policy {
    let modules = match &settings.work {
        Work::Modules(modules) => Some(modules),
        Work::Hooks(_) => None,
    };
    Policy {
        mode: mode(settings),
        leadership: match settings.leadership {
            leadership::Leadership::Alone => Leadership::Alone,
            leadership::Leadership::Elected { .. } => Leadership::Elected,
        },
        on_trial: on_trial(environment),
        strict_order: modules.is_some_and(|modules| modules.order == Order::Strict),
        hook_slots: settings.hooks.slots.get(),
        review_slots: settings.hooks.slots.get().div_ceil(4).max(2),
        edits: crate::app::reviews::edits(settings),
        helm_slots: modules.map_or(1, |modules| modules.helm.slots.get()),
        hook_deadline: settings.hooks.timeout,
        patience: settings.hooks.patience,
        shutdown_grace: GRACE,
        restores,
        ignore_release: modules.and_then(|modules| modules.helm.ignore_release.clone()),
        time_zone: time_zone(environment),
    }
}

/// The pod of a trial is told so by the `ReplicaSet` that it belongs to.
fn on_trial(environment: &Environment) -> OnTrial {
    match environment.get(ON_TRIAL) {
        Some(value) if value == "true" => OnTrial::Yes,
        Some(_) | None => OnTrial::No,
    }
}

/// `TZ`, as for every other program; crontabs are read in it.
fn time_zone(environment: &Environment) -> TimeZone {
    let Some(name) = environment.get("TZ") else {
        return TimeZone::UTC;
    };
    let name = name.to_string_lossy();
    TimeZone::get(name.trim_start_matches(':')).unwrap_or_else(|error| {
        warn!(%error, "TZ names no time zone, crontabs are read in UTC");
        TimeZone::UTC
    })
}
