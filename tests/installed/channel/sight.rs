//! An observation of a trial from outside: its records, its pods and its step; and the killing of one of its pods.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::reader::Only;

use super::campaign::Victim;
use super::followed::Followed;
use crate::installed::stage::LEASE;

/// The lease and the records of a trial.
pub(super) struct Sight {
    pub(super) holder: String,
    pub(super) renewed: String,
    /// The version that the lease entitles to lead; empty for none.
    pub(super) entitled: String,
    pub(super) trial: Option<Value>,
    /// The report of the version on trial.
    report: Option<Value>,
    /// The results of earlier trials.
    remembered: Value,
    /// The pods on trial.
    pub(super) pods: Vec<Value>,
}

/// A step of a trial that lasts long enough to be observed from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The pod on trial is not ready.
    Begun,
    /// The pod is ready and does not lead yet.
    Ready,
    /// The pod leads and has not converged.
    Leads,
    /// The pod leads and has converged.
    Proves,
    /// The Deployment names the new version.
    RollsOut,
}

impl Sight {
    /// The verdict of the current trial, or of the last one of this version.
    pub(super) fn ruling(&self, digest: &str) -> Option<String> {
        let of_trial = self
            .trial
            .as_ref()
            .and_then(|trial| trial["verdict"]["ruling"].as_str());
        // The record is deleted soon after the verdict, so earlier results are searched too.
        let has_failed = !self.remembered["failed"][digest].is_null();
        let is_unclear = self.remembered["unclear"]["digest"] == digest;
        let remembered = has_failed.then_some("failed").or(is_unclear.then_some("unclear"));
        of_trial.or(remembered).map(str::to_owned)
    }

    /// The record of this version's trial.
    pub(super) fn trial_of(&self, digest: &str) -> Option<&Value> {
        self.trial.as_ref().filter(|trial| trial["to"]["digest"] == digest)
    }

    pub(super) fn is_led_by_the_new_one(&self) -> bool {
        self.holder.contains("-trial-")
    }

    fn is_trial_ready(&self) -> bool {
        let conditions = self
            .pods
            .iter()
            .filter_map(|pod| pod["status"]["conditions"].as_array());
        conditions
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }

    fn has_converged(&self) -> bool {
        let report = self.report.as_ref();
        report.is_some_and(|report| !report["converged"].is_null())
    }
}

impl Followed<'_> {
    /// Reads the lease and the records of the trial.
    pub(super) fn sight(&self) -> Sight {
        let namespace = &self.stage.namespace;
        let object = |kind, name| namespace.object(kind, name).ok().flatten().unwrap_or_default();
        let lease: Value = object("lease", LEASE);
        let text = |key: &str| lease["spec"][key].as_str().unwrap_or_default().to_owned();
        let state: Value = object("secret", "addon-operator-state");
        let record = |key: &str| {
            let text = state["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok());
            text.and_then(|text| serde_json::from_slice(&text).ok())
        };
        Sight {
            holder: text("holderIdentity"),
            renewed: text("renewTime"),
            entitled: lease["metadata"]["annotations"]["addon-operator/entitled"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            trial: record("trial"),
            report: record("trial-report"),
            remembered: record("channel").unwrap_or_default(),
            pods: namespace
                .objects("pod", Only::Labels("addon-operator/trial"))
                .unwrap_or_default(),
        }
    }

    /// The current step of this version's trial, if there is one.
    pub(super) fn step(&self, digest: &str) -> Option<Step> {
        let sight = self.sight();
        let trial = sight.trial_of(digest)?;
        if self.names(digest) {
            return Some(Step::RollsOut);
        }
        if !trial["verdict"].is_null() {
            return None;
        }
        Some(match (sight.is_led_by_the_new_one(), sight.has_converged()) {
            (true, true) => Step::Proves,
            (true, false) => Step::Leads,
            (false, _) if sight.is_trial_ready() => Step::Ready,
            (false, _) => Step::Begun,
        })
    }

    pub(super) fn trial_pod(&self) -> Option<String> {
        let mut pods = self.stage.pods().into_iter();
        pods.rfind(|pod| pod.contains("-trial-"))
    }

    /// The pods of the Deployment.
    pub(super) fn other_pods(&self) -> Vec<String> {
        let pods = self.stage.pods().into_iter();
        pods.filter(|pod| !pod.contains("-trial-")).collect()
    }

    /// A pod of this kind, if there is one.
    pub(super) fn victim(&self, victim: Victim) -> Option<String> {
        let leader = self.leader();
        match victim {
            Victim::Leader => leader,
            Victim::Standby => self.stage.pods().into_iter().find(|pod| Some(pod) != leader.as_ref()),
            Victim::OnTrial => self.trial_pod(),
        }
    }

    /// Kills the operator in a pod, as the kernel does when memory runs out. Returns false if none runs there.
    pub(super) fn kill(&self, pod: &str) -> bool {
        let namespace = &self.stage.namespace;
        let found = namespace.object("pod", pod).ok().flatten().unwrap_or_default();
        let container = found["status"]["containerStatuses"][0]["containerID"].as_str();
        let process = container.and_then(|id| namespace.plane().process_of(id));
        let process = process.and_then(|process| Pid::from_raw(process.cast_signed()));
        process.is_some_and(|process| kill_process(process, Signal::KILL).is_ok())
    }
}
