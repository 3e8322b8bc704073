//! The steps from a push until the new version leads, each with the time at which it was first observed from outside.
//!
//! It must never decide whether a round succeeded; it only shows where the time was spent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::installed::channel::sight::Sight;

/// A step of a round. It counts as observed at the latest when a later step is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// The leader has asked the registry.
    Asked,
    /// The record of the trial exists.
    Begun,
    /// The pod that is on trial and leads later exists.
    Made,
    /// The pod's container runs.
    Started,
    /// The pod is ready.
    Ready,
    /// The lease names the new version as the one entitled to lead.
    HandedOver,
    /// No replica holds the lease.
    Released,
    /// The new version holds the lease.
    Leads,
}

pub(super) const MARKS: [Mark; 8] = [
    Mark::Asked,
    Mark::Begun,
    Mark::Made,
    Mark::Started,
    Mark::Ready,
    Mark::HandedOver,
    Mark::Released,
    Mark::Leads,
];

impl Mark {
    /// The name of the wait that ends with this step.
    pub(super) fn wait(self) -> &'static str {
        match self {
            Self::Asked => "pushed, to the registry is asked",
            Self::Begun => "asked, to the trial begins",
            Self::Made => "begun, to its pod is made",
            Self::Started => "made, to its container runs",
            Self::Ready => "runs, to it is ready",
            Self::HandedOver => "ready, to the lease names its version",
            Self::Released => "named, to the lease is free",
            Self::Leads => "free, to it leads",
        }
    }
}

/// The steps of one round, each with its time since the push.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    seen: BTreeMap<Mark, Duration>,
    /// The UID of the pod on trial.
    pod: Option<String>,
    /// The number of pods on trial before the present one.
    pub(super) lost: usize,
}

impl Steps {
    pub(super) fn note(&mut self, mark: Mark, pushed: Instant) {
        self.seen.entry(mark).or_insert_with(|| pushed.elapsed());
    }

    /// Notes all steps of this version's trial that an observation shows.
    pub(super) fn look(&mut self, sight: &Sight, bad: &str, pushed: Instant) {
        let is_named = sight.entitled == bad;
        let pod = sight
            .pods
            .iter()
            .find(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        self.follow(pod);
        let is_shown = |pointer: &str| pod.is_some_and(|pod| pod.pointer(pointer).is_some());
        let shown = [
            (Mark::Begun, sight.trial_of(bad).is_some()),
            (Mark::Made, pod.is_some()),
            (Mark::Started, is_shown("/status/containerStatuses/0/state/running")),
            (Mark::Ready, pod.is_some_and(is_ready)),
            (Mark::HandedOver, is_named),
            (Mark::Released, is_named && sight.holder.is_empty()),
            (Mark::Leads, sight.is_led_by_the_new_one()),
        ];
        for (mark, _) in shown.into_iter().filter(|(_, is_seen)| *is_seen) {
            self.note(mark, pushed);
        }
    }

    /// A new pod on trial goes through its steps anew.
    fn follow(&mut self, pod: Option<&Value>) {
        let uid = pod.and_then(|pod| pod["metadata"]["uid"].as_str());
        if uid.is_none() || uid == self.pod.as_deref() {
            return;
        }
        if self.pod.is_some() {
            self.lost += 1;
            for mark in [Mark::Made, Mark::Started, Mark::Ready] {
                self.seen.remove(&mark);
            }
        }
        self.pod = uid.map(str::to_owned);
    }

    /// The time at which a step was over. A step that passed between two observations was over when the next one was
    /// observed.
    fn at(&self, mark: Mark) -> Option<Duration> {
        self.seen.range(mark..).map(|(_, at)| *at).min()
    }

    /// The duration of each observed step.
    pub(super) fn waits(&self) -> Vec<(Mark, Duration)> {
        let mut before = Duration::ZERO;
        let mut waits = Vec::new();
        for mark in MARKS {
            // Neither this step nor a later one was observed.
            let Some(at) = self.at(mark) else { break };
            waits.push((mark, at.saturating_sub(before)));
            before = at;
        }
        waits
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "Ready")
        .any(|condition| condition["status"] == "True")
}
