//! The status of a release, as helm names it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status that helm wrote into the newest revision of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The last action succeeded.
    Deployed,
    /// The last action failed.
    Failed,
    /// The release has a newer revision.
    Superseded,
    /// The release was removed, and its history was kept.
    Uninstalled,
    /// The removal has begun.
    Uninstalling,
    /// The first installation has begun.
    PendingInstall,
    /// An upgrade has begun.
    PendingUpgrade,
    /// A rollback has begun.
    PendingRollback,
    /// A status that no known version of helm writes, or helm's own `unknown`.
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Parses helm's status. An unknown text is `Unknown`.
    pub fn parse(word: &str) -> Self {
        match word {
            "deployed" => Self::Deployed,
            "failed" => Self::Failed,
            "superseded" => Self::Superseded,
            "uninstalled" => Self::Uninstalled,
            "uninstalling" => Self::Uninstalling,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            _ => Self::Unknown,
        }
    }

    /// Helm's name of the status.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deployed => "deployed",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
            Self::Uninstalled => "uninstalled",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a helm is working on the release now, or was killed during its work.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback | Self::Uninstalling => true,
            Self::Deployed | Self::Failed | Self::Superseded | Self::Uninstalled | Self::Unknown => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
