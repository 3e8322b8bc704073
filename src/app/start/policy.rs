//! The settings in the form that the core needs for its decisions.
//!
//! Must never read anything but settings, environment and the time zone.

use std::path::Path;

use addon_core::operator::policy::{Leadership, OnTrial, Policy};
use channel::installation::trial_set::ON_TRIAL;
use settings::{Environment, Order, Settings, Work, leadership};

use super::{GRACE, mode, zone};

pub(in crate::app) fn policy(settings: &Settings, environment: &Environment) -> Policy {
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
        watches_releases: modules.is_some(),
        ignore_release: modules.and_then(|modules| modules.helm.ignore_release.clone()),
        extenders: modules.map(|modules| modules.extenders.clone()).unwrap_or_default(),
        time_zone: zone::local(environment.get("TZ"), Path::new(zone::LOCALTIME)),
    }
}

/// Whether this pod is on trial. The `ReplicaSet` of a trial sets the variable.
fn on_trial(environment: &Environment) -> OnTrial {
    match environment.get(ON_TRIAL) {
        Some(value) if value == "true" => OnTrial::Yes,
        Some(_) | None => OnTrial::No,
    }
}
