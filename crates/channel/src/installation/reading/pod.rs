//! Pods: the image that they run, and their state.
//!
//! A slow pod must never count as lost. A pod must never count as ready if its kubelet does not report it as ready.

use std::collections::BTreeSet;

use channel_core::platform::Platform;
use channel_core::reference::{ImageDigest, Reference};
use channel_core::trial::sight::{PodState, Replica, TrialPod};
use child::warrant::OVERDUE;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus};

use super::super::TRIAL_LABEL;
use super::{image_in, sentence};

/// The waiting reasons of a container whose image cannot be pulled.
const NOT_PULLED: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// The waiting reason of a container that has ended so often that it is restarted with a pause.
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// Whether the pod is being deleted.
fn is_ending(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the Deployment counts the pod: it belongs to no trial, has not ended and is not being deleted.
pub(crate) fn is_wanted(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let is_on_trial = labels.is_some_and(|labels| labels.contains_key(TRIAL_LABEL));
    !is_on_trial && !is_ending(pod) && !has_ended(pod)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.is_some_and(|phase| phase == "Failed" || phase == "Succeeded")
}

/// The observation of one of the Deployment's pods.
pub(crate) fn replica(pod: &Pod, container: &str, platform: Option<Platform>) -> Replica {
    Replica {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        digests: digests(pod, container),
        platform,
        is_ready: is_ready(pod),
    }
}

/// The digests of the operator's container: the one that the runtime reports, and the one in the image's name.
pub(crate) fn digests(pod: &Pod, container: &str) -> BTreeSet<ImageDigest> {
    let told = status_of(pod, container).and_then(|status| Reference::parse_image_id(&status.image_id).ok());
    let named = image_in(pod, container).and_then(|image| Reference::parse(image).ok());
    [told, named]
        .into_iter()
        .flatten()
        .filter_map(|reference| reference.digest)
        .collect()
}

/// Whether the runtime has reported the image of the operator's container.
pub(crate) fn has_image_id(pod: &Pod, container: &str) -> bool {
    status_of(pod, container).is_some_and(|status| !status.image_id.is_empty())
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let mut statuses = pod.status.as_ref()?.container_statuses.iter().flatten();
    statuses.find(|status| status.name == container)
}

fn condition<'a>(status: &'a PodStatus, of: &str) -> Option<&'a PodCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == of)
}

fn is_ready(pod: &Pod) -> bool {
    let ready = pod.status.as_ref().and_then(|status| condition(status, "Ready"));
    ready.is_some_and(|ready| ready.status == "True")
}

/// The pod of a trial: the newest pod that is not being deleted. A lost pod counts only if there is no other.
pub(crate) fn trial_pod<'a>(pods: impl Iterator<Item = &'a Pod>, container: &str) -> Option<TrialPod> {
    let pods = pods.filter(|pod| !is_ending(pod));
    let newest = pods.max_by_key(|pod| {
        let made = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (lost(pod).is_none(), made, &pod.metadata.name)
    })?;
    Some(TrialPod {
        name: newest.metadata.name.clone().unwrap_or_default(),
        uid: newest.metadata.uid.clone().unwrap_or_default(),
        state: state(newest, container),
        restarts: restarts(newest, container),
        was_overdue: was_overdue(newest, container),
    })
}

fn restarts(pod: &Pod, container: &str) -> u32 {
    let restarts = status_of(pod, container).map(|status| status.restart_count);
    u32::try_from(restarts.unwrap_or_default()).unwrap_or_default()
}

/// Whether the container before the last restart ended itself because its lease had run out. While a container waits
/// for its restart, no restart counts its last end yet, so the answer is no.
fn was_overdue(pod: &Pod, container: &str) -> bool {
    let status =
        status_of(pod, container).filter(|status| status.state.as_ref().is_none_or(|state| state.waiting.is_none()));
    let last = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref());
    last.is_some_and(|end| end.exit_code == i32::from(OVERDUE))
}

fn state(pod: &Pod, container: &str) -> PodState {
    let none = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&none);
    if let Some(why) = lost(pod) {
        return PodState::Lost(why);
    }
    if let Some(why) = unscheduled(status) {
        return PodState::Unscheduled(why);
    }
    if let Some(why) = not_pulled(status) {
        return PodState::NotPulled(why);
    }
    if let Some(why) = status_of(pod, container).and_then(crashed) {
        return PodState::Crashed(why);
    }
    if is_ready(pod) {
        PodState::Ready
    } else {
        PodState::Starting
    }
}

/// Why the pod has ended for good: by its phase, because it is evicted, or because its node is not ready.
fn lost(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if has_ended(pod) || status.phase.as_deref() == Some("Unknown") {
        let phase = status.phase.as_deref().unwrap_or_default();
        let reason = status.reason.as_deref().unwrap_or(phase);
        return Some(sentence(reason, status.message.as_deref()));
    }
    let put_away = condition(status, "DisruptionTarget").filter(|target| target.status == "True");
    let unheard = condition(status, "Ready").filter(|ready| ready.status == "Unknown");
    let condition = put_away.or(unheard)?;
    let reason = condition.reason.as_deref().unwrap_or(&condition.type_);
    Some(sentence(reason, condition.message.as_deref()))
}

fn unscheduled(status: &PodStatus) -> Option<String> {
    let scheduled = condition(status, "PodScheduled").filter(|scheduled| scheduled.status == "False")?;
    let reason = scheduled.reason.as_deref().unwrap_or("no node was found");
    Some(sentence(reason, scheduled.message.as_deref()))
}

/// The error of a pull, also of an init container's image.
fn not_pulled(status: &PodStatus) -> Option<String> {
    let first = status.init_container_statuses.iter().flatten();
    let mut all = first.chain(status.container_statuses.iter().flatten());
    all.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        let names_image = NOT_PULLED.contains(&reason);
        names_image.then(|| sentence(reason, waiting.message.as_deref()))
    })
}

/// Why the operator's container ended, if it does not run again.
fn crashed(container: &ContainerStatus) -> Option<String> {
    let now = container.state.as_ref()?;
    if let Some(end) = &now.terminated {
        return Some(told_end(end));
    }
    let waiting = now.waiting.as_ref()?;
    if waiting.reason.as_deref() != Some(CRASH_LOOP) {
        return None;
    }
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    Some(last.map_or_else(|| CRASH_LOOP.to_owned(), told_end))
}

fn told_end(end: &ContainerStateTerminated) -> String {
    let reason = end.reason.as_deref().unwrap_or("Error");
    let code = format!("{reason}, exit code {}", end.exit_code);
    sentence(&code, end.message.as_deref())
}
