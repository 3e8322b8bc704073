//! The steps that a decision about a release can name, and the reasons for work of helm. Must never do any of them.

use std::fmt;

use super::Status;
use super::brake::Held;
use crate::failure::Failure;

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseStep {
    /// Look whether the objects are there, and ask again.
    LookAtObjects,
    /// Render the chart, and ask again.
    Render,
    /// Compare the rendering with the newest revision, and ask again.
    Compare,
    /// Read the revision that helm would upgrade from, and ask again.
    LookAtBase,
    /// Mark this unfinished revision as failed, and ask again.
    Repair {
        /// Which revision.
        revision: u32,
        /// The state it was left in.
        left: Status,
    },
    /// Nothing: it is as it should be.
    Keep {
        /// The deployed revision.
        revision: u32,
    },
    /// Nothing: the release is in maintenance.
    LeaveAlone {
        /// The newest revision.
        revision: u32,
    },
    /// Mark the deployed revision with the new inputs; the cluster is as it should be.
    Record {
        /// The deployed revision.
        revision: u32,
        /// The checksum to write with them: the one that is on the revision, of any writer, or else our own. The
        /// original upgrades a release on which it finds another one than its own.
        checksum: String,
    },
    /// Let helm install or upgrade it.
    Upgrade(Reason),
    /// Nothing before a person has confirmed it: it would delete objects without a request of people.
    Hold(Held),
    /// Nothing can be done now.
    Refuse(Failure),
}

/// Why helm has to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There is no release yet.
    NotInstalled,
    /// The last attempt did not end well.
    Last(Status),
    /// The last attempt left no revision, and maybe objects that are half changed.
    Torn,
    /// The chart renders to something else.
    Changed,
    /// An object of the release is gone.
    Absent(String),
    /// The release goes into maintenance: only people change its objects.
    Yielded,
    /// They give them back.
    TakenBack,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str("not installed"),
            Self::Last(status) => write!(f, "last revision is {status}"),
            Self::Torn => f.write_str("the last helm failed and left no revision"),
            Self::Changed => f.write_str("rendering changed"),
            Self::Absent(object) => write!(f, "{object} is absent"),
            Self::Yielded => f.write_str("enters maintenance mode"),
            Self::TakenBack => f.write_str("leaves maintenance mode"),
        }
    }
}
