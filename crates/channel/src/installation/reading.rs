//! Converts objects of the cluster into the observations that a trial needs.
//!
//! It uses no connection. Must never add a fact that is not in the object.

mod pod;

use addon_core::digest::Digest;
use channel_core::reference::Reference;
use channel_core::trial::sight;
use channel_core::version::Version;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::core::DynamicObject;
use serde_json::{Value, json};

pub(super) use self::pod::{digests, has_image_id, is_wanted, replica, trial_pod};
use super::{CHART_IMAGE, CHART_IMAGE_THEN, FORMER_IMAGE, PATCHED_IMAGE};

/// The annotation with an image that a person put there by hand, and that the operator may replace again.
pub const RESUMED: &str = "addon-operator/resumed";
/// The annotation with the time of the last resume. It distinguishes two resumes of the same image.
pub const RESUMED_AT: &str = "addon-operator/resumed-at";

/// The annotation by which a pod names its default container.
pub(super) const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// The name of the operator's container in the chart.
const CONTAINER: &str = "addon-operator";
const CHART: &str = "helm.sh/chart";

/// The operator's container in a pod, if it is clear which one it is.
pub(super) enum WhichContainer {
    Named(String),
    /// No container is clearly the operator's; the names of all containers.
    Unclear(Vec<String>),
}

/// The operator's container in a pod: the one that the annotation names, the one with the chart's name, or the only
/// one.
pub(super) fn container_of(pod: &Pod) -> WhichContainer {
    let annotations = pod.metadata.annotations.as_ref();
    let said = annotations.and_then(|annotations| annotations.get(DEFAULT_CONTAINER));
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
    let names: Vec<&String> = containers
        .unwrap_or_default()
        .iter()
        .map(|container| &container.name)
        .collect();
    let is_there = |name: &&str| names.iter().any(|known| known == name);
    let said = said.map(String::as_str).filter(is_there);
    match (said.or(Some(CONTAINER).filter(is_there)), names.as_slice()) {
        (Some(name), _) => WhichContainer::Named(name.to_owned()),
        (None, [only]) => WhichContainer::Named((*only).clone()),
        (None, names) => WhichContainer::Unclear(names.iter().map(|name| (*name).clone()).collect()),
    }
}

/// The image of a container in a pod's spec.
pub(super) fn image_in<'a>(pod: &'a Pod, container: &str) -> Option<&'a str> {
    named(&pod.spec.as_ref()?.containers, container)?.image.as_deref()
}

fn named<'a>(containers: &'a [Container], name: &str) -> Option<&'a Container> {
    containers.iter().find(|container| container.name == name)
}

/// The pod template of a Deployment, with all its fields.
pub(super) fn template(deployment: &DynamicObject) -> &Value {
    &deployment.data["spec"]["template"]
}

/// The hash of a pod template, including fields that this version of the operator does not know.
pub(super) fn template_hash(template: &Value) -> String {
    Digest::of(template).to_string()
}

/// The observation of a Deployment; a sentence if it does not have the operator's container.
pub(super) fn deployment(object: &DynamicObject, container: &str) -> Result<sight::Deployment, String> {
    let unfit = |error: serde_json::Error| format!("cannot read our Deployment: {error}");
    let spec: DeploymentSpec = serde_json::from_value(object.data["spec"].clone()).map_err(unfit)?;
    let status: Option<DeploymentStatus> =
        serde_json::from_value(object.data.get("status").cloned().unwrap_or(Value::Null)).map_err(unfit)?;
    let status = status.unwrap_or_default();
    let containers = spec.template.spec.as_ref().map(|spec| spec.containers.as_slice());
    let ours = named(containers.unwrap_or_default(), container)
        .ok_or_else(|| format!("our Deployment has no container '{container}'"))?;
    let image = ours.image.clone().unwrap_or_default();
    let metadata = &object.metadata;
    let chart = metadata.labels.as_ref().and_then(|labels| labels.get(CHART));
    Ok(sight::Deployment {
        reference: Reference::parse(&image).ok(),
        image,
        template: template_hash(template(object)),
        chart: chart.and_then(|label| Version::of_chart_label(label)),
        patched: annotation(metadata, PATCHED_IMAGE),
        former: annotation(metadata, FORMER_IMAGE),
        chart_image: annotation(metadata, CHART_IMAGE),
        chart_image_then: annotation(metadata, CHART_IMAGE_THEN),
        resumed: resumed(metadata),
        manager: manager(metadata, container),
        pulls_always: ours.image_pull_policy.as_deref() == Some("Always"),
        is_rolled_out: is_rolled_out(metadata, &spec, &status),
        stuck: stuck(&spec, &status),
    })
}

