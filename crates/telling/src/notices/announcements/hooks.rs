//! Announcements about hooks: of loops, and of values that serve for a global hook that fails or hangs. Must never show
//! the output of a hook.

use addon_core::operator::effect::{Slowed, StandIn};
use names::{GLOBAL_KEY, ModuleName};

use super::{Announcement, Weight, about, of_module};

pub(super) fn stand_in(stand_in: &StandIn) -> Option<Announcement> {
    match stand_in {
        StandIn::Serves { hook, as_of, error } => {
            let (deed, why) = match error {
                Some(error) => ("fails", format!(": {error}")),
                None => ("does not end", String::new()),
            };
            let note = format!(
                "global hook '{}' {deed}, so modules run with the values that it gave at {as_of}, and these remove none{why}",
                hook.name
            );
            Some(about(GLOBAL_KEY, "OldValues", "Run", Weight::Warning, note))
        }
        StandIn::Moves { .. } | StandIn::Ends { .. } => None,
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
