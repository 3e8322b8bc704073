//! The state of one pod.
//!
//! A pod that has ended is current, even if it failed: its owner decides what that means. Must never read the reason of
//! a container that does not wait.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::field::{Condition, Malformed, strict, text};
use crate::finding::{Finding, State};
use crate::text::{NAME, harmless};

/// The time that a pod may be without a node before that is a failure.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

pub(super) fn pod(object: &Value, conditions: &[Condition<'_>], now: Timestamp) -> Result<Finding, Malformed> {
    match text(object, "status.phase") {
        "Succeeded" => Ok(Finding::current()),
        "Failed" => Ok(Finding::new(State::Current, "the pod has ended, but not successfully")),
        "Running" => running(object, conditions),
        "Pending" => Ok(pending(object, conditions, now)),
        "" => Ok(Finding::in_progress("the pod has no phase yet")),
        phase => {
            let sentence = format!("the phase of the pod is {}", harmless(phase, NAME));
            Ok(Finding::new(State::Unknown, &sentence))
        }
    }
}

fn running(object: &Value, conditions: &[Condition<'_>]) -> Result<Finding, Malformed> {
    if conditions.iter().any(|condition| condition.is("Ready", "True")) {
        return Ok(Finding::current());
    }
    let looping = crash_looping(object)?;
    if looping.is_empty() {
        return Ok(Finding::in_progress("the pod runs but is not ready"));
    }
    let noun = if looping.len() == 1 { "container" } else { "containers" };
    let names = looping.join(", ");
    Ok(Finding::failed(&format!(
        "a crash loop of the {noun} {}",
        harmless(&names, NAME * 2)
    )))
}

fn pending(object: &Value, conditions: &[Condition<'_>], now: Timestamp) -> Finding {
    // Only the first refusal counts.
    let refused = conditions
        .iter()
        .find(|condition| condition.is("PodScheduled", "False"));
    let Some(refused) = refused.filter(|condition| condition.reason == "Unschedulable") else {
        return Finding::in_progress("the pod is pending");
    };
    let created: Option<Timestamp> = text(object, "metadata.creationTimestamp").parse().ok();
    let is_young = created.is_some_and(|created| now.duration_since(created) < PATIENCE);
    if is_young {
        return Finding::in_progress("the pod has no node yet");
    }
    let message = harmless(refused.message, crate::text::MESSAGE);
    let colon = if message.is_empty() { "" } else { ": " };
    Finding::failed(&format!("no node can take the pod{colon}{message}"))
}

/// The names of the containers that are started again and again.
fn crash_looping(object: &Value) -> Result<Vec<&str>, Malformed> {
    const PATH: &str = "status.containerStatuses";
    let malformed = || Malformed::at(PATH);
    let Some(statuses) = strict(object, PATH)? else {
        return Ok(Vec::new());
    };
    let mut looping = Vec::new();
    for status in statuses.as_array().ok_or_else(malformed)? {
        if let Some((name, reason)) = waiting(status).map_err(|()| malformed())?
            && reason == "CrashLoopBackOff"
        {
            looping.push(name);
        }
    }
    Ok(looping)
}

/// The name of a container and the reason why it waits. Each step must have its type if it is there.
fn waiting(status: &Value) -> Result<Option<(&str, &str)>, ()> {
    let status = status.as_object().ok_or(())?;
    let Some(name) = status.get("name") else {
        return Ok(None);
    };
    let name = name.as_str().ok_or(())?;
    let Some(state) = status.get("state") else {
        return Ok(None);
    };
    let Some(waiting) = state.as_object().ok_or(())?.get("waiting") else {
        return Ok(None);
    };
    let Some(reason) = waiting.as_object().ok_or(())?.get("reason") else {
        return Ok(None);
    };
    Ok(Some((name, reason.as_str().ok_or(())?)))
}
