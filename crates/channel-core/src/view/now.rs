//! The state in one word, and the next step.
//!
//! Must never name a time for a step that does not depend on time alone.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::text::span;
use super::{Known, Next, parts, whole};
use crate::channel::Channel;
use crate::choice::{Choice, Idle, Reason};
use crate::trial::record::{Ruling, Trial};

/// The state of the channel in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No channel is followed in this installation.
    Off,
    /// Too few facts about the channel are known.
    Unknown,
    /// The wanted version is running.
    UpToDate,
    /// The registry has no version for the channel.
    NotFound,
    /// A version is wanted and has to wait.
    Waits,
    /// The trial of the wanted version is about to begin.
    Begins,
    /// The wanted version is on trial.
    OnTrial,
    /// The wanted version has passed and is being put into the Deployment.
    RollingOut,
    /// The wanted version has not passed, and the old version leads again.
    Returning,
    /// A person holds the running version.
    Held,
    /// No version is tried, because other writers change the Deployment against us.
    Stopped,
}

impl State {
    /// All states.
    pub const ALL: [Self; 11] = [
        Self::Off,
        Self::Unknown,
        Self::UpToDate,
        Self::NotFound,
        Self::Waits,
        Self::Begins,
        Self::OnTrial,
        Self::RollingOut,
        Self::Returning,
        Self::Held,
        Self::Stopped,
    ];

    /// The name of the state in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unknown => "unknown",
            Self::UpToDate => "up-to-date",
            Self::NotFound => "not-found",
            Self::Waits => "waits",
            Self::Begins => "begins",
            Self::OnTrial => "on-trial",
            Self::RollingOut => "rolling-out",
            Self::Returning => "returning",
            Self::Held => "held",
            Self::Stopped => "stopped",
        }
    }

    /// The state by the known facts.
    pub fn of(known: &Known) -> Self {
        let records = known.records.as_ref();
        if let Some(trial) = records.and_then(|records| records.trial.as_ref()) {
            return Self::of_trial(trial);
        }
        if records.is_some_and(|records| records.remembered.stopped.is_some()) {
            return Self::Stopped;
        }
        if known.hold.is_some() {
            return Self::Held;
        }
        match &known.following.choice {
            None => Self::Unknown,
            Some(Choice::Begin(_)) => Self::Begins,
            Some(Choice::Waits { reasons, .. }) if reasons.contains(&Reason::Held) => Self::Held,
            Some(Choice::Waits { .. }) => Self::Waits,
            Some(Choice::Nothing(idle)) => match (idle, &known.following.channel) {
                (Idle::UpToDate, Some(Channel::Digest(_))) | (Idle::Pinned, _) => Self::Held,
                (Idle::UpToDate, Some(Channel::Tag(_) | Channel::Range(_)) | None) => Self::UpToDate,
                (Idle::NoTag(_) | Idle::NoMatch(_), _) => Self::NotFound,
                (Idle::NotLookedAt(_) | Idle::PlatformsUnknown, _) => Self::Unknown,
            },
        }
    }

    fn of_trial(trial: &Trial) -> Self {
        match trial.verdict.as_ref().map(|verdict| verdict.ruling) {
            None => Self::OnTrial,
            Some(Ruling::Passed) => Self::RollingOut,
            Some(Ruling::Failed | Ruling::Unclear | Ruling::Void) => Self::Returning,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// The reason of the state, if neither waits nor a trial show it.
pub(super) fn why(known: &Known, state: State) -> Option<String> {
    let idle = match &known.following.choice {
        Some(Choice::Nothing(idle)) => Some(idle.to_string()),
        Some(Choice::Waits { .. } | Choice::Begin(_)) | None => None,
    };
    match state {
        State::Unknown => Some(idle.unwrap_or_else(|| unknown(known).to_owned())),
        State::Held if known.hold.is_some() => known.hold.clone(),
        State::Held => Some(match &known.following.channel {
            Some(Channel::Digest(digest)) => format!("releaseChannel is {digest}, which runs"),
            Some(Channel::Tag(_) | Channel::Range(_)) | None => idle?,
        }),
        State::NotFound => idle,
        State::Stopped => known.records.as_ref()?.remembered.stopped.clone(),
        State::Off
        | State::UpToDate
        | State::Waits
        | State::Begins
        | State::OnTrial
        | State::RollingOut
        | State::Returning => None,
    }
}

/// The fact whose absence makes the state unknown, as a text for people.
fn unknown(known: &Known) -> &'static str {
    match known {
        known if known.settings.is_none() => "the ConfigMap has not been read yet",
        known if known.installed.is_none() => "it is not known yet which image the Deployment and our pods run",
        known if known.following.trouble.is_some() => "the registry has not answered yet",
        _ => "the registry has not been asked yet",
    }
}

/// The next action of the channel, with its time.
pub(super) fn next(known: &Known, state: State, now: Timestamp) -> Next {
    let untimed = |text: &str| Next {
        text: text.to_owned(),
        at: None,
    };
    match state {
        State::Off => untimed("nothing"),
        State::Unknown | State::UpToDate | State::NotFound => asked_again(known, now),
        State::Waits => match &known.following.choice {
            Some(Choice::Waits { next: Some(at), .. }) => Next {
                text: format!("its trial may begin at {:.0}, {}", whole(*at), from_now(*at, now)),
                at: Some(whole(*at)),
            },
            Some(Choice::Waits { next: None, .. } | Choice::Nothing(_) | Choice::Begin(_)) | None => {
                untimed("its trial, once a person has removed what it waits for")
            }
        },
        State::Begins => untimed("its trial begins at once"),
        State::OnTrial => on_trial(known, now),
        State::RollingOut => {
            untimed("the Deployment is changed and rolled out; then the pod of the trial hands over and goes")
        }
        State::Returning => untimed("the old version takes the lease again, and the pod of the trial goes"),
        State::Held => untimed("nothing, before a person says `addon-operator channel resume`"),
        State::Stopped => untimed("nothing, before a person mends that and says `addon-operator channel resume`"),
    }
}

fn asked_again(known: &Known, now: Timestamp) -> Next {
    match known.following.next {
        Some(at) => Next {
            text: format!("the registry is asked again {}", from_now(at, now)),
            at: Some(whole(at)),
        },
        None => Next {
            text: "the registry is asked, as soon as the replica that leads can".to_owned(),
            at: None,
        },
    }
}

fn on_trial(known: &Known, now: Timestamp) -> Next {
    const JUDGES: &str = "the pods of the old version judge";
    let records = known.records.as_ref();
    let trial = records.and_then(|records| records.trial.as_ref());
    let has_converged = parts::trial(known).is_some_and(|trial| trial.converged.is_some());
    let end = trial.and_then(|trial| trial.begun.checked_add(trial.limit).ok());
    let text = match end.filter(|end| !has_converged && *end > now) {
        Some(end) => format!(
            "{JUDGES}; it fails unless its first converge is over in {}",
            span(end.duration_since(now).unsigned_abs())
        ),
        None => JUDGES.to_owned(),
    };
    Next { text, at: None }
}

/// The text for the time until a moment.
fn from_now(at: Timestamp, now: Timestamp) -> String {
    let left = at.duration_since(now);
    if left.is_positive() {
        format!("in {}", span(left.unsigned_abs()))
    } else {
        "at once".to_owned()
    }
}
