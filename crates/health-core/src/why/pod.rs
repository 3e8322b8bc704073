//! Pods that are not ready: the causes that each of them tells.
//!
//! Must never tell a cause of a pod that is ready or has succeeded.

use serde_json::Value;

use super::container::{self, Container, absent};
use super::event::Event;
use super::{Cause, Scene, Weight};
use crate::field::{Condition, conditions, items, text};
use crate::text::{MESSAGE, NAME, harmless};

/// The beginning of a message about a probe that fails, and the probe.
const PROBES: [(&str, &str); 3] = [
    ("Liveness probe ", "liveness"),
    ("Startup probe ", "startup"),
    ("Readiness probe ", "readiness"),
];

pub(super) fn causes(scene: &Scene<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for pod in &scene.pods {
        let is_old = scene.is_old(pod);
        let of_pod = of_pod(scene, pod).into_iter();
        causes.extend(of_pod.map(|cause| Cause { is_old, ..cause }));
    }
    causes
}

fn of_pod(scene: &Scene<'_>, pod: &Value) -> Vec<Cause> {
    let name = text(pod, "metadata.name");
    let conditions = conditions(pod).unwrap_or_default();
    let is_ready = conditions.iter().any(|condition| condition.is("Ready", "True"));
    if !text(pod, "metadata.deletionTimestamp").is_empty() {
        return vec![Cause::new(Weight::Wait, name, "the pod is being deleted".to_owned())];
    }
    match text(pod, "status.phase") {
        "Succeeded" => return Vec::new(),
        "Failed" => return vec![Cause::new(Weight::End, name, failure(scene, pod))],
        _ if is_ready => return Vec::new(),
        _ => {}
    }
    let events: Vec<Event<'_>> = scene.events.of("Pod", pod).collect();
    let containers = container::all(pod);
    let mut causes: Vec<Cause> = containers
        .iter()
        .filter_map(|container| container.cause(scene, &events))
        .map(|cause| probed_to_death(cause, &containers, &events))
        .collect();
    let mut add = |weight, text: Option<String>| causes.extend(text.map(|text| Cause::new(weight, name, text)));
    add(Weight::Probe, probe(&containers, &events));
    add(Weight::Supply, volume(&containers, &events));
    add(Weight::Placement, placement(scene, pod, &conditions));
    add(Weight::Wait, Some(wait(pod, &containers, &conditions, &events)));
    causes
}

/// Whether a pod is ready or has succeeded, so that it tells no cause.
pub(super) fn is_at_rest(pod: &Value) -> bool {
    let conditions = conditions(pod).unwrap_or_default();
    text(pod, "status.phase") == "Succeeded" || conditions.iter().any(|condition| condition.is("Ready", "True"))
}

/// A pod that has ended without success.
pub(super) fn failure(scene: &Scene<'_>, pod: &Value) -> String {
    for container in container::all(pod) {
        if let Some((end, line)) = container.failure(scene) {
            return format!("{} failed: {end}{line}", container.noun());
        }
    }
    let (reason, message) = (text(pod, "status.reason"), text(pod, "status.message"));
    let (reason, message) = (harmless(reason, NAME), harmless(message, MESSAGE));
    match (reason.as_str(), message.as_str()) {
        ("", "") => "the pod failed".to_owned(),
        (text, "") | ("", text) => format!("the pod failed ({text})"),
        (reason, message) => format!("the pod failed ({reason}: {message})"),
    }
}

/// A crash that a probe brought about is told as one of the probe.
fn probed_to_death(cause: Cause, containers: &[Container<'_>], events: &[Event<'_>]) -> Cause {
    let is_kill = |event: &&Event<'_>| {
        event.reason == "Killing"
            && (event.message.contains("failed liveness probe") || event.message.contains("failed startup probe"))
    };
    let Some(kill) = events.iter().find(is_kill).filter(|_| cause.weight == Weight::Crash) else {
        return cause;
    };
    let killed = containers.iter().find(|container| container.name == container_of(kill));
    let Some(killed) = killed.filter(|killed| cause.text.starts_with(&killed.noun()) && killed.may_be_killed()) else {
        return cause;
    };
    let kind = if kill.message.contains("liveness") {
        "liveness"
    } else {
        "startup"
    };
    let told = probe_message(events, kind, killed.name).unwrap_or_default();
    Cause {
        text: format!(
            "{} is restarted because its {kind} probe fails{}",
            killed.noun(),
            in_brackets(told)
        ),
        ..cause
    }
}

/// The container of an event. The message of an older kubelet names it instead of the path.
fn container_of<'a>(event: &Event<'a>) -> &'a str {
    let name = event.container();
    if !name.is_empty() {
        return name;
    }
    let rest = event.message.strip_prefix("Container ").unwrap_or_default();
    rest.split(' ').next().unwrap_or_default()
}

/// A probe that keeps a container from being ready, or restarts it.
fn probe(containers: &[Container<'_>], events: &[Event<'_>]) -> Option<String> {
    PROBES.iter().find_map(|(_, kind)| {
        let running = containers
            .iter()
            .filter(|container| container.is_running() && !container.is_ready());
        let mut running =
            running.filter_map(|container| Some((container, probe_message(events, kind, container.name)?)));
        let (container, told) = running.next()?;
        Some(format!(
            "the {kind} probe of {} fails{}",
            container.noun(),
            in_brackets(told)
        ))
    })
}

fn in_brackets(told: String) -> String {
    if told.is_empty() { told } else { format!(" ({told})") }
}

