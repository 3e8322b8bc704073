//! The note about a helm child of ours, by which a later leader tells our unfinished work from that of others.
//!
//! Must never explain a revision that another program left.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use super::tenure::Holder;
use super::{Newest, Status};

/// The note about a helm child of ours. It is written before the child starts. It is taken back after the child has
/// ended, but not necessarily at once. So the note about an ended child must never explain a revision that another
/// program left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The action of the helm child.
    pub kind: IntentKind,
    /// The newest revision before the start of the helm child; 0 without a release.
    pub revision_before: u32,
    /// The digest of the helm child's inputs; empty for a removal.
    #[serde(default)]
    pub digest: String,
    /// The time at which the helm child was started, in seconds since 1970.
    pub started: u64,
    /// Whether the child writes the time of its start on the revision that it begins. Children of older versions may
    /// not.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub marks: bool,
    /// The time as leader in which the child was started; `None` without an election, or in a note of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// The actions of a helm child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentKind {
    /// Install or upgrade.
    Upgrade,
    /// Remove.
    Uninstall,
    /// Roll back to an earlier revision.
    Return,
}

impl Intent {
    /// Whether this child left the unfinished revision. There are two other causes. If the child was killed before it
    /// wrote anything, a person may have begun a revision of the same number. A person may also be removing the
    /// revision that the child has finished.
    pub(super) fn explains(&self, newest: &Newest) -> bool {
        match self.kind {
            IntentKind::Upgrade => {
                let is_marked = newest.begun.map_or(!self.marks, |begun| begun == self.started);
                newest.revision == self.revision_before.saturating_add(1)
                    && newest.status != Status::Uninstalling
                    && is_marked
            }
            // Helm copies the time of the start from the earlier revision.
            IntentKind::Return => {
                newest.revision == self.revision_before.saturating_add(1) && newest.status == Status::PendingRollback
            }
            IntentKind::Uninstall => newest.revision == self.revision_before && newest.status == Status::Uninstalling,
        }
    }

    /// Whether a failed child left no revision. `newest` is the number of the newest revision; `None`: there is no
    /// release, or it cannot be read.
    pub fn left_nothing(&self, newest: Option<u32>) -> bool {
        newest.is_none_or(|newest| newest <= self.revision_before)
    }
}
