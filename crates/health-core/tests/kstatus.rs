//! The recorded answers of kstatus, held against ours. `tests/oracles/kstatus` makes the record.
//!
//! A difference must be in the table, with its reason, and a row of the table that is no difference any more must go.

use health_core::{State, judge};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Asked {
    case: String,
    object: Value,
}

#[derive(Deserialize)]
struct Told {
    case: String,
    status: Option<String>,
    error: Option<String>,
}

const NO_ADDRESS: &str = "nobody outside can reach the Service";
const NOT_DONE: &str = "the work of the Job is not done";
const NOT_AVAILABLE: &str = "calls for the group fail";

/// The cases with another state than in kstatus, our state, and the reason.
const DIFFERENCES: [(&str, State, &str); 16] = [
    ("balancer without outer address", State::InProgress, NO_ADDRESS),
    ("balancer without status", State::InProgress, NO_ADDRESS),
    ("balancer with an empty list", State::InProgress, NO_ADDRESS),
    ("balancer with an empty address", State::InProgress, NO_ADDRESS),
    ("job running", State::InProgress, NOT_DONE),
    ("job complete false", State::InProgress, NOT_DONE),
    ("job success criteria met", State::InProgress, NOT_DONE),
    ("job failed false", State::InProgress, NOT_DONE),
    ("job failing", State::InProgress, NOT_DONE),
    ("job with failed pods", State::InProgress, NOT_DONE),
    ("job start odd", State::InProgress, NOT_DONE),
    ("api bare", State::InProgress, NOT_AVAILABLE),
    ("api not available", State::InProgress, NOT_AVAILABLE),
    ("api available unknown", State::InProgress, NOT_AVAILABLE),
    ("api ready but not available", State::InProgress, NOT_AVAILABLE),
    (
        "api not ready but available",
        State::Current,
        "its condition is Available",
    ),
];

/// The state that equals a recorded answer. An error of the original is an unknown state.
fn recorded(told: &Told) -> Option<State> {
    match told.status.as_deref() {
        Some("Current") => Some(State::Current),
        Some("InProgress") => Some(State::InProgress),
        Some("Failed") => Some(State::Failed),
        Some("Terminating") => Some(State::Terminating),
        Some(_) => None,
        None => told.error.is_some().then_some(State::Unknown),
    }
}

#[test]
fn objects_are_judged_as_kstatus_judges_them() {
    // The objects are years older or younger than this.
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let asked = include_str!("oracles/kstatus/objects.jsonl").lines();
    let told = include_str!("oracles/kstatus.jsonl").lines();
    assert_eq!(asked.clone().count(), told.clone().count(), "a record of other objects");
    let mut differences = Vec::new();
    for (asked, told) in asked.zip(told) {
        let asked: Asked = serde_json::from_str(asked).unwrap();
        let told: Told = serde_json::from_str(told).unwrap();
        assert_eq!(asked.case, told.case);
        let ours = judge(&asked.object, now);
        assert_eq!(
            ours.sentence.is_empty(),
            has_nothing_to_say(&asked, ours.state),
            "{}: {ours:?}",
            asked.case
        );
        if Some(ours.state) != recorded(&told) {
            differences.push((asked.case, ours.state));
        }
    }
    let expected: Vec<_> = DIFFERENCES
        .iter()
        .map(|(case, state, _)| ((*case).to_owned(), *state))
        .collect();
    let sort = |mut rows: Vec<(String, State)>| {
        rows.sort();
        rows
    };
    assert_eq!(sort(differences), sort(expected));
}

/// Only a current object needs no sentence. A pod that failed is current, and still has one.
fn has_nothing_to_say(asked: &Asked, state: State) -> bool {
    let failed_pod = asked.object["kind"] == "Pod" && asked.object["status"]["phase"] == "Failed";
    state == State::Current && !failed_pod
}
