//! The thing whose version is chosen: the operator or one of its modules.
//!
//! Must never change which version is wanted: the subject changes only the obstacles and the words for people.

use names::{RELEASE_APPROVED, RELEASE_CHANNEL};

/// The thing whose version is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// The operator itself. Another version must be able to read its state.
    #[default]
    Operator,
    /// A module, which keeps no state of its own in the operator.
    Module,
}

impl Subject {
    /// The setting with the wanted version.
    pub(super) fn channel(self) -> &'static str {
        match self {
            Self::Operator => RELEASE_CHANNEL,
            Self::Module => "the version of its source",
        }
    }

    /// The setting with the digests that a person has approved.
    pub(super) fn approved(self) -> &'static str {
        match self {
            Self::Operator => RELEASE_APPROVED,
            Self::Module => "the field approved of its source",
        }
    }
}
