//! The words that helm has for the state of a release.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state that helm wrote into the newest revision of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It succeeded.
    Deployed,
    /// It did not.
    Failed,
    /// A newer revision took its place.
    Superseded,
    /// It was removed, its history kept.
    Uninstalled,
    /// Its removal began.
    Uninstalling,
    /// Its first installation began.
    PendingInstall,
    /// An upgrade began.
    PendingUpgrade,
    /// A rollback began.
    PendingRollback,
    /// A status that no known helm writes, or helm's own `unknown`.
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Parses helm's status; an unknown one is `Unknown`.
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

    /// Helm's name of it.
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

    /// Either a helm is at work right now, or one was killed.
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
