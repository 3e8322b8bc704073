//! The report about channel and trials that `channel status` shows, as text or as a document.
//!
//! It is made anew from all facts of a replica each time. Must never show an unknown fact as an absent one.

mod now;
mod parts;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, Unit};
use serde::Serialize;

use super::candidate::Signature;
use super::choice::Target;
use super::following::{self, Installed};
use super::reference::ImageDigest;
use super::settings::Settings;
use super::trial::record::{Failures, Remembered, Report, Ruling, Trial};
use super::trial::sight::{Deployment, TrialSet};
use super::trial::stage::Stage;

pub use now::State;

/// The facts that a replica knows about channel and trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelState {
    /// It is not known yet whether there is a channel to follow.
    Unknown,
    /// No channel is followed in this installation.
    Off {
        /// The reason why no channel is followed, as a sentence, with the remedy.
        why: String,
    },
    /// A channel is followed, or will be once the facts are known.
    On(Box<Known>),
}

/// The facts. An absent part is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The settings of people.
    pub settings: Option<Settings>,
    /// The installation of the operator in its cluster.
    pub installed: Option<Installed>,
    /// Our Deployment.
    pub deployment: Option<Deployment>,
    /// The signature check of the running version.
    pub signature: Option<Signature>,
    /// The state of following the registry. If this replica does not lead, it is the state at the end of its last time as
    /// leader.
    pub following: following::Status,
    /// The number of ended rounds of questions, complete or not.
    pub rounds: u64,
    /// The records of trials.
    pub records: Option<Records>,
    /// The ReplicaSet of a trial.
    pub trial_set: Option<TrialSet>,
    /// The reason why nothing is taken although a channel is set, as a sentence; `None` if there is none.
    pub hold: Option<String>,
    /// The stage of the trial, or of the steps before a trial, as a sentence with the reason of a wait.
    pub stage: Option<String>,
    /// The same stage for programs.
    pub trial_stage: Option<Stage>,
}

/// The records of trials, read at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// The trial that goes on or is being ended.
    pub trial: Option<Trial>,
    /// The last report of the version on trial.
    pub report: Option<Report>,
    /// The memory of the choice of versions and of trials.
    pub remembered: Remembered,
}

/// The replica that reports: the leader or a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer<'a> {
    /// The leader.
    Leader,
    /// A standby, with the name of the leader if it is known.
    Standby(Option<&'a str>),
}

/// The report about channel and trials. Programs use its keys, so none is ever renamed. An unknown value is `null` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The state of the channel in one word.
    pub state: State,
    /// The reason of the state as a sentence; `None` if other fields show it.
    pub why: Option<String>,
    /// The running version.
    pub running: Running,
    /// The effective channel.
    pub channel: Option<Channel>,
    /// The effective policy.
    pub policy: Option<Policy>,
    /// Digests that a person has approved.
    pub approved: BTreeSet<ImageDigest>,
    /// The wanted version, if it is not running.
    pub available: Option<Target>,
    /// The reasons for which the wanted version waits.
    pub waits: Vec<Wait>,
    /// The next action of the channel.
    pub next: Next,
    /// The questions to the registry.
    pub check: Check,
    /// The trial that goes on or is being ended.
    pub trial: Option<OnTrial>,
    /// The stage of that trial, or of the steps before a trial, with the reason of a wait.
    pub stage: Option<String>,
    /// Digests that failed on trial, each with the reason.
    pub failed: BTreeMap<ImageDigest, String>,
    /// The digest whose last trial had no result.
    pub unclear: Option<Unclear>,
    /// Facts that need the attention of a person.
    pub warnings: Vec<Warning>,
    /// The replica that makes the report.
    pub replica: Replica,
}

/// The running version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The Deployment's image.
    pub image: Option<String>,
    /// The Deployment's image before the last change by the operator or by `channel rollback`.
    pub former: Option<String>,
    /// The running digests.
    pub digests: BTreeSet<ImageDigest>,
    /// The number of the running version.
    pub version: Option<String>,
    /// Whether the version is signed with a configured key; `None` if that is not known.
    pub verified: Option<bool>,
    /// The reason why the version's signature is not verified.
    pub not_verified: Option<String>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// The channel as people write it.
    pub name: String,
    /// `tag`, `range` or `digest`.
    pub kind: &'static str,
    /// `configMap` or `image`.
    pub from: &'static str,
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// `auto`, `patch` or `manual`.
    pub mode: &'static str,
    /// The seconds for which a version waits after it was first seen.
    pub delay: u64,
    /// The limit of a trial's time in seconds.
    pub trial_limit: u64,
    /// The windows; empty: any time is good.
    pub windows: Vec<String>,
}

/// A reason for which a version waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The name of the reason for the wait.
    pub reason: &'static str,
    /// The reason for the wait, as a text for people.
    pub text: String,
    /// The time at which the wait ends by time alone.
    pub until: Option<Timestamp>,
    /// The remedy, if people have one.
    pub hint: Option<&'static str>,
}

