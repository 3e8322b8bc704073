//! Jobs: a Job is current once it is complete, and failed once it has given up.
//!
//! Must never call a Job failed because a pod of it failed: it may have tries left.

use serde_json::Value;

use crate::field::{Condition, text, value, whole};
use crate::finding::Finding;
use crate::text::{MESSAGE, NAME, counted, harmless};

pub(super) fn job(object: &Value, conditions: &[Condition<'_>]) -> Finding {
    let done = |condition: &&Condition<'_>| condition.is("Complete", "True") || condition.is("Failed", "True");
    match conditions.iter().find(done) {
        Some(condition) if condition.name == "Complete" => Finding::current(),
        Some(failed) => Finding::failed(&failure(failed)),
        None if !text(object, "status.startTime").is_empty() => Finding::in_progress(&progress(object)),
        None if value(object, "spec.suspend").and_then(Value::as_bool) == Some(true) => {
            Finding::in_progress("the Job is suspended")
        }
        None => Finding::in_progress("the Job has not started yet"),
    }
}

fn progress(object: &Value) -> String {
    let active = whole(object, "status.active", 0);
    let run = if active == 1 { "runs" } else { "run" };
    format!("it is not complete yet ({} {run})", counted(active, "pod"))
}

/// The failure of a Job in words, with its reason.
pub(crate) fn failure(condition: &Condition<'_>) -> String {
    match condition.reason {
        "BackoffLimitExceeded" => "all tries are used up (BackoffLimitExceeded)".to_owned(),
        "DeadlineExceeded" => "its deadline has passed (DeadlineExceeded)".to_owned(),
        "" => format!("the Job failed{}", message(condition)),
        reason => format!("the Job failed ({}){}", harmless(reason, NAME), message(condition)),
    }
}

fn message(condition: &Condition<'_>) -> String {
    match harmless(condition.message, MESSAGE).as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    }
}
