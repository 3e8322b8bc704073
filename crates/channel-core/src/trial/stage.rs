//! The stages of a trial as one replica sees them, with a name and a sentence for each. The sentence of a wait names its
//! reason.
//!
//! Must never leave a wait without a name.

use std::fmt;
use std::time::Duration;

use super::record::Ruling;
use super::watch::PROBATION;
use crate::choice::Target;

/// The length to which digests are cut: `sha256:` and twelve digits.
const SHOWN: usize = 19;

/// The stage of the trial, or of the steps before a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// This part of the cluster has not been read yet.
    Unknown(Lacking),
    /// The last sight of the cluster is too old for any action.
    Unheard,
    /// No action for a trial or for the Deployment's image is due.
    Idle,
    /// An image with a tag alone will get the digest of the running version.
    Pinning(Hold),
    /// Another writer has put back the image that we had replaced. It is replaced again.
    PinningAgain,
    /// No trial begins until a person resumes: other writers put back the image again and again, or there is another reason.
    Stopped(String),
    /// People have put this image into the Deployment. No trial begins until a person resumes.
    Held(String),
    /// The trial of the version waits.
    Waits(Target, Hold),
    /// The trial of the version begins.
    Begins(Target),
    /// The pod of the trial is not ready yet.
    Starts(Target, String),
    /// The old leader has to end its work, or the version on trial has to take the lease.
    HandsOver(Target),
    /// The version on trial leads and does its first converge.
    Converges(Target),
    /// The version on trial leads, and this trouble is new.
    Fails(Target, String),
    /// The version on trial has converged. It has to lead for this long without new failures.
    Proves(Target, Duration),
    /// The version on trial should lead, but an old replica leads. The judge waits for a report that shows whether the
    /// version on trial is alive.
    Doubts(Target),
    /// There is no pod of the old version to judge the trial.
    Unjudged(Target),
    /// Other pods work on the trial.
    Elsewhere(Target),
    /// The version has passed and will be put into the Deployment.
    Promotes(Target),
    /// The version is in the Deployment, and its pods are being replaced. If the rollout is stuck, with the reason.
    RollsOut(Target, Option<String>),
    /// The trial is over, and its remains are being removed.
    WindsUp(Target, Ruling, Remains),
}

/// The part of the cluster that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// The Deployment.
    Deployment,
    /// The pods of the Deployment.
    Replicas,
    /// The ReplicaSet of the trial.
    Set,
    /// The lease.
    Lease,
    /// The state Secret.
    State,
    /// The settings of people.
    Settings,
}

/// The reason for which the next action of a trial waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The action does not wait: it is being done.
    Nothing,
    /// A rollout is under way.
    Rollout,
    /// Helm runs, or a task is queued.
    Work,
    /// The digest of the Deployment's image is unknown.
    Image,
    /// The version failed its trial, and its approval is used up.
    FailedBefore,
    /// The version's last trial had no result and ended a short time ago.
    Unclear,
    /// Objects of an earlier trial still exist.
    Remains,
    /// The replica's pod does not lead.
    Lead,
}

/// The remains of a trial that are removed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// The result has to be written into the memory.
    Memory,
    /// The lease entitles the wrong version.
    Lease,
    /// The ReplicaSet of the trial still exists, with its pod.
    Pod,
    /// The record of the trial still exists. The leader deletes it.
    Record,
}

/// The steps of a version from the begin of its trial until all pods run it, in their order.
pub const STEPS: [&str; 6] = [
    "its pod is ready",
    "it leads",
    "its first converge is over",
    "it has led without new failures",
    "the Deployment names it",
    "its pods have taken the place of the old ones",
];

impl Stage {
    /// The number of [`STEPS`] that the version on trial has behind it; none if it takes no step now. A version that fails may fail before
    /// the end of its first converge, or after it.
    pub fn steps_done(&self, has_converged: bool) -> Option<usize> {
        match self {
            Self::Begins(_) | Self::Starts(..) => Some(0),
            Self::HandsOver(_) => Some(1),
            Self::Converges(_) => Some(2),
            Self::Fails(..) => Some(if has_converged { 3 } else { 2 }),
            Self::Proves(..) => Some(3),
            Self::Promotes(_) => Some(4),
            Self::RollsOut(..) => Some(5),
            Self::Unknown(_)
            | Self::Unheard
            | Self::Idle
            | Self::Pinning(_)
            | Self::PinningAgain
            | Self::Stopped(_)
            | Self::Held(_)
            | Self::Waits(..)
            | Self::Doubts(_)
            | Self::Unjudged(_)
            | Self::Elsewhere(_)
            | Self::WindsUp(..) => None,
        }
    }

    /// Whether no version is taken before a person resumes.
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

    /// The name of the stage, for programs.
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
    /// The sentence of the stage, and its subject if that is a version.
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
            Self::Fails(target, trouble) => (Some(target), fails(trouble)),
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

fn fails(trouble: &str) -> String {
    format!("is on trial and leads; {trouble}")
}

fn proves(left: Duration) -> String {
    let (led, of) = (PROBATION.saturating_sub(left).as_secs(), PROBATION.as_secs());
    format!("is on trial and has led for {led} of {of} s without new failures")
}

/// The name of a version for people, with the first digits of its digest.
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