/// The image and the time of a person's last resume. The time distinguishes two resumes of the same image.
fn resumed(metadata: &ObjectMeta) -> Option<String> {
    let words: Vec<String> = [RESUMED_AT, RESUMED]
        .iter()
        .filter_map(|key| annotation(metadata, key))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

pub(super) fn annotation(metadata: &ObjectMeta, key: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(key).cloned()
}

/// The field manager that last wrote the container's image, and the time of that write.
fn manager(metadata: &ObjectMeta, container: &str) -> Option<(String, Option<Timestamp>)> {
    let holders = metadata.managed_fields.iter().flatten();
    let holders = holders.filter(|entry| entry.subresource.is_none() && holds_image(entry, container));
    let newest = holders.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?;
    let name = newest.manager.clone().unwrap_or_default();
    Some((name, newest.time.as_ref().map(|time| time.0)))
}

fn holds_image(entry: &ManagedFieldsEntry, container: &str) -> bool {
    let key = format!("k:{}", json!({"name": container}));
    let path = ["f:spec", "f:template", "f:spec", "f:containers", &key, "f:image"];
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
    fields.is_some_and(|fields| path.iter().try_fold(fields, |fields, part| fields.get(part)).is_some())
}

/// Whether all pods have the present template and are ready, and no older pod is left.
fn is_rolled_out(metadata: &ObjectMeta, spec: &DeploymentSpec, status: &DeploymentStatus) -> bool {
    let wanted = spec.replicas.unwrap_or(1);
    let is = |count: Option<i32>| count.unwrap_or_default() == wanted;
    status.observed_generation >= metadata.generation
        && is(status.replicas)
        && is(status.updated_replicas)
        && is(status.available_replicas)
}

/// Why the rollout does not progress.
fn stuck(spec: &DeploymentSpec, status: &DeploymentStatus) -> Option<String> {
    if spec.paused == Some(true) {
        return Some("its rollout is paused".to_owned());
    }
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|condition| match condition.type_.as_str() {
        "Progressing" => condition.status == "False",
        "ReplicaFailure" => condition.status == "True",
        _ => false,
    })?;
    let reason = condition.reason.as_deref().unwrap_or(&condition.type_);
    Some(sentence(reason, condition.message.as_deref()))
}

/// `reason: message`, or one of both if the other is empty.
fn sentence(reason: &str, message: Option<&str>) -> String {
    match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) if reason.is_empty() => message.to_owned(),
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

/// The observation of a trial's `ReplicaSet` with its pods from the list. The error is a sentence if the set is not a
/// trial's.
pub(super) fn trial_set<'a>(
    set: &ReplicaSet,
    container: &str,
    pods: impl Iterator<Item = &'a Pod>,
) -> Result<sight::TrialSet, String> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let spec = set.spec.as_ref().and_then(|spec| spec.template.as_ref()?.spec.as_ref());
    let image = spec.and_then(|spec| named(&spec.containers, container)?.image.as_deref());
    let digest = image.and_then(|image| Reference::parse(image).ok()?.digest);
    let digest = digest.ok_or_else(|| {
        format!("the ReplicaSet '{name}' was not made by us: its container '{container}' names no digest")
    })?;
    Ok(sight::TrialSet {
        uid: set.metadata.uid.clone().unwrap_or_default(),
        digest,
        is_going: set.metadata.deletion_timestamp.is_some(),
        pod: trial_pod(pods.filter(|pod| is_of(pod, set)), container),
    })
}

fn is_of(pod: &Pod, set: &ReplicaSet) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
}

#[cfg(test)]
mod tests;
