//! Reasons that notices tell: of held removals, and of rewritten records of helm.
//!
//! Must never decide whether a removal is held.

use std::fmt;

use super::Notice;
use crate::operator::event::Reworked;

/// The reason for which the brake holds a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldFor {
    /// A modules directory could not be read or is empty, and the module may belong there.
    Directories,
    /// The directories hold a module of that name by now, which the operator has not taken over.
    Changed,
    /// Too many removals would come within ten minutes. A person has to confirm them.
    Confirmation {
        /// The number of removals, those of the last ten minutes included.
        goes: usize,
        /// The number of releases that are ours.
        of: usize,
    },
}

impl fmt::Display for HeldFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directories => f.write_str("a modules directory is empty or could not be read completely"),
            Self::Changed => f.write_str("the modules directories changed since they were read"),
            Self::Confirmation { goes, of } => {
                write!(
                    f,
                    "{goes} of our {of} releases would go within ten minutes, and nobody said so"
                )
            }
        }
    }
}
/// The reason for which a record of helm was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordCause {
    /// It named objects by kinds that are no longer served.
    Unserved,
    /// It was damaged.
    Damaged,
}

impl Reworked {
    /// The notices of the changes to the records of a release.
    pub fn notices(self, release: &str) -> impl Iterator<Item = Notice> {
        let Self { amended, repaired } = self;
        let all = [(RecordCause::Unserved, amended), (RecordCause::Damaged, repaired)];
        all.into_iter()
            .filter(|(_, subjects)| !subjects.is_empty())
            .map(move |(cause, subjects)| Notice::RecordRewritten {
                release: release.to_owned(),
                cause,
                subjects,
            })
    }
}
