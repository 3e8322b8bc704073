//! Pods that may not be created: the refusal of the API server, as the owner of the pods reports it.
//!
//! Must never tell a refusal of a workload that has all its pods.

use serde_json::Value;

use super::{Cause, Scene, Weight};
use crate::field::{conditions, text, whole};
use crate::text::{MESSAGE, NAME, harmless};

pub(super) fn causes(scene: &Scene<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut add = |kind: &'static str, owner: &Value, is_old: bool| {
        let failed = scene
            .events
            .of(kind, owner)
            .find(|event| event.reason == "FailedCreate");
        let of_event = failed.map(|event| refusal(event.message));
        if let Some(text) = of_event.or_else(|| replica_failure(owner)) {
            let cause = Cause::new(Weight::Refusal, name_of(owner), text);
            causes.push(Cause { is_old, ..cause });
        }
    };
    let workload = scene.workload;
    let count = |path| whole(workload, path, 0);
    match scene.kind.as_str() {
        "apps/Deployment" => {
            let short = scene.replica_sets.iter().filter(|set| lacks_pods(set));
            short.for_each(|set| {
                let is_old = scene.newest.is_some_and(|newest| newest != text(set, "metadata.uid"));
                add("ReplicaSet", set, is_old);
            });
            if lacks_pods(workload) && scene.replica_sets.is_empty() {
                add("Deployment", workload, false);
            }
        }
        "apps/ReplicaSet" if lacks_pods(workload) => add("ReplicaSet", workload, false),
        "apps/StatefulSet" if lacks_pods(workload) => add("StatefulSet", workload, false),
        "apps/DaemonSet" if count("status.desiredNumberScheduled") > count("status.currentNumberScheduled") => {
            add("DaemonSet", workload, false);
        }
        "batch/Job" if count("status.active") == 0 => add("Job", workload, false),
        _ => {}
    }
    causes
}

fn name_of(object: &Value) -> &str {
    text(object, "metadata.name")
}

fn lacks_pods(object: &Value) -> bool {
    whole(object, "spec.replicas", 1) > whole(object, "status.replicas", 0)
}

/// The condition of a ReplicaSet or a Deployment, which outlives the events.
fn replica_failure(owner: &Value) -> Option<String> {
    let conditions = conditions(owner).ok()?;
    let failure = conditions
        .iter()
        .find(|condition| condition.is("ReplicaFailure", "True"))?;
    Some(refusal(failure.message))
}

/// The refusal in short. The name of the pod, which was never created, is left out.
fn refusal(message: &str) -> String {
    let told = security(message)
        .or_else(|| webhook(message))
        .or_else(|| service_account(message))
        .or_else(|| Some(harmless(&message[message.find("exceeded quota: ")?..], MESSAGE)))
        .unwrap_or_else(|| {
            let rest = message.strip_prefix("Error creating: ").unwrap_or(message);
            harmless(rest, MESSAGE)
        });
    if told.is_empty() {
        return "pods cannot be created".to_owned();
    }
    format!("pods cannot be created: {told}")
}

/// Pod Security: the level and the names of the broken rules, without the remedies in brackets.
fn security(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("violates PodSecurity \"")?;
    let (level, rest) = rest.split_once('"')?;
    let rules = outside_brackets(rest.trim_start_matches([':', ' ']));
    let names: Vec<&str> = rules
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let (level, names) = (harmless(level, NAME), harmless(&names.join(", "), MESSAGE));
    Some(format!("PodSecurity {level} forbids them ({names})"))
}

fn outside_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let is_outside = |character: &char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    text.chars().filter(is_outside).collect()
}

fn webhook(message: &str) -> Option<String> {
    let after = |before: &str| message.split_once(before)?.1.split_once('"');
    if let Some((name, rest)) = after("admission webhook \"") {
        let told = rest.split_once("denied the request").map_or(rest, |(_, told)| told);
        let told = harmless(told.trim_start_matches([':', ' ']), MESSAGE);
        let colon = if told.is_empty() { "" } else { ": " };
        return Some(format!("webhook {} denies them{colon}{told}", harmless(name, NAME)));
    }
    let (name, rest) = after("failed calling webhook \"")?;
    let told = harmless(rest.trim_start_matches([':', ' ']), MESSAGE);
    Some(format!("webhook {} cannot be called: {told}", harmless(name, NAME)))
}

fn service_account(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("serviceaccount \"")?;
    let (name, rest) = rest.split_once('"')?;
    let is_missing = rest.contains("not found");
    is_missing.then(|| format!("service account {} does not exist", harmless(name, NAME)))
}
