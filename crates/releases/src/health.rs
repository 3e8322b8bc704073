//! The words for the health of an object, the same ones in each answer.

use addon_core::operator::health::Seen;
use health_core::{Finding, State};

/// The health as modules and people see it: an object that goes is on its way.
pub(crate) fn seen(finding: Finding) -> Seen {
    let Finding { state, sentence } = finding;
    match state {
        State::Current => Seen::Healthy,
        State::InProgress => Seen::InProgress(sentence),
        State::Terminating => Seen::InProgress("it is being deleted".to_owned()),
        State::Failed => Seen::Failed(sentence),
        State::Unknown => Seen::Unknown,
    }
}

/// The health of an object that is not there.
pub(crate) fn absent() -> Seen {
    Seen::InProgress("it is absent".to_owned())
}

/// A word and a sentence for people. The sentence is empty if nothing is to be said.
pub(crate) fn worded(seen: Seen) -> (&'static str, String) {
    match seen {
        Seen::Healthy => ("Healthy", String::new()),
        Seen::Unknown => ("Unknown", String::new()),
        Seen::InProgress(sentence) => ("RollingOut", sentence),
        Seen::Failed(sentence) => ("Failed", sentence),
    }
}
