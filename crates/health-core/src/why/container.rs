//! One container of a pod: the cause that its status tells.
//!
//! Must never blame a sidecar that runs as it should, or a restart of long ago.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::event::Event;
use super::{Cause, ContainerName, LastWords, Scene, Weight, image};
use crate::field::{items, text, value, whole};
use crate::text::{MESSAGE, NAME, counted, harmless};

/// The time after a restart during which the end before it is the cause.
const FRESH: SignedDuration = SignedDuration::from_mins(10);

/// The time that an init container may run before it is taken to hang.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

/// A container with its pod.
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pod: &'a str,
    status: &'a Value,
    spec: Option<&'a Value>,
    is_init: bool,
}

/// The end of a container that crashes.
struct LastEnd<'a> {
    told: Option<&'a Value>,
    /// Whether the container was not started again since.
    is_present: bool,
}

/// The containers of a pod that have a status, init containers first.
pub(super) fn all(pod: &Value) -> Vec<Container<'_>> {
    let lists = [
        ("status.initContainerStatuses", "spec.initContainers", true),
        ("status.containerStatuses", "spec.containers", false),
    ];
    let of_list = |(statuses, specs, is_init)| {
        items(pod, statuses).iter().map(move |status| {
            let name = text(status, "name");
            Container {
                name,
                pod: text(pod, "metadata.name"),
                status,
                spec: items(pod, specs).iter().find(|spec| text(spec, "name") == name),
                is_init,
            }
        })
    };
    lists.into_iter().flat_map(of_list).collect()
}

