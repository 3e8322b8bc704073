//! The stages of a trial as one replica sees them: a name and a sentence for each; the sentence of a wait names its
//! reason.
//!
//! Must never be a wait without a name.

use std::fmt;
use std::time::Duration;

use super::record::Ruling;
use super::watch::PROBATION;
use crate::artifact::choice::Target;

/// So much of a digest is shown: `sha256:` and twelve digits.
const SHOWN: usize = 19;

/// The stage at which everything about trials is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Something has not been looked at yet.
    Unknown(Lacking),
    /// The last sight of the cluster is too old for anything to be done.
    Unheard,
    /// Nothing is to be done.
    Idle,
    /// The image by tag alone is to be replaced by one with the digest of the version that runs.
    Pinning(Hold),
    /// Others have put back the image that we had replaced, which is undone.
    PinningAgain,
    /// Others put it back again and again, or something else keeps us from all trials until a person resumes.
    Stopped(String),
    /// People have put this image into the Deployment, which counts until a person resumes.
    Held(String),
    /// A version is to be tried.
    Waits(Target, Hold),
    /// Its trial begins.
    Begins(Target),
    /// The pod of its trial is to become ready.
    Starts(Target, String),
    /// The leader is to end its work, or the version on trial to take the lease.
    HandsOver(Target),
    /// It leads, and is to finish its first converge.
    Converges(Target),
    /// It leads, and this subject fails that did not before.
    Fails(Target, String),
    /// It has finished it, and is to lead for this long without new failures.
    Proves(Target, Duration),
    /// It was to lead and an old replica does: it is waited for whether the new one still speaks.
    Doubts(Target),
    /// No pod of the old version is there to judge it.
    Unjudged(Target),
    /// Its trial is the concern of other pods.
    Elsewhere(Target),
    /// It has passed, and the Deployment is to name it.
    Promotes(Target),
    /// The Deployment names it; its pods are to be replaced. The reason why that goes no further, if there is one.
    RollsOut(Target, Option<String>),
    /// The trial is over, and all that belongs to it is to go.
    WindsUp(Target, Ruling, Remains),
}

/// The thing that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// The Deployment.
    Deployment,
    /// Its pods.
    Replicas,
    /// The ReplicaSet of the trial.
    Set,
    /// The lease.
    Lease,
    /// The Secret with our state.
    State,
    /// The settings that people made.
    Settings,
}

/// The thing that is waited for before anything begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: it is being done.
    Nothing,
    /// A rollout is under way.
    Rollout,
    /// Work is under way.
    Work,
    /// The Deployment names no image of which we know a digest.
    Image,
    /// It failed on trial, and its approval was used up.
    FailedBefore,
    /// Its last trial found out nothing and is a short time ago.
    Unclear,
    /// Something of an earlier trial is still there.
    Remains,
    /// This pod does not lead.
    Lead,
}

/// The part of a trial that is to go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Its result is to be remembered.
    Memory,
    /// The lease names the wrong version.
    Lease,
    /// Its pod.
    Pod,
    /// Its record, which the leader removes.
    Record,
}

impl Stage {
    /// Nothing is taken before a person resumes.
    pub fn is_held(&self) -> bool {
        match self {
            Self::Held(_) | Self::Stopped(_) => true,
            Self::Unknown(_)
            | Self::Unheard
            | Self::Idle
            | Self::Pinning(_)
            | Self::PinningAgain
            | Self::Waits(..)
            | Self::Begins(_)
            | Self::Starts(..)
            | Self::HandsOver(_)
            | Self::Converges(_)
            | Self::Fails(..)
            | Self::Proves(..)
            | Self::Doubts(_)
            | Self::Unjudged(_)
            | Self::Elsewhere(_)
            | Self::Promotes(_)
            | Self::RollsOut(..)
            | Self::WindsUp(..) => false,
        }
    }

    /// Its name, for machines.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::Unheard => "unheard",
            Self::Idle => "idle",
            Self::Pinning(_) => "pinning",
            Self::PinningAgain => "pinning_again",
            Self::Stopped(_) => "stopped",
            Self::Held(_) => "held",
            Self::Waits(..) => "waits",
            Self::Begins(_) => "begins",
            Self::Starts(..) => "starts",
            Self::HandsOver(_) => "hands_over",
            Self::Converges(_) => "converges",
            Self::Fails(..) => "fails",
            Self::Proves(..) => "proves",
            Self::Doubts(_) => "doubts",
            Self::Unjudged(_) => "unjudged",
            Self::Elsewhere(_) => "elsewhere",
            Self::Promotes(_) => "promotes",
            Self::RollsOut(..) => "rolls_out",
            Self::WindsUp(..) => "winds_up",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (Some(target), words) => write!(f, "{} {words}", named(target)),
            (None, words) => f.write_str(&words),
        }
    }
}

