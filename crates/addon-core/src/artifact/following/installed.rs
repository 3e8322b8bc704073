//! The operator as its cluster has it, and as its trials have left it.
//!
//! Must never hold a part of it that was guessed: all of it is known, or nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::artifact::choice::Running;
use crate::artifact::platform::Platform;
use crate::artifact::reference::{ImageDigest, Repository};
use crate::artifact::trial::record::Remembered;
use crate::artifact::version::Version;

/// The operator as its cluster has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The repository that our image comes from; nothing if the name of our image cannot be read.
    pub repository: Option<Repository>,
    /// The version that runs.
    pub running: Running,
    /// The version of the chart that made our Deployment, if its label names one.
    pub chart: Option<Version>,
    /// The platforms of the machines that our pods are on.
    pub platforms: BTreeSet<Platform>,
    /// Digests that failed on trial.
    pub failed: BTreeSet<ImageDigest>,
    /// Those of them that failed although a person had approved of them: the same approval does not lift that.
    pub spent: BTreeSet<ImageDigest>,
    /// The digest whose last trial found out nothing, and when there may be another.
    pub unclear: Option<(ImageDigest, Timestamp)>,
}

impl Installed {
    /// The same with all that is remembered of trials.
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
