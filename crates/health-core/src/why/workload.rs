//! Causes that a workload tells itself: the end of a Job, the complaint about a claim, and counts of pods.
//!
//! Counts are told last, because they name no reason. Must never walk through more pods than there are.

use serde_json::Value;

use super::{Cause, Scene, Weight};
use crate::field::{conditions, text, whole};
use crate::text::{MESSAGE, NAME, counted, harmless};
use crate::why::container;

/// The number of failed pods that a sentence names.
const NAMED: usize = 3;

pub(super) fn causes(scene: &Scene<'_>) -> Option<Cause> {
    match scene.kind.as_str() {
        "batch/Job" => job(scene),
        "apps/DaemonSet" => daemon_set(scene.workload),
        "apps/StatefulSet" => stateful_set(scene),
        "PersistentVolumeClaim" => claim(scene),
        _ => None,
    }
}

/// The failed pods of a Job that has given up. That it did so is told by its own state.
fn job(scene: &Scene<'_>) -> Option<Cause> {
    let conditions = conditions(scene.workload).ok()?;
    conditions.iter().find(|condition| condition.is("Failed", "True"))?;
    let pods: Vec<String> = scene.pods.iter().filter_map(|pod| ended(scene, pod)).collect();
    let others = pods.len().saturating_sub(NAMED);
    let mut told: Vec<String> = pods.into_iter().take(NAMED).collect();
    if others > 0 {
        told.push(format!("{others} more failed"));
    }
    (!told.is_empty()).then(|| Cause::new(Weight::Verdict, "", told.join("; ")))
}

/// The way in which a pod of a Job failed.
fn ended(scene: &Scene<'_>, pod: &Value) -> Option<String> {
    if text(pod, "status.phase") != "Failed" {
        return None;
    }
    let name = harmless(text(pod, "metadata.name"), NAME);
    let containers = container::all(pod);
    let end = containers.iter().find_map(|container| container.failure(scene));
    let (end, line) = end.unwrap_or_else(|| ("failed".to_owned(), String::new()));
    Some(format!("{name}: {end}{line}"))
}

/// The complaint about a claim that gets no volume.
fn claim(scene: &Scene<'_>) -> Option<Cause> {
    let message = scene.complaint_about_claim(text(scene.workload, "metadata.name"))?;
    Some(Cause::new(Weight::Supply, "", harmless(message, MESSAGE)))
}

fn daemon_set(set: &Value) -> Option<Cause> {
    let wanted = whole(set, "status.desiredNumberScheduled", 0);
    let ready = whole(set, "status.numberReady", 0);
    let told = format!("its pod is ready on {ready} of {}", counted(wanted, "node"));
    (ready < wanted).then(|| Cause::new(Weight::Count, text(set, "metadata.name"), told))
}

/// The first pod in the order of a StatefulSet that is missing or not ready: the others wait for it.
fn stateful_set(scene: &Scene<'_>) -> Option<Cause> {
    let set = scene.workload;
    let name = text(set, "metadata.name");
    let wanted = whole(set, "spec.replicas", 1);
    let first = whole(set, "spec.ordinals.start", 0);
    let most = i64::try_from(scene.pods.len()).ok()?.saturating_add(1).min(wanted);
    (0..most).find_map(|index| {
        let number = first.saturating_add(index);
        let wanted_name = format!("{name}-{number}");
        let pod = scene.pods.iter().find(|pod| text(pod, "metadata.name") == wanted_name);
        let trouble = match pod {
            None => "does not exist",
            Some(pod) if !is_ready(pod) => "is not ready",
            Some(_) => return None,
        };
        let pod = harmless(&wanted_name, NAME);
        let others_wait = index + 1 < wanted && text(set, "spec.podManagementPolicy") != "Parallel";
        let others = if others_wait {
            ", and the pods after it wait"
        } else {
            ""
        };
        let told = format!("pod {pod} {trouble}{others}");
        Some(Cause::new(Weight::Count, name, told))
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = conditions(pod).unwrap_or_default();
    conditions.iter().any(|condition| condition.is("Ready", "True"))
}