impl<'a> Container<'a> {
    pub(super) fn waits_for(&self) -> &'a str {
        text(self.status, "state.waiting.reason")
    }

    pub(super) fn is_running(&self) -> bool {
        value(self.status, "state.running").is_some_and(Value::is_object)
    }

    pub(super) fn is_ready(&self) -> bool {
        value(self.status, "ready").and_then(Value::as_bool) == Some(true)
    }

    /// The container's name, with its kind before it.
    pub(super) fn noun(&self) -> String {
        let kind = if self.is_init { "init container" } else { "container" };
        format!("{kind} {}", harmless(self.name, NAME))
    }

    /// A sidecar is an init container that goes on running.
    fn is_sidecar(&self) -> bool {
        self.spec.is_some_and(|spec| text(spec, "restartPolicy") == "Always")
    }

    /// The cause that the container tells. `events` are those of its pod.
    pub(super) fn cause(&self, scene: &Scene<'_>, events: &[Event<'_>]) -> Option<Cause> {
        let (weight, text) = self
            .pull(events)
            .map(|text| (Weight::Image, text))
            .or_else(|| self.missing().map(|text| (Weight::Supply, text)))
            .or_else(|| self.crash(scene).map(|text| (Weight::Crash, text)))
            .or_else(|| self.initialization(scene))?;
        Some(Cause::new(weight, self.pod, text))
    }

    fn pull(&self, events: &[Event<'_>]) -> Option<String> {
        const WAITS: [&str; 6] = [
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "ErrImageNeverPull",
            "RegistryUnavailable",
            "ImageInspectError",
        ];
        let waits = self.waits_for();
        if !WAITS.contains(&waits) {
            return None;
        }
        let of_spec = self.spec.map(|spec| text(spec, "image")).unwrap_or_default();
        let name = if of_spec.is_empty() {
            text(self.status, "image")
        } else {
            of_spec
        };
        let told = match waits {
            "InvalidImageName" => "its name is invalid".to_owned(),
            "ErrImageNeverPull" => "it is not on the node, and its policy is never to pull".to_owned(),
            _ => {
                let of_image = events.iter().filter(|event| event.message.contains(name));
                let failed = of_image
                    .filter(|event| event.reason == "Failed")
                    .map(|event| event.message);
                let mut messages = std::iter::once(text(self.status, "state.waiting.message")).chain(failed);
                let told =
                    messages.find_map(|message| Some(image::reason(message, name)).filter(|told| !told.is_empty()));
                told.unwrap_or_else(|| waits.to_owned())
            }
        };
        Some(format!("image {} cannot be pulled ({told})", harmless(name, MESSAGE)))
    }

    /// Something without which the container cannot be created.
    fn missing(&self) -> Option<String> {
        const WAITS: [&str; 4] = [
            "CreateContainerConfigError",
            "CreateContainerError",
            "RunContainerError",
            "PreCreateHookError",
        ];
        let waits = self.waits_for();
        if !WAITS.contains(&waits) {
            return None;
        }
        let message = text(self.status, "state.waiting.message");
        Some(match absent(message) {
            Some(absence) => absence,
            None if message.is_empty() => format!("{} cannot be created ({waits})", self.noun()),
            None => format!("{} cannot be created: {}", self.noun(), start_error(message)),
        })
    }

    /// The end of a container that crashes: the present one, or the one before the restart.
    fn last_end(&self, scene: &Scene<'_>) -> Option<LastEnd<'a>> {
        let last = value(self.status, "lastState.terminated").filter(|last| last.is_object());
        let ended = value(self.status, "state.terminated").filter(|ended| ended.is_object());
        let loops = self.waits_for() == "CrashLoopBackOff";
        let restarts = whole(self.status, "restartCount", 0).max(0);
        let was_restarted = last.is_some_and(|last| restarts > 0 && self.is_running() && is_fresh(last, scene.now));
        let has_crashed = ended.is_some_and(|ended| !self.is_init && whole(ended, "exitCode", 0) != 0);
        if !loops && (self.is_ready() || !(was_restarted || has_crashed)) {
            return None;
        }
        Some(LastEnd {
            told: ended.or(last),
            is_present: ended.is_some(),
        })
    }

    fn crash(&self, scene: &Scene<'_>) -> Option<String> {
        let end = self.last_end(scene)?.told;
        let told = end.map(|end| format!(": {}", self.end(end))).unwrap_or_default();
        let line = self.line(scene, end);
        let restarts = whole(self.status, "restartCount", 0).max(0);
        Some(format!(
            "{} crashes ({}){told}{line}",
            self.noun(),
            counted(restarts, "restart")
        ))
    }

    /// The log that tells the last words of a container which has ended badly. None if it wrote nothing, because it never
    /// began.
    pub(super) fn last_words(&self, scene: &Scene<'_>) -> Option<LastWords> {
        let failed = || {
            let end = value(self.status, "state.terminated")?;
            let is_failure = whole(end, "exitCode", 0) != 0;
            is_failure.then_some(LastEnd {
                told: Some(end),
                is_present: true,
            })
        };
        let LastEnd { told, is_present } = self.last_end(scene).or_else(failed)?;
        let has_begun = told.is_some_and(|end| !matches!(text(end, "reason"), "StartError" | "ContainerCannotRun"));
        has_begun.then(|| LastWords {
            container: ContainerName {
                pod: self.pod.to_owned(),
                container: self.name.to_owned(),
            },
            is_before_restart: !is_present,
        })
    }

    /// The end of a container that did not succeed, and its last line.
    pub(super) fn failure(&self, scene: &Scene<'_>) -> Option<(String, String)> {
        let end = value(self.status, "state.terminated")?;
        let failed = whole(end, "exitCode", 0) != 0;
        failed.then(|| (self.end(end), self.line(scene, Some(end))))
    }

    /// Whether the last end may be that of a container which the kubelet killed.
    pub(super) fn may_be_killed(&self) -> bool {
        let last = value(self.status, "lastState.terminated").unwrap_or(&Value::Null);
        text(last, "reason") != "OOMKilled" && matches!(whole(last, "exitCode", 0), 0 | 137 | 143)
    }

    /// The way in which a container ended.
    fn end(&self, end: &Value) -> String {
        let code = whole(end, "exitCode", 0);
        let signal = whole(end, "signal", 0);
        match text(end, "reason") {
            "OOMKilled" => {
                let limit = self
                    .spec
                    .map(|spec| text(spec, "resources.limits.memory"))
                    .unwrap_or_default();
                match harmless(limit, NAME).as_str() {
                    "" => "out of memory".to_owned(),
                    limit => format!("out of memory (limit {limit})"),
                }
            }
            "StartError" | "ContainerCannotRun" if !text(end, "message").is_empty() => {
                format!("it cannot start: {}", start_error(text(end, "message")))
            }
            _ if signal > 0 => format!("signal {signal}"),
            // Shells and runtimes report a signal so.
            _ if (129..=192).contains(&code) => format!("exit code {code} (signal {})", code - 128),
            "" | "Error" | "Completed" => format!("exit code {code}"),
            reason => format!("exit code {code} ({})", harmless(reason, NAME)),
        }
    }

    /// The last line before the end, from the caller, or from the container's own message.
    fn line(&self, scene: &Scene<'_>, end: Option<&Value>) -> String {
        let of_message = || {
            let end = end.filter(|end| !matches!(text(end, "reason"), "StartError" | "ContainerCannotRun"))?;
            let line = text(end, "message")
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())?;
            Some(harmless(line, MESSAGE))
        };
        match scene.last_line(self.pod, self.name).or_else(of_message) {
            Some(line) => format!("; its last line: {line}"),
            None => String::new(),
        }
    }

    fn initialization(&self, scene: &Scene<'_>) -> Option<(Weight, String)> {
        if !self.is_init {
            return None;
        }
        if let Some((end, line)) = self.failure(scene) {
            return Some((Weight::Init, format!("{} failed: {end}{line}", self.noun())));
        }
        if !self.is_running() || self.is_sidecar() {
            return None;
        }
        let since: Option<Timestamp> = text(self.status, "state.running.startedAt").parse().ok();
        let runs = since.map(|since| scene.now.duration_since(since));
        let hangs = runs.filter(|runs| *runs >= PATIENCE);
        Some(match hangs {
            Some(runs) => (
                Weight::Init,
                format!("{} still runs, after {} min", self.noun(), runs.as_mins()),
            ),
            None => (Weight::Wait, format!("{} runs", self.noun())),
        })
    }
}

