//! The reasons for which the brake holds a removal, as texts for people.
//!
//! Must never decide whether a removal is held.

use std::fmt;

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
