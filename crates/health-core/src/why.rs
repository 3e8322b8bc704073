//! The reason why a workload is not well, from the objects around it.
//!
//! One sentence about one object: the most telling cause, of the newest pods first. Must never tell a cause of a pod
//! that is ready or of another workload.

mod container;
mod event;
mod image;
mod pod;
mod refusal;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::field::{group_kind, items, text, value};
use crate::text::{MESSAGE, NAME, SENTENCE, harmless};
use event::Events;

/// The names of a container and of its pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerName {
    /// The pod.
    pub pod: String,
    /// The container in it.
    pub container: String,
}

/// The objects around a workload, as the caller listed them. Objects of other workloads are passed over.
#[derive(Debug, Clone, Default)]
pub struct Around<'a> {
    /// ReplicaSets, for a Deployment.
    pub replica_sets: &'a [Value],
    /// Pods.
    pub pods: &'a [Value],
    /// Events of the namespace, of either API group.
    pub events: &'a [Value],
    /// The last line that a container wrote before it ended.
    pub last_lines: BTreeMap<ContainerName, String>,
}

/// The most telling cause, with the name of the object at fault. None if nothing around the workload tells one.
pub fn why(workload: &Value, around: &Around<'_>, now: Timestamp) -> Option<String> {
    let scene = Scene::new(workload, around, now);
    let mut causes = pod::causes(&scene);
    causes.extend(refusal::causes(&scene));
    causes.extend(workload::causes(&scene));
    let cause = causes.into_iter().min()?;
    let name = harmless(&cause.name, NAME);
    let colon = if name.is_empty() { "" } else { ": " };
    Some(harmless(&format!("{name}{colon}{}", cause.text), SENTENCE))
}

/// Whether a sentence about a workload tells of an image whose registry does not answer. Another image of that registry
/// could not be pulled either.
pub fn is_registry_away(sentence: &str) -> bool {
    image::is_registry_away(sentence)
}

/// The objects and the log about which the caller asks the cluster before it asks why.
#[derive(Debug, Clone, PartialEq)]
pub struct Witnesses<'a> {
    /// The object that makes the pods of the newest version.
    pub maker: &'a Value,
    /// The pod whose events tell most.
    pub pod: Option<&'a Value>,
    /// The log whose last line tells why a container has ended.
    pub last_words: Option<LastWords>,
}

/// A log of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWords {
    /// The container.
    pub container: ContainerName,
    /// Whether the log is that of the container before it was started again.
    pub is_before_restart: bool,
}

/// The objects whose events and log lines [`why`] reads, chosen from the sets and the pods around a workload.
pub fn witnesses<'a>(workload: &'a Value, around: &'a Around<'_>, now: Timestamp) -> Witnesses<'a> {
    let scene = Scene::new(workload, around, now);
    let mut pods: Vec<&Value> = scene.pods.iter().copied().filter(|pod| !pod::is_at_rest(pod)).collect();
    pods.sort_by_key(|pod| (scene.is_old(pod), text(pod, "metadata.name")));
    let last_words = pods.iter().find_map(|pod| {
        let containers = container::all(pod);
        containers.iter().find_map(|container| container.last_words(&scene))
    });
    let newest = |set: &&&Value| Some(text(set, "metadata.uid")) == scene.newest;
    Witnesses {
        maker: scene.replica_sets.iter().find(newest).copied().unwrap_or(workload),
        pod: pods.first().copied(),
        last_words,
    }
}

/// The kind of a cause, the most telling one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// A Job has given up. The ends of its pods are part of the sentence.
    Verdict,
    /// An image cannot be pulled.
    Image,
    /// A container ends again and again.
    Crash,
    /// An init container fails or does not end.
    Init,
    /// A probe restarts a container, or keeps it from being ready.
    Probe,
    /// Something that a container needs is missing.
    Supply,
    /// No node takes the pod.
    Placement,
    /// Pods may not be created.
    Refusal,
    /// A pod has failed.
    End,
    /// A pod waits, and nothing tells for what.
    Wait,
    /// Only counts tell that something is missing.
    Count,
}

