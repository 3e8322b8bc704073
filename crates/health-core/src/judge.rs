//! The state of an object, from the object alone.
//!
//! First the properties of all kinds, then the rules of a built-in kind, then the condition `Ready`. An object that
//! says nothing about itself is current. Must never judge by a field that the original does not read, except where the
//! table of the crate lists it.

pub(crate) mod batch;
mod extension;
pub(crate) mod outside;
mod pod;
mod storage;
mod workload;

use jiff::Timestamp;
use serde_json::Value;

use crate::field::{Condition, Malformed, conditions, group_kind, strict_text, strict_whole};
use crate::finding::{Finding, State};

/// Judges an object. The time decides how long a pod may wait for a node.
pub fn judge(object: &Value, now: Timestamp) -> Finding {
    if !object.is_object() {
        return Malformed::at("the object").into();
    }
    examine(object, now).unwrap_or_else(Finding::from)
}

fn examine(object: &Value, now: Timestamp) -> Result<Finding, Malformed> {
    if let Some(finding) = deletion(object)? {
        return Ok(finding);
    }
    if let Some(finding) = generation(object)? {
        return Ok(finding);
    }
    let conditions = conditions(object)?;
    if let Some(finding) = standard(&conditions) {
        return Ok(finding);
    }
    match group_kind(object).as_str() {
        "apps/Deployment" | "extensions/Deployment" => Ok(workload::deployment(object, &conditions)),
        "apps/StatefulSet" => Ok(workload::stateful_set(object)),
        "apps/ReplicaSet" | "extensions/ReplicaSet" => Ok(workload::replica_set(object, &conditions)),
        "apps/DaemonSet" | "extensions/DaemonSet" => workload::daemon_set(object),
        "Pod" => pod::pod(object, &conditions, now),
        "PersistentVolumeClaim" => Ok(storage::claim(object)),
        "Service" => Ok(storage::service(object)),
        "batch/Job" => Ok(batch::job(object, &conditions)),
        "apiextensions.k8s.io/CustomResourceDefinition" => Ok(extension::definition(&conditions)),
        "apiregistration.k8s.io/APIService" => Ok(extension::api_service(&conditions)),
        // They have no progress of their own, or report it by the generation alone.
        "ConfigMap" | "Secret" | "batch/CronJob" | "policy/PodDisruptionBudget" => Ok(Finding::current()),
        _ => Ok(ready(&conditions).unwrap_or_else(Finding::current)),
    }
}

/// An object that is being deleted.
pub(crate) fn deletion(object: &Value) -> Result<Option<Finding>, Malformed> {
    let since = strict_text(object, "metadata.deletionTimestamp")?;
    let deleted = since.is_some_and(|since| !since.is_empty());
    Ok(deleted.then(|| Finding::new(State::Terminating, "the object is being deleted")))
}

/// An object whose newest spec its controller has not seen.
pub(crate) fn generation(object: &Value) -> Result<Option<Finding>, Malformed> {
    let Some(newest) = strict_whole(object, "metadata.generation")? else {
        return Ok(None);
    };
    let seen = strict_whole(object, "status.observedGeneration")?;
    let Some(seen) = seen.filter(|seen| *seen != newest) else {
        return Ok(None);
    };
    let sentence = format!("the newest spec is not observed yet (generation {newest}, observed {seen})");
    Ok(Some(Finding::in_progress(&sentence)))
}

/// The conditions that every controller may set. The first one decides.
fn standard(conditions: &[Condition<'_>]) -> Option<Finding> {
    conditions.iter().find_map(|condition| {
        if condition.is("Reconciling", "True") {
            return Some(Finding::in_progress(&condition.told("the controller is at work")));
        }
        let stalled = condition.is("Stalled", "True");
        stalled.then(|| Finding::failed(&condition.told("the controller cannot go on")))
    })
}

/// The condition `Ready`. A status that is none of the three words says nothing, and the next one is asked.
fn ready(conditions: &[Condition<'_>]) -> Option<Finding> {
    let mut all = conditions.iter().filter(|condition| condition.name == "Ready");
    all.find_map(|condition| match condition.status {
        "True" => Some(Finding::current()),
        "False" => Some(Finding::in_progress(&condition.told("the object is not ready"))),
        "Unknown" => Some(Finding::in_progress(
            &condition.told("it is not known whether the object is ready"),
        )),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
