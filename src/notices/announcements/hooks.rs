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
    let note = slowed.to_string();
    match slowed {
        Slowed::Hook { hook, .. } => {
            let subject = hook.owner.module().map_or(GLOBAL_KEY, ModuleName::as_str);
            about(subject, "LoopSlowed", "Run", Weight::Warning, note)
        }
        Slowed::Switch { module, .. } => of_module(module, "LoopSlowed", "Enable", Weight::Warning, note),
    }
}