/// A possible answer. The least one is the best.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    /// Whether it is about pods of an earlier version.
    is_old: bool,
    weight: Weight,
    name: String,
    text: String,
}

impl Cause {
    fn new(weight: Weight, name: &str, text: String) -> Self {
        Self {
            is_old: false,
            weight,
            name: name.to_owned(),
            text,
        }
    }
}

/// The workload and its own objects among those that the caller listed.
struct Scene<'a> {
    workload: &'a Value,
    /// The group and the kind of the workload.
    kind: String,
    replica_sets: Vec<&'a Value>,
    pods: Vec<&'a Value>,
    /// The UID of the ReplicaSet of the newest version.
    newest: Option<&'a str>,
    events: Events<'a>,
    last_lines: &'a BTreeMap<ContainerName, String>,
    now: Timestamp,
}

impl<'a> Scene<'a> {
    fn new(workload: &'a Value, around: &'a Around<'_>, now: Timestamp) -> Self {
        let kind = group_kind(workload);
        let uid = text(workload, "metadata.uid");
        let replica_sets: Vec<&Value> = around
            .replica_sets
            .iter()
            .filter(|set| is_owned(set, &BTreeSet::from([uid])))
            .collect();
        let mut owners = BTreeSet::from([uid]);
        owners.extend(replica_sets.iter().map(|set| text(set, "metadata.uid")));
        let pods = if kind == "Pod" {
            vec![workload]
        } else {
            around.pods.iter().filter(|pod| is_owned(pod, &owners)).collect()
        };
        Self {
            workload,
            kind,
            newest: newest(&replica_sets),
            replica_sets,
            pods,
            events: Events::new(around.events, now),
            last_lines: &around.last_lines,
            now,
        }
    }

    /// Whether a pod is of an earlier version of a Deployment.
    fn is_old(&self, pod: &Value) -> bool {
        let owner = |uid: &str| is_owned(pod, &BTreeSet::from([uid]));
        self.newest.is_some_and(|newest| !newest.is_empty() && !owner(newest))
    }

    /// The message of the newest event that says why a claim gets no volume.
    fn complaint_about_claim(&self, name: &str) -> Option<&'a str> {
        let mut events = self.events.named("PersistentVolumeClaim", name);
        let complaint = events.find(|event| matches!(event.reason, "ProvisioningFailed" | "FailedBinding"));
        complaint.map(|event| event.message)
    }

    /// The last line of a container, made harmless.
    fn last_line(&self, pod: &str, container: &str) -> Option<String> {
        let name = ContainerName {
            pod: pod.to_owned(),
            container: container.to_owned(),
        };
        let line = harmless(self.last_lines.get(&name)?, MESSAGE);
        (!line.is_empty()).then_some(line)
    }
}

/// Whether one of the UIDs owns the object. An owner without a UID is taken to own everything that was listed for it.
fn is_owned(object: &Value, owners: &BTreeSet<&str>) -> bool {
    let mut of_object = items(object, "metadata.ownerReferences").iter();
    owners.contains("") || of_object.any(|owner| owners.contains(text(owner, "uid")))
}

/// The UID of the set with the highest revision.
fn newest<'a>(sets: &[&'a Value]) -> Option<&'a str> {
    const REVISION: &str = "deployment.kubernetes.io/revision";
    let revision = |set: &Value| -> Option<i64> {
        let annotations = value(set, "metadata.annotations")?;
        annotations.get(REVISION)?.as_str()?.parse().ok()
    };
    let newest = sets
        .iter()
        .max_by_key(|set| (revision(set), text(set, "metadata.creationTimestamp")))?;
    Some(text(newest, "metadata.uid"))
}

#[cfg(test)]
mod tests;