fn is_fresh(end: &Value, now: Timestamp) -> bool {
    let time: Option<Timestamp> = text(end, "finishedAt").parse().ok();
    time.is_none_or(|time| now.duration_since(time) <= FRESH)
}

/// The part of a runtime's message that names the cause.
fn start_error(message: &str) -> String {
    const BEFORE: &str = "unable to start container process: ";
    let rest = message.rsplit_once(BEFORE).map_or(message, |(_, rest)| rest);
    harmless(rest.trim_end().trim_end_matches(": unknown"), MESSAGE)
}

/// A ConfigMap, a Secret or a key of them that a message calls missing.
pub(super) fn absent(message: &str) -> Option<String> {
    for (word, kind) in [("configmap \"", "ConfigMap"), ("secret \"", "Secret")] {
        if let Some((_, rest)) = message.split_once(word)
            && let Some((name, rest)) = rest.split_once('"')
            && rest.starts_with(" not found")
        {
            return Some(format!("{kind} {} does not exist", harmless(name, NAME)));
        }
    }
    let (_, rest) = message.split_once("couldn't find key ")?;
    let (key, place) = rest.split_once(" in ")?;
    let (kind, name) = place.split_once(' ')?;
    let name = name.split_once('/').map_or(name, |(_, name)| name);
    let (kind, name, key) = (harmless(kind, NAME), harmless(name, NAME), harmless(key, NAME));
    Some(format!("{kind} {name} has no key {key}"))
}
