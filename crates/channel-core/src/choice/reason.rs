//! The reasons why nothing is done, or not yet: a name for programs and a sentence for people.
//!
//! Must never give people a reason on which they cannot act.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use names::RELEASE_CHANNEL;

use super::{Subject, VersionStep};
use crate::platform::Platform;
use crate::policy::Mode;
use crate::range::Range;
use crate::reference::Tag;
use crate::version::Version;

/// The reason why no change of version is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// The wanted version is running.
    UpToDate,
    /// There is neither a channel nor a tag, so that no other version can be wanted.
    Pinned,
    /// The registry has no tag with the given name.
    NoTag(Tag),
    /// The registry has no tag in the given range.
    NoMatch(Range),
    /// The registry has not answered all questions about the given tag or digest.
    NotLookedAt(String),
    /// The platforms that a version must support are not known.
    PlatformsUnknown,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate => f.write_str("the version that is wanted runs"),
            Self::Pinned => write!(
                f,
                "the Deployment names a digest without a tag, and {RELEASE_CHANNEL} is not set"
            ),
            Self::NoTag(tag) => write!(f, "the registry shows no tag '{tag}'"),
            Self::NoMatch(range) => write!(f, "the registry shows no tag of a full version in the range '{range}'"),
            Self::NotLookedAt(name) => write!(f, "the registry has not yet told all there is to know of '{name}'"),
            Self::PlatformsUnknown => f.write_str("it is not known yet on which platforms our pods run"),
        }
    }
}

/// A reason for which a version waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The channel is the running digest.
    Held,
    /// A note on the image cannot be read.
    Unreadable(String),
    /// The version has no manifest for a platform on which our pods run.
    OtherPlatform {
        /// The missing platforms.
        missing: BTreeSet<Platform>,
    },
    /// Keys are configured, and none of them has signed the image.
    NotVerified {
        /// The error of the check.
        why: String,
    },
    /// The version needs a newer chart.
    OldChart {
        /// The lowest version of the chart.
        lowest: Version,
        /// The version of the chart that made our Deployment, if its label names one.
        ours: Option<Version>,
    },
    /// The version cannot read our state Secret.
    StateFormat {
        /// The format of our state Secret.
        ours: String,
    },
    /// The registry showed a higher version in the range before and does not show it any more.
    Withdrawn {
        /// The higher version.
        higher: Version,
    },
    /// The version is older than the running one, and no person has asked for it.
    Older {
        /// The running version.
        running: Option<Version>,
    },
    /// The version number of the image or of the running program is not known, so that the image may be older, and no
    /// person has asked for it.
    NoVersion,
    /// The version failed its trial.
    FailedBefore,
    /// The version needs the approval of a person.
    Approval {
        /// The mode of the policy that requires the approval.
        mode: Mode,
        /// The kind of version change that requires the approval.
        step: VersionStep,
    },
    /// The version was first seen a short time ago.
    Delay {
        /// The time from which on the version may be taken.
        until: Timestamp,
    },
    /// The version's last trial had no result.
    Unclear {
        /// The time from which on another trial may begin.
        again: Timestamp,
    },
    /// No window is open.
    Window {
        /// The time at which the next window opens.
        opens: Option<Timestamp>,
    },
    /// Running work has to end first.
    Busy {
        /// The time until which the version waits for the end of the work.
        until: Timestamp,
    },
}

impl Reason {
    /// The time at which the reason ends by time alone.
    pub fn ends(&self) -> Option<Timestamp> {
        match self {
            Self::Delay { until } | Self::Busy { until } => Some(*until),
            Self::Unclear { again } => Some(*again),
            Self::Window { opens } => *opens,
            Self::Held
            | Self::Unreadable(_)
            | Self::OtherPlatform { .. }
            | Self::NotVerified { .. }
            | Self::OldChart { .. }
            | Self::StateFormat { .. }
            | Self::Withdrawn { .. }
            | Self::Older { .. }
            | Self::NoVersion
            | Self::FailedBefore
            | Self::Approval { .. } => None,
        }
    }

    /// The name of the reason as programs read it.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unreadable(_) => "unreadable",
            Self::OtherPlatform { .. } => "platform",
            Self::NotVerified { .. } => "not_verified",
            Self::OldChart { .. } => "chart",
            Self::StateFormat { .. } => "state_format",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Older { .. } => "older",
            Self::NoVersion => "no_version",
            Self::FailedBefore => "failed_before",
            Self::Approval { .. } => "approval",
            Self::Delay { .. } => "delay",
            Self::Unclear { .. } => "unclear",
            Self::Window { .. } => "window",
            Self::Busy { .. } => "busy",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(Subject::Operator))
    }
}

impl Reason {
    /// The reason as a sentence for people, with the settings of this subject.
    pub fn told(&self, subject: Subject) -> String {
        let (channel, approved) = (subject.channel(), subject.approved());
        match self {
            Self::Held => format!("{channel} is the digest that runs, which holds it"),
            Self::Unreadable(mistake) => mistake.clone(),
            Self::OtherPlatform { missing } => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                format!("it does not exist for {}, which our pods run on", missing.join(", "))
            }
            Self::NotVerified { why } => format!("it is not verified: {why}"),
            Self::OldChart { lowest, ours } => old_chart(lowest, ours.as_ref()),
            Self::StateFormat { ours } => format!("it does not say that it knows format {ours} of our state"),
            Self::Withdrawn { higher } => format!(
                "the registry showed {higher} before and does not any more; another {channel} says that this one is \
                 wanted instead"
            ),
            Self::Older { running } => older(running.as_ref(), subject),
            Self::NoVersion => format!(
                "it may be older than the version that runs, for one of the two does not tell its version, and no person \
                 has asked for it by {channel} or {approved}"
            ),
            Self::FailedBefore => format!(
                "it failed on trial and is not tried again; {approved} with its digest lifts that for one trial"
            ),
            Self::Approval { mode, step: _ } if *mode == Mode::Manual => {
                format!("it wants an approval ({approved}): the mode is manual")
            }
            Self::Approval { mode, step } => {
                format!(
                    "it wants an approval ({approved}): the mode is {}, and {step}",
                    mode.word()
                )
            }
            Self::Delay { until } => format!("it was first seen a short time ago, and waits until {until:.0}"),
            Self::Unclear { again } => format!("its last trial had no result; there is another after {again:.0}"),
            Self::Window { opens: Some(opens) } => format!("no window is open; the next one opens at {opens:.0}"),
            Self::Window { opens: None } => "no window is open, and none will be for the next weeks".to_owned(),
            Self::Busy { until } => {
                format!("something is under way that is to end first; after {until:.0} it is not waited for any longer")
            }
        }
    }
}

fn old_chart(lowest: &Version, ours: Option<&Version>) -> String {
    let installed = match ours {
        Some(ours) => format!("{ours} is installed"),
        None => "the label helm.sh/chart of the Deployment tells none".to_owned(),
    };
    format!("it needs version {lowest} of the chart or a newer one, and {installed}")
}

fn older(running: Option<&Version>, subject: Subject) -> String {
    let (channel, approved) = (subject.channel(), subject.approved());
    let running = running.map(|running| format!(", {running}")).unwrap_or_default();
    format!(
        "it is older than the version that runs{running}, and no person has asked for it by {channel} or {approved}"
    )
}
