//! Why nothing is done, or not yet: names for the program, and a sentence each for people.
//!
//! Must never be an answer that people can do nothing with.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use super::VersionStep;
use crate::artifact::platform::Platform;
use crate::artifact::policy::Mode;
use crate::artifact::range::Range;
use crate::artifact::reference::Tag;
use crate::artifact::version::Version;
use crate::name::{RELEASE_APPROVED, RELEASE_CHANNEL};

/// Why nothing is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// The version that is wanted runs.
    UpToDate,
    /// Neither a channel nor a tag says that anything else could be wanted.
    Pinned,
    /// The registry shows no tag of that name.
    NoTag(Tag),
    /// It shows no tag in that range.
    NoMatch(Range),
    /// Its answers about this tag or digest are incomplete.
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

/// Something that a version waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The channel is the digest that runs.
    Held,
    /// A note on the image cannot be read.
    Unreadable(String),
    /// It does not exist for machines that our pods are on.
    OtherPlatform {
        /// For these.
        missing: BTreeSet<Platform>,
    },
    /// Keys are set, and none of them has signed it.
    NotVerified {
        /// Why not.
        why: String,
    },
    /// It needs a newer chart.
    OldChart {
        /// This one, or a newer one.
        lowest: Version,
        /// The one that made our Deployment, if its label tells.
        ours: Option<Version>,
    },
    /// It does not know the state that we keep.
    StateFormat {
        /// The format of ours.
        ours: String,
    },
    /// The registry listed a higher version in the range before, and no longer does.
    Withdrawn {
        /// That version.
        higher: Version,
    },
    /// It is older than the one that runs, and no person has asked for it.
    Older {
        /// The one that runs.
        running: Option<Version>,
    },
    /// It does not tell its version, or ours is not known, so that it may be older; and no person has asked for it.
    NoVersion,
    /// It failed on trial.
    FailedBefore,
    /// A person has to approve of it.
    Approval {
        /// Because of this mode.
        mode: Mode,
        /// And this kind of step.
        step: VersionStep,
    },
    /// It was seen a short time ago.
    Delay {
        /// Then it may be taken.
        until: Timestamp,
    },
    /// Its last trial had no result.
    Unclear {
        /// Then there may be another.
        again: Timestamp,
    },
    /// No window is open.
    Window {
        /// Then the next one opens.
        opens: Option<Timestamp>,
    },
    /// Something is under way that is to end first.
    Busy {
        /// Longer it is not waited for.
        until: Timestamp,
    },
}

impl Reason {
    /// When it is over by time alone.
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

    /// Its name, for machines.
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
        match self {
            Self::Held => write!(f, "{RELEASE_CHANNEL} is the digest that runs, which holds it"),
            Self::Unreadable(mistake) => f.write_str(mistake),
            Self::OtherPlatform { missing } => {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(f, "it does not exist for {}, which our pods run on", missing.join(", "))
            }
            Self::NotVerified { why } => write!(f, "it is not verified: {why}"),
            Self::OldChart { lowest, ours } => f.write_str(&old_chart(lowest, ours.as_ref())),
            Self::StateFormat { ours } => {
                write!(f, "it does not say that it knows format {ours} of our state")
            }
            Self::Withdrawn { higher } => write!(
                f,
                "the registry showed {higher} before and does not any more; another {RELEASE_CHANNEL} says that this one is \
                 wanted instead"
            ),
            Self::Older { running } => f.write_str(&older(running.as_ref())),
            Self::NoVersion => write!(
                f,
                "it may be older than the version that runs, for one of the two does not tell its version, and no person \
                 has asked for it by {RELEASE_CHANNEL} or {RELEASE_APPROVED}"
            ),
            Self::FailedBefore => write!(
                f,
                "it failed on trial and is not tried again; {RELEASE_APPROVED} with its digest lifts that for one trial"
            ),
            Self::Approval { mode, step: _ } if *mode == Mode::Manual => {
                write!(f, "it wants an approval ({RELEASE_APPROVED}): the mode is manual")
            }
            Self::Approval { mode, step } => write!(
                f,
                "it wants an approval ({RELEASE_APPROVED}): the mode is {}, and {step}",
                mode.word()
            ),
            Self::Delay { until } => write!(f, "it was first seen a short time ago, and waits until {until:.0}"),
            Self::Unclear { again } => write!(f, "its last trial had no result; there is another after {again:.0}"),
            Self::Window { opens: Some(opens) } => write!(f, "no window is open; the next one opens at {opens:.0}"),
            Self::Window { opens: None } => f.write_str("no window is open, and none will be for the next weeks"),
            Self::Busy { until } => write!(
                f,
                "something is under way that is to end first; after {until:.0} it is not waited for any longer"
            ),
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

fn older(running: Option<&Version>) -> String {
    let running = running.map(|running| format!(", {running}")).unwrap_or_default();
    format!(
        "it is older than the version that runs{running}, and no person has asked for it by {RELEASE_CHANNEL} or \
         {RELEASE_APPROVED}"
    )
}