impl Stage {
    /// Its sentence, of which the version is the subject, if there is one.
    fn words(&self) -> (Option<&Target>, String) {
        let pins = "the image of the Deployment gets the digest of what runs";
        let resume = "'channel resume' goes on";
        match self {
            Self::Unknown(lacking) => (None, format!("{lacking} not known yet")),
            Self::Unheard => {
                let words = "the API server was not heard of lately, and nothing is done about old news";
                (None, words.to_owned())
            }
            Self::Idle => (None, "no version is on trial".to_owned()),
            Self::Pinning(Hold::Nothing) => (None, pins.to_owned()),
            Self::Pinning(hold) => (None, format!("{pins} as soon as {hold}")),
            Self::PinningAgain => {
                let words = "the image of the Deployment was put back by others, and is replaced again";
                (None, words.to_owned())
            }
            Self::Stopped(why) => (None, format!("{why}; {resume}")),
            Self::Held(image) => {
                let words = format!("the image {image} was put into the Deployment by hand and holds; {resume}");
                (None, words)
            }
            Self::Waits(target, hold) => (Some(target), format!("is tried as soon as {hold}")),
            Self::Begins(target) => (Some(target), "goes on trial".to_owned()),
            Self::Starts(target, pod) => (
                Some(target),
                format!("is on trial, and its pod is to become ready: {pod}"),
            ),
            Self::HandsOver(target) => (
                Some(target),
                "is on trial, and the lease is handed over to it".to_owned(),
            ),
            Self::Converges(target) => (
                Some(target),
                "is on trial and leads; its first converge is to be over".to_owned(),
            ),
            Self::Fails(target, subject) => (Some(target), fails(subject)),
            Self::Proves(target, left) => (Some(target), proves(*left)),
            Self::Doubts(target) => (
                Some(target),
                "was to lead and does not; it has a minute to speak".to_owned(),
            ),
            Self::Unjudged(target) => (Some(target), UNJUDGED.to_owned()),
            Self::Elsewhere(target) => (
                Some(target),
                "is on trial, which pods of other versions see to".to_owned(),
            ),
            Self::Promotes(target) => (Some(target), "has passed, and the Deployment is to name it".to_owned()),
            Self::RollsOut(target, None) => (
                Some(target),
                "has passed, and the pods of the Deployment are replaced".to_owned(),
            ),
            Self::RollsOut(target, Some(stuck)) => (
                Some(target),
                format!("has passed, and its rollout goes no further: {stuck}"),
            ),
            Self::WindsUp(target, ruling, remains) => (Some(target), format!("{ruling}; {remains}")),
        }
    }
}

const UNJUDGED: &str = "is on trial, and no pod of the old version is there to judge it: until one is, removals wait";

fn fails(subject: &str) -> String {
    format!("is on trial and leads; {subject} fails, and did not before")
}

fn proves(left: Duration) -> String {
    let (led, of) = (PROBATION.saturating_sub(left).as_secs(), PROBATION.as_secs());
    format!("is on trial and has led for {led} of {of} s without new failures")
}

/// A version as people know it, with the beginning of its digest.
fn named(target: &Target) -> String {
    let digest = &target.digest.as_str()[..SHOWN];
    let version = target.version.as_ref().map(ToString::to_string);
    match version.or_else(|| target.tag.as_ref().map(ToString::to_string)) {
        Some(name) => format!("{name} ({digest})"),
        None => digest.to_owned(),
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deployment => "our Deployment is",
            Self::Replicas => "the pods of our Deployment are",
            Self::Set => "the ReplicaSet of the trial is",
            Self::Lease => "the lease is",
            Self::State => "the Secret with our state is",
            Self::Settings => "the settings in the ConfigMap are",
        })
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "that is done",
            Self::Rollout => "the rollout under way is over",
            Self::Work => "the work under way is over",
            Self::Image => "the Deployment names an image whose digest is known",
            Self::FailedBefore => "a person approves of it again, since it failed on trial",
            Self::Unclear => "the pause after its last trial, which found out nothing, is over",
            Self::Remains => "all of the trial before is gone",
            Self::Lead => "the leader begins it",
        })
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "that is to be written down",
            Self::Lease => "the lease is to name the version that leads next",
            Self::Pod => "its pod is to end",
            Self::Record => "the leader is to close its record",
        })
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "has passed its trial",
            Self::Failed => "has failed on trial",
            Self::Unclear => "was on trial, which found out nothing",
            Self::Void => "was on trial, which does not count",
        })
    }
}
