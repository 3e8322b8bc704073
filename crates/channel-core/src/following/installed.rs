//! The installation of the operator in its cluster, and the results of trials that concern it.
//!
//! Must never hold a guessed part: either all of the installation is known, or the whole is absent.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::choice::{Running, Subject};
use crate::platform::Platform;
use crate::reference::{ImageDigest, Repository};
use crate::trial::record::Remembered;
use crate::version::Version;

/// The facts about the installation of the operator, or of a module, in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Whether the operator or a module is followed.
    pub subject: Subject,
    /// The repository of our image; `None` if the image's name cannot be read.
    pub repository: Option<Repository>,
    /// The running version.
    pub running: Running,
    /// The version of the chart that made our Deployment, if its label names one.
    pub chart: Option<Version>,
    /// The platforms of the nodes on which our pods run.
    pub platforms: BTreeSet<Platform>,
    /// Digests whose trials failed.
    pub failed: BTreeSet<ImageDigest>,
    /// Failed digests that a person had approved before the trial. The same approval does not permit another trial.
    pub spent: BTreeSet<ImageDigest>,
    /// The digest whose last trial had no result, and the time from which on it may be tried again.
    pub unclear: Option<(ImageDigest, Timestamp)>,
}

impl Installed {
    /// The installation with the remembered results of trials added.
    #[must_use]
    pub fn after(self, remembered: &Remembered) -> Self {
        let unclear = remembered.unclear.as_ref();
        Self {
            failed: remembered.failed.keys().cloned().collect(),
            spent: remembered.spent.clone(),
            unclear: unclear.map(|unclear| (unclear.digest.clone(), unclear.again)),
            ..self
        }
    }
}
