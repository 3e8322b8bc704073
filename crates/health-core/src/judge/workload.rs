//! Workloads that keep a number of pods: their counts against the wanted ones.
//!
//! The first count that falls short decides, so the sentence tells the earliest step that is not done. Must never take
//! an absent count for a reached one.

use serde_json::Value;

use crate::field::{Condition, Malformed, strict_whole, text, whole};
use crate::finding::Finding;
use crate::text::counted;

/// The deadline of a Deployment that has none.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// In progress if fewer pods than wanted are so far.
fn short(count: i64, wanted: i64, word: &str) -> Option<Finding> {
    let verb = if count == 1 { "is" } else { "are" };
    (wanted > count).then(|| Finding::in_progress(&format!("{count} of {wanted} pods {verb} {word}")))
}

/// In progress if there are pods that have to go.
fn surplus(count: i64, wanted: i64) -> Option<Finding> {
    let extra = count.saturating_sub(wanted);
    let verb = if extra == 1 { "has" } else { "have" };
    (extra > 0).then(|| Finding::in_progress(&format!("{} {verb} still to end", counted(extra, "old pod"))))
}

/// Like `surplus`, of a Deployment whose old pods stay until the new ones work.
fn rolling(all: i64, wanted: i64, available: i64) -> Option<Finding> {
    let surplus = surplus(all, wanted)?;
    let Some(short) = short(available, all, "available") else {
        return Some(surplus);
    };
    Some(Finding::in_progress(&format!(
        "{}, and {}",
        short.sentence, surplus.sentence
    )))
}

pub(super) fn deployment(object: &Value, conditions: &[Condition<'_>]) -> Finding {
    let deadline = whole(object, "spec.progressDeadlineSeconds", NO_DEADLINE);
    // Without a deadline the controller does not report progress.
    let mut progressing = deadline == NO_DEADLINE;
    let mut available = false;
    for condition in conditions {
        match condition.name {
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                return Finding::failed(&if deadline == NO_DEADLINE {
                    "the rollout took longer than its deadline".to_owned()
                } else {
                    format!("the rollout took longer than its deadline of {deadline} s")
                });
            }
            "Progressing" => progressing |= condition.status == "True" && condition.reason == "NewReplicaSetAvailable",
            "Available" => available |= condition.status == "True",
            _ => {}
        }
    }
    let wanted = whole(object, "spec.replicas", 1);
    let count = |name| whole(object, name, 0);
    let (all, updated) = (count("status.replicas"), count("status.updatedReplicas"));
    short(all, wanted, "created")
        .or_else(|| short(updated, wanted, "of the newest version"))
        .or_else(|| rolling(all, wanted, count("status.availableReplicas")))
        .or_else(|| short(count("status.availableReplicas"), updated, "available"))
        .or_else(|| short(count("status.readyReplicas"), wanted, "ready"))
        .or_else(|| (!progressing).then(|| Finding::in_progress("the rollout is not complete yet")))
        .or_else(|| (!available).then(|| Finding::in_progress("the Deployment is not available yet")))
        .unwrap_or_else(Finding::current)
}

pub(super) fn stateful_set(object: &Value) -> Finding {
    if text(object, "spec.updateStrategy.type") == "OnDelete" {
        return Finding::current();
    }
    let wanted = whole(object, "spec.replicas", 1);
    let count = |name| whole(object, name, 0);
    let all = count("status.replicas");
    let updated = count("status.updatedReplicas");
    let counts = short(all, wanted, "created")
        .or_else(|| short(count("status.readyReplicas"), wanted, "ready"))
        .or_else(|| surplus(all, wanted));
    if let Some(finding) = counts {
        return finding;
    }
    let partition = whole(object, "spec.updateStrategy.rollingUpdate.partition", -1);
    if partition != -1 {
        let to_update = wanted.saturating_sub(partition);
        return short(updated, to_update, "of the newest version").unwrap_or_else(Finding::current);
    }
    let (current, newest) = (
        text(object, "status.currentRevision"),
        text(object, "status.updateRevision"),
    );
    short(count("status.currentReplicas"), wanted, "of the current version")
        .or_else(|| {
            (current != newest).then(|| Finding::in_progress("the rollout of the newest version is not complete"))
        })
        .unwrap_or_else(Finding::current)
}

pub(super) fn replica_set(object: &Value, conditions: &[Condition<'_>]) -> Finding {
    let failure = conditions
        .iter()
        .find(|condition| condition.is("ReplicaFailure", "True"));
    if let Some(failure) = failure {
        return Finding::in_progress(&failure.told("pods cannot be created or deleted"));
    }
    let wanted = whole(object, "spec.replicas", 1);
    let count = |name| whole(object, name, 0);
    short(count("status.fullyLabeledReplicas"), wanted, "fully labelled")
        .or_else(|| short(count("status.availableReplicas"), wanted, "available"))
        .or_else(|| short(count("status.readyReplicas"), wanted, "ready"))
        .or_else(|| surplus(count("status.replicas"), wanted))
        .unwrap_or_else(Finding::current)
}

/// Its controller always sets the generation and the number of nodes, so an object without them has not been seen.
pub(super) fn daemon_set(object: &Value) -> Result<Finding, Malformed> {
    let unseen = || Finding::in_progress("the controller has not seen the DaemonSet yet");
    if strict_whole(object, "metadata.generation")?.is_none()
        || strict_whole(object, "status.observedGeneration")?.is_none()
    {
        return Ok(unseen());
    }
    let wanted = whole(object, "status.desiredNumberScheduled", -1);
    if wanted == -1 {
        return Ok(unseen());
    }
    let count = |name| whole(object, name, 0);
    Ok(short(count("status.currentNumberScheduled"), wanted, "on their nodes")
        .or_else(|| short(count("status.updatedNumberScheduled"), wanted, "of the newest version"))
        .or_else(|| short(count("status.numberAvailable"), wanted, "available"))
        .or_else(|| short(count("status.numberReady"), wanted, "ready"))
        .unwrap_or_else(Finding::current))
}
