//! Announcements about hooks: of loops, and of values that serve for a global hook that fails. Must never show the output of a
//! hook.

use addon_core::name::{GLOBAL_KEY, ModuleName};
use addon_core::operator::effect::{Slowed, StandIn};

use super::{Announcement, Weight, about, of_module};

pub(super) fn stand_in(stand_in: &StandIn) -> Option<Announcement> {
    match stand_in {
        StandIn::Serves { hook, as_of, error } => {
            let note = format!(
                "global hook '{}' fails, so modules run with the values that it gave at {as_of}, and these remove none: {error}",
                hook.name
            );
            Some(about(GLOBAL_KEY, "OldValues", "Run", Weight::Warning, note))
        }
        StandIn::Ends { .. } => None,
    }
}

pub(super) fn slowed(slowed: &Slowed) -> Announcement {
    match slowed {
        Slowed::Hook {
            hook,
            deed,
            times,
            next_in,
        } => {
            let subject = hook.owner.module().map_or(GLOBAL_KEY, ModuleName::as_str);
            let next = next_in.as_secs();
            let note = format!(
                "hook '{}' {deed}, {times} times in a row: its next run waits for {next}s, or for a change by others",
                hook.name
            );
            about(subject, "LoopSlowed", "Run", Weight::Warning, note)
        }
        Slowed::Switch {
            module,
            enabled,
            by,
            times,
            next_in,
        } => {
            let (state, next) = (if *enabled { "on" } else { "off" }, next_in.as_secs());
            let note = format!(
                "module '{module}' was switched {times} times within 10 minutes, the last time by {by}: it stays {state} for \
                 {next}s, or until a person edits its flag in the ConfigMap"
            );
            of_module(module, "LoopSlowed", "Enable", Weight::Warning, note)
        }
    }
}
