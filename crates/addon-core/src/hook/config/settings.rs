//! `settings`: limits for all runs of a hook. A limit of the binding takes precedence.

use std::time::Duration;

use crontab::duration::parse_duration;

use super::fields::Fields;
use super::reader::Reader;
use super::{HookConfig, RateLimit};

/// The contents of `settings`.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) timeout: Option<Duration>,
}

pub(super) fn read(root: &mut Fields<'_>, reader: &mut Reader) -> Settings {
    let Some(mut fields) = root.object("settings") else {
        return Settings::default();
    };
    let reader = reader.at_key("settings");
    let limited = ["executionMinInterval", "executionBurst"];
    // The two keys of the rate limit must be given together. Without `timeout` they are required, as they were before
    // `timeout` existed.
    let is_limited = !fields.has("timeout") || limited.iter().any(|key| fields.has(key));
    let rate_limit = is_limited.then(|| rate_limit(&mut fields, reader)).flatten();
    let timeout = reader.timeout(&mut fields);
    fields.finish();
    Settings { rate_limit, timeout }
}

fn rate_limit(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<RateLimit> {
    let interval = fields.required_text("executionMinInterval");
    fields.require("executionBurst");
    let burst = fields.integer("executionBurst", 0..=i64::from(u32::MAX));
    let duration = parse_duration(interval).and_then(|duration| Duration::try_from(duration).ok());
    if duration.is_none() {
        reader.note(&format!(
            "executionMinInterval is invalid: '{interval}' should be a duration between 0s and 2562047h, such as 30s, 5m or 1h30m"
        ));
    }
    let burst = burst.and_then(|burst| u32::try_from(burst).ok());
    Some(RateLimit {
        min_interval: duration?,
        burst: burst?,
    })
}

/// Gives the hook's timeout to the bindings without one.
pub(super) fn hand_down(config: &mut HookConfig) {
    let HookConfig {
        version: _,
        rate_limit: _,
        timeout,
        dry_run: _,
        stages: _,
        schedules,
        kubernetes,
        validating,
        mutating,
        conversions,
    } = config;
    let of_bindings = (schedules.iter_mut().map(|binding| &mut binding.timeout))
        .chain(kubernetes.iter_mut().map(|binding| &mut binding.timeout))
        .chain(
            validating
                .iter_mut()
                .chain(mutating)
                .map(|binding| &mut binding.timeout),
        )
        .chain(conversions.iter_mut().map(|binding| &mut binding.timeout));
    for own in of_bindings {
        *own = own.or(*timeout);
    }
}