/// The next step that the channel takes, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Next {
    /// The next action of the channel, as a text for people.
    pub text: String,
    /// The time of the next action, if it depends on time alone.
    pub at: Option<Timestamp>,
}

/// The questions to the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The end of the last complete round.
    pub at: Option<Timestamp>,
    /// The beginning of the next round.
    pub next: Option<Timestamp>,
    /// The error of the last round, if it was not complete.
    pub trouble: Option<String>,
}

/// A trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnTrial {
    /// The version on trial.
    pub of: Target,
    /// The time at which the trial began.
    pub begun: Timestamp,
    /// The limit of time for the first converge of the version on trial, in seconds.
    pub limit: u64,
    /// The trial's pod, if there is one.
    pub pod: Option<String>,
    /// The state of the trial's pod, as a text for people.
    pub pod_is: Option<String>,
    /// The time at which the first converge of the version on trial ended.
    pub converged: Option<Timestamp>,
    /// The subjects that fail under the new version, each with its failures.
    pub failing: BTreeMap<String, Failures>,
    /// The subjects among `failing` that also failed before the trial.
    pub failed_before: BTreeSet<String>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The steps until all pods run the version; empty while it takes none, as after a verdict against it.
    pub steps: Vec<Step>,
}

/// A step of a version on trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The end of the step, as a text for people.
    pub text: &'static str,
    /// `done`, `now` or `later`.
    pub is: &'static str,
}

/// The verdict on a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// `passed`, `failed`, `unclear` or `void`.
    pub ruling: Ruling,
    /// The reason for the ruling, as a sentence.
    pub why: String,
    /// The time at which the verdict was written.
    pub at: Timestamp,
    /// The name of the pod that wrote the verdict.
    pub judge: String,
}

/// A digest whose last trial had no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unclear {
    /// The digest.
    pub digest: ImageDigest,
    /// The number of trials in a row without a result.
    pub times: u32,
    /// The time from which on another trial may begin.
    pub again: Timestamp,
    /// The reason why the last trial had no result.
    pub why: String,
}

/// A fact that needs the attention of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The name of the warning.
    pub warning: &'static str,
    /// The warning as a text for people, with the remedy.
    pub text: String,
}

/// The replica that makes the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replica {
    /// Whether the replica leads. Only the leader asks the registry.
    pub leads: bool,
    /// The leader, if this replica is not the leader and knows it.
    pub leader: Option<String>,
}

impl View {
    /// The report of the channel and of trials at `now`.
    pub fn of(state: &ChannelState, answerer: Answerer<'_>, now: Timestamp) -> Self {
        let unknown = Known::default();
        let known = match state {
            ChannelState::Unknown => &unknown,
            ChannelState::Off { why } => return Self::off(why, answerer),
            ChannelState::On(known) => known,
        };
        let records = known.records.as_ref();
        let settings = known.settings.as_ref();
        let remembered = records.map(|records| &records.remembered);
        let available = parts::available(known);
        let state = State::of(known);
        Self {
            state,
            why: now::why(known, state),
            running: parts::running(known),
            channel: parts::channel(known),
            policy: settings.map(|settings| parts::policy(&settings.policy)),
            approved: settings.map(|settings| settings.approved.clone()).unwrap_or_default(),
            waits: parts::waits(known),
            next: now::next(known, state, now),
            check: Check {
                at: known.following.checked.map(whole),
                next: known.following.next.map(whole),
                trouble: known.following.trouble.clone(),
            },
            trial: parts::trial(known),
            // The reason of the state shows a person's hold already.
            stage: known.stage.clone().filter(|_| known.hold.is_none()),
            failed: remembered.map(parts::failed).unwrap_or_default(),
            unclear: remembered.and_then(parts::unclear),
            warnings: parts::warnings(known, available),
            available: available.cloned(),
            replica: Replica::of(answerer),
        }
    }

    fn off(why: &str, answerer: Answerer<'_>) -> Self {
        Self {
            state: State::Off,
            why: Some(why.to_owned()),
            running: Running::default(),
            channel: None,
            policy: None,
            approved: BTreeSet::new(),
            available: None,
            waits: Vec::new(),
            next: Next {
                text: "nothing, until a person changes that".to_owned(),
                at: None,
            },
            check: Check {
                at: None,
                next: None,
                trouble: None,
            },
            trial: None,
            stage: None,
            failed: BTreeMap::new(),
            unclear: None,
            warnings: Vec::new(),
            replica: Replica::of(answerer),
        }
    }
}

impl Replica {
    fn of(answerer: Answerer<'_>) -> Self {
        let (leads, leader) = match answerer {
            Answerer::Leader => (true, None),
            Answerer::Standby(leader) => (false, leader.map(str::to_owned)),
        };
        Self { leads, leader }
    }
}

/// Cuts fractions of seconds off.
fn whole(at: Timestamp) -> Timestamp {
    at.round(Unit::Second).unwrap_or(at)
}

#[cfg(test)]
mod tests;
