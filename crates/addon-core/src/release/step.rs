//! The steps that a decision about a release can name, and the reasons for which helm has to work. Must never do a step.

use std::fmt;

use super::Status;
use super::brake::Held;
use super::returned::Returned;
use crate::failure::Failure;

/// The next step of bringing a release to its wanted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseStep {
    /// Read the newest revision, and ask again: the view of a watch is not enough.
    Read,
    /// Read all records of the release, repair the damaged ones, and ask again.
    Examine,
    /// Check whether the objects exist, and ask again.
    LookAtObjects,
    /// Render the chart, and ask again.
    Render,
    /// Compare the rendering with the newest revision, and ask again.
    Compare,
    /// Read the revision that helm would upgrade from, and ask again.
    LookAtBase,
    /// Rewrite the record of the revision that helm would upgrade from, so that it names only kinds that are served, and
    /// ask again.
    Amend,
    /// Mark this unfinished revision as failed, and ask again.
    Repair {
        /// The number of the unfinished revision.
        revision: u32,
        /// The status that the revision was left in, before the repair.
        left: Status,
    },
    /// Do nothing: the release is in the wanted state.
    Keep {
        /// The deployed revision.
        revision: u32,
    },
    /// Do nothing: the release is in maintenance.
    LeaveAlone {
        /// The newest revision.
        revision: u32,
    },
    /// Mark the deployed revision with the new inputs. The objects do not change.
    Record {
        /// The deployed revision.
        revision: u32,
        /// The checksum to write with the inputs: the one that any writer has put on the revision, or else our own. The
        /// original upgrades a release if the checksum differs from its own.
        checksum: String,
    },
    /// Let helm install or upgrade the release.
    Upgrade(Reason),
    /// Take the upgrade back: note this, and let helm roll back.
    Return {
        /// The note.
        note: Returned,
        /// The revision whose objects come back.
        to: u32,
    },
    /// Do nothing: the upgrade was taken back, and its inputs are still the same.
    StayBack(Returned),
    /// Wait for a person's confirmation: the upgrade would delete objects without a request of people.
    Hold(Held),
    /// Do not run helm yet, for the given reason.
    Refuse(Failure),
}

/// The reason for which helm has to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The release does not exist.
    NotInstalled,
    /// The last action of helm has the given status, which is not `deployed`.
    Last(Status),
    /// The last attempt left no revision, and may have changed some objects.
    Torn,
    /// A person wants an upgrade to be tried again that was taken back.
    Again,
    /// The chart renders other objects.
    Changed,
    /// The named object of the release is missing.
    Absent(String),
    /// People take over the objects (maintenance begins).
    Yielded,
    /// People give the objects back (maintenance ends).
    TakenBack,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str("not installed"),
            Self::Last(status) => write!(f, "last revision is {status}"),
            Self::Torn => f.write_str("the last helm failed and left no revision"),
            Self::Again => f.write_str("a person lets it be tried again"),
            Self::Changed => f.write_str("rendering changed"),
            Self::Absent(object) => write!(f, "{object} is absent"),
            Self::Yielded => f.write_str("enters maintenance mode"),
            Self::TakenBack => f.write_str("leaves maintenance mode"),
        }
    }
}
