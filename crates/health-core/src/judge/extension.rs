//! Extensions of the API: definitions of kinds, and groups that another server answers for.
//!
//! Must never call a definition failed while it is being installed.

use crate::field::Condition;
use crate::finding::Finding;

pub(super) fn definition(conditions: &[Condition<'_>]) -> Finding {
    for condition in conditions {
        match (condition.name, condition.status) {
            ("NamesAccepted", "False") => {
                return Finding::failed(&condition.told("the names of the kind are not accepted"));
            }
            ("Established", "False") if condition.reason != "Installing" => {
                return Finding::failed(&condition.told("the kind is not established"));
            }
            ("Established", "True") => return Finding::current(),
            _ => {}
        }
    }
    Finding::in_progress("the kind is not established yet")
}

pub(super) fn api_service(conditions: &[Condition<'_>]) -> Finding {
    match conditions.iter().find(|condition| condition.name == "Available") {
        Some(condition) if condition.status == "True" => Finding::current(),
        Some(condition) => Finding::in_progress(&condition.told("the API is not available")),
        None => Finding::in_progress("the API is not available yet"),
    }
}
