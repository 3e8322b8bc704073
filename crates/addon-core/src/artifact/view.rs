//! The picture of channel and trials that people are shown: by `channel status`, as text or as a document.
//!
//! It is made anew of all that a replica knows, each time. Must never show a thing that is not known as one that is not there.

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

pub use now::State;

/// All that a replica knows of channel and trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelState {
    /// It is not known yet whether there is a channel to follow.
    Unknown,
    /// None is followed here.
    Off {
        /// Why not: a sentence, and the remedy.
        why: String,
    },
    /// One is, or will be once all is known.
    On(Box<Known>),
}

/// All known facts. An absent part is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The settings that people made.
    pub settings: Option<Settings>,
    /// The operator as its cluster has it.
    pub installed: Option<Installed>,
    /// Our Deployment.
    pub deployment: Option<Deployment>,
    /// Whether the version that runs is signed.
    pub signature: Option<Signature>,
    /// How the registry is followed; of a replica that does not lead it is as it was when it did.
    pub following: following::Status,
    /// Counts the rounds of questions that came to an end, answered or not.
    pub rounds: u64,
    /// The records of trials.
    pub records: Option<Records>,
    /// The ReplicaSet of a trial.
    pub trial_set: Option<TrialSet>,
    /// Why nothing is taken although a channel is set: a sentence. Nothing if that is not so.
    pub hold: Option<String>,
    /// The stage of the trial, or of the way to it, with what is waited for: a sentence.
    pub stage: Option<String>,
}

/// The records of trials, as they were read together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// The trial that goes on or is being ended.
    pub trial: Option<Trial>,
    /// The last words of the version on trial.
    pub report: Option<Report>,
    /// All that is remembered from life to life.
    pub remembered: Remembered,
}

/// The replica that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer<'a> {
    /// It leads.
    Leader,
    /// It does not; this one does, if any is known to.
    Standby(Option<&'a str>),
}

/// The state of channel and trials. Its keys are an interface: none is renamed, and an unknown one is `null` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The state in one word.
    pub state: State,
    /// The reason, in a sentence; nothing where other fields show it.
    pub why: Option<String>,
    /// The version that runs.
    pub running: Running,
    /// The channel that counts.
    pub channel: Option<Channel>,
    /// The policy that counts.
    pub policy: Option<Policy>,
    /// Digests that a person approved of.
    pub approved: BTreeSet<ImageDigest>,
    /// The version that is wanted and does not run.
    pub available: Option<Target>,
    /// All that it waits for.
    pub waits: Vec<Wait>,
    /// The next thing that happens.
    pub next: Next,
    /// The questions to the registry.
    pub check: Check,
    /// The trial that goes on or is being ended.
    pub trial: Option<OnTrial>,
    /// The stage of that trial, or of the way to one, with what is waited for.
    pub stage: Option<String>,
    /// Digests that failed on trial, with the reason.
    pub failed: BTreeMap<ImageDigest, String>,
    /// The digest whose last trial had no result.
    pub unclear: Option<Unclear>,
    /// Things that deserve a look.
    pub warnings: Vec<Warning>,
    /// The replica that answers.
    pub replica: Replica,
}

/// The version that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The image that the Deployment names.
    pub image: Option<String>,
    /// The image that it named before the last change by us or by `channel rollback`.
    pub former: Option<String>,
    /// The digests that run.
    pub digests: BTreeSet<ImageDigest>,
    /// Its version.
    pub version: Option<String>,
    /// Whether it is signed by a key that we were given; nothing if that is not known.
    pub verified: Option<bool>,
    /// Why it is not verified.
    pub not_verified: Option<String>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// As people write it.
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
    /// How long after it was first seen a version is taken, in seconds.
    pub delay: u64,
    /// How long a trial may take, in seconds.
    pub trial_limit: u64,
    /// The windows; at any time if there are none.
    pub windows: Vec<String>,
}

/// Something that a version waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Its name.
    pub reason: &'static str,
    /// The same for people.
    pub text: String,
    /// When it is over by time alone.
    pub until: Option<Timestamp>,
    /// The remedy, where people have one.
    pub hint: Option<&'static str>,
}

/// The next thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Next {
    /// Its kind.
    pub text: String,
    /// When, if time alone decides it.
    pub at: Option<Timestamp>,
}

/// The questions to the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// When the last round was answered to its end.
    pub at: Option<Timestamp>,
    /// When the next one begins.
    pub next: Option<Timestamp>,
    /// Why the last round was not answered.
    pub trouble: Option<String>,
}

/// A trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnTrial {
    /// The version on trial.
    pub of: Target,
    /// When it began.
    pub begun: Timestamp,
    /// How long its first converge may take, in seconds.
    pub limit: u64,
    /// Its pod, if there is one.
    pub pod: Option<String>,
    /// How that pod is.
    pub pod_is: Option<String>,
    /// When its first converge was over.
    pub converged: Option<Timestamp>,
    /// The subjects that fail under it, each with its failures.
    pub failing: BTreeMap<String, Failures>,
    /// Those of them that failed before.
    pub failed_before: BTreeSet<String>,
    /// The verdict.
    pub verdict: Option<Verdict>,
}

/// The verdict on a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// `passed`, `failed`, `unclear` or `void`.
    pub ruling: Ruling,
    /// A sentence that says why.
    pub why: String,
    /// When it was written.
    pub at: Timestamp,
    /// The pod that judged.
    pub judge: String,
}

/// A digest whose last trial had no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unclear {
    /// That digest.
    pub digest: ImageDigest,
    /// How many trials in a row found out nothing.
    pub times: u32,
    /// When there may be another.
    pub again: Timestamp,
    /// Why the last one found out nothing.
    pub why: String,
}

/// Something that deserves a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its name.
    pub warning: &'static str,
    /// The same for people, with the remedy.
    pub text: String,
}

/// The replica that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replica {
    /// It leads; only the leader asks the registry.
    pub leads: bool,
    /// The one that does, if this one does not and another is known to.
    pub leader: Option<String>,
}

impl View {
    /// The state of channel and trials at this moment.
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
            // A person's hold is shown as the reason of the state.
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

/// Fractions of seconds are left out for people.
fn whole(at: Timestamp) -> Timestamp {
    at.round(Unit::Second).unwrap_or(at)
}

#[cfg(test)]
mod tests;