/// The newest message of a probe of a container. It is empty if the program of the probe wrote nothing.
fn probe_message(events: &[Event<'_>], kind: &str, container: &str) -> Option<String> {
    let (beginning, _) = PROBES.iter().find(|(_, name)| *name == kind)?;
    let of_container = |event: &&Event<'_>| event.container().is_empty() || event.container() == container;
    let unhealthy = events
        .iter()
        .filter(|event| event.reason == "Unhealthy")
        .filter(of_container);
    let mut told = unhealthy.filter_map(|event| {
        let rest = event.message.strip_prefix(beginning)?;
        let (_, told) = rest.split_once(':')?;
        Some(harmless(told, MESSAGE))
    });
    told.next()
}

/// A volume that cannot be mounted, while containers wait for it.
fn volume(containers: &[Container<'_>], events: &[Event<'_>]) -> Option<String> {
    let waits = |container: &Container<'_>| matches!(container.waits_for(), "ContainerCreating" | "PodInitializing");
    if !containers.is_empty() && !containers.iter().any(waits) {
        return None;
    }
    let failed = |reasons: &[&str]| -> Vec<&str> {
        let failed = events.iter().filter(|event| reasons.contains(&event.reason));
        failed.map(|event| event.message).collect()
    };
    let mounts = failed(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"]);
    // A message that names the cause tells more than a timeout, even if the timeout is newer.
    let named = mounts.iter().find(|message| absent(message).is_some());
    let plain = mounts.iter().find(|message| !message.contains("timed out"));
    if let Some(message) = named.or(plain).or(mounts.first()) {
        return Some(mount(message));
    }
    let sandbox = failed(&["FailedCreatePodSandBox"]);
    let message = sandbox.first()?;
    let message = message.rsplit_once("desc = ").map_or(*message, |(_, message)| message);
    Some(format!(
        "the sandbox of the pod cannot be created: {}",
        harmless(message, MESSAGE)
    ))
}

/// The volume and the trouble in a message of the kubelet about a mount.
fn mount(message: &str) -> String {
    let quoted = || message.split_once("volume \"")?.1.split_once('"');
    let listed = || message.split_once("unmounted volumes=[")?.1.split_once(']');
    let Some((name, rest)) = quoted().or_else(listed) else {
        return format!("a volume cannot be mounted: {}", harmless(message, MESSAGE));
    };
    let name = harmless(name, NAME);
    if let Some(absence) = absent(message) {
        return format!("volume {name}: {absence}");
    }
    if rest.contains("timed out") {
        return format!("volume {name} cannot be mounted (timeout)");
    }
    let rest = rest.trim_start_matches([' ', ':']);
    format!("volume {name} cannot be mounted: {}", harmless(rest, MESSAGE))
}

/// The reason why the scheduler finds no node.
fn placement(scene: &Scene<'_>, pod: &Value, conditions: &[Condition<'_>]) -> Option<String> {
    let refused = conditions
        .iter()
        .find(|condition| condition.is("PodScheduled", "False"))?;
    if refused.reason == "SchedulingGated" {
        return Some("the pod waits for its scheduling gates".to_owned());
    }
    let message = refused.message;
    if let Some((_, rest)) = message.split_once("persistentvolumeclaim \"")
        && let Some((name, rest)) = rest.split_once('"')
        && rest.contains("not found")
    {
        return Some(format!("claim {} does not exist", harmless(name, NAME)));
    }
    if message.contains("unbound immediate PersistentVolumeClaims")
        && let Some(told) = claim(scene, pod)
    {
        return Some(told);
    }
    let message = message.split(" preemption: ").next().unwrap_or_default();
    let told = harmless(message.trim_end_matches('.'), MESSAGE);
    if told.is_empty() {
        return Some("the pod cannot be scheduled".to_owned());
    }
    Some(format!("the pod cannot be scheduled: {told}"))
}

/// The claim of the pod that is not bound: the first one with a complaint, or the first one.
fn claim(scene: &Scene<'_>, pod: &Value) -> Option<String> {
    let volumes = items(pod, "spec.volumes").iter();
    let names = volumes.map(|volume| text(volume, "persistentVolumeClaim.claimName"));
    let claims: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let complaint = |name: &str| scene.complaint_about_claim(name);
    let told = claims.iter().find_map(|name| Some((*name, Some(complaint(name)?))));
    let (name, message) = told.or_else(|| Some((*claims.first()?, None)))?;
    let name = harmless(name, NAME);
    Some(match message {
        Some(message) => format!("claim {name} is not bound: {}", harmless(message, MESSAGE)),
        None => format!("claim {name} is not bound"),
    })
}

/// The state of a pod that tells no cause.
fn wait(pod: &Value, containers: &[Container<'_>], conditions: &[Condition<'_>], events: &[Event<'_>]) -> String {
    let node = harmless(text(pod, "spec.nodeName"), NAME);
    // The last report of a dead node about its containers stays in the status.
    let mut of_kubelet = events.iter().filter(|event| event.reason != "TaintManagerEviction");
    let is_silent = of_kubelet.next().is_some_and(|event| event.reason == "NodeNotReady");
    if is_silent && !node.is_empty() {
        return format!("node {node} does not answer");
    }
    let mut unready = containers.iter().filter(|container| !container.is_ready());
    if let Some(container) = unready.find(|container| container.is_running() || !container.waits_for().is_empty()) {
        return match container.waits_for() {
            "" => format!("{} runs but is not ready", container.noun()),
            reason => format!("{} waits ({})", container.noun(), harmless(reason, NAME)),
        };
    }
    let gates = conditions
        .iter()
        .any(|condition| condition.reason == "ReadinessGatesNotReady");
    if gates {
        return "the pod waits for its readiness gates".to_owned();
    }
    if containers.is_empty() {
        return if node.is_empty() {
            "the pod has no node yet".to_owned()
        } else {
            format!("node {node} has not taken up the pod")
        };
    }
    "the pod is not ready".to_owned()
}
