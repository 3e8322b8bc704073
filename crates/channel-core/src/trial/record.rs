//! The records of a trial in our state Secret. All replicas of both versions read them, and a later leader continues with
//! them alone.
//!
//! Must never hold a value of a module.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::choice::{Memory, Target};
use crate::reference::ImageDigest;

/// A trial, from its beginning to the end of the work after its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// All digests of the old version: of its index, and of the manifests that our pods run.
    pub from: BTreeSet<ImageDigest>,
    /// The Deployment's image, unchanged.
    pub image: String,
    /// The version on trial.
    pub to: Target,
    /// All digests of the version on trial.
    pub to_digests: BTreeSet<ImageDigest>,
    /// The hash of the pod template of the Deployment.
    pub template: String,
    /// The subjects (`module NAME`, `hook NAME`) that failed under the old version already.
    pub failing: BTreeSet<String>,
    /// The modules that were not healthy under the old version already.
    #[serde(default)]
    pub unwell: BTreeSet<String>,
    /// The revision of each module's release under the old version.
    #[serde(default)]
    pub revisions: BTreeMap<String, u32>,
    /// The time at which the trial began.
    pub begun: Timestamp,
    /// The name of the pod that began the trial.
    pub by: String,
    /// The channel at the beginning. A changed channel voids the trial.
    pub channel: Option<Channel>,
    /// Whether a person had approved this version at the beginning. Taking the approval back voids the trial.
    pub is_approved: bool,
    /// The limit of time for the first converge of the new version.
    #[serde(with = "seconds")]
    pub limit: Duration,
    /// The uid of the trial's pod, which differs from those of lost pods; `None` while there is none.
    pub pod: Option<String>,
    /// The number of the trial's pods that were lost.
    pub lost: u32,
    /// How often the lease was handed to the new version.
    pub handed: u32,
    /// The verdict; `None` while the trial goes on.
    pub verdict: Option<Verdict>,
}

/// The end of a trial. The first judge that reaches a verdict writes it, and it is written only once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The ruling.
    pub ruling: Ruling,
    /// The reason for the ruling, as a sentence.
    pub why: String,
    /// The time at which the verdict was written.
    pub at: Timestamp,
    /// The name of the pod that wrote the verdict.
    pub judge: String,
}

/// The ways in which a trial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ruling {
    /// The new version goes into the Deployment.
    Passed,
    /// The old version leads again. This digest is not tried again unless a person approves it.
    Failed,
    /// The trial has no result. It is repeated later.
    Unclear,
    /// People changed the Deployment or the channel, so the trial does not count.
    Void,
}

/// The failures of a subject, ordered: a later variant is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failures {
    /// The number of failures in a row.
    InARow(u32),
    /// A module cannot be run as it is declared. It is not retried before something else changes.
    ForGood,
}

/// The report of the version on trial about itself. It is written at every change and every ten seconds until there is
/// a verdict. It is written even while the version does not lead, so that a pod that has lost the lease does not seem
/// to hang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The digest of the version that reports about itself.
    pub of: ImageDigest,
    /// The name of the pod that reports.
    pub pod: String,
    /// The number of this report in its process, so that each report differs from the one before.
    pub number: u64,
    /// The time at which the pod ended its first converge, by the clock of the pod; `None` until then.
    pub converged: Option<Timestamp>,
    /// The subjects (`module NAME`, `hook NAME`) that fail now, each with its failures.
    pub failing: BTreeMap<String, Failures>,
    /// The subjects that fail now, and whose last failures were no faults: the cluster or the network hinders them.
    #[serde(default)]
    pub hindered: BTreeSet<String>,
    /// The modules whose objects are not healthy. Judges of earlier versions ignore them, and earlier versions report none.
    #[serde(default)]
    pub unhealthy: BTreeMap<String, Ailment>,
}

/// Why a module is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ailment {
    /// Whether an object has failed or has been on its way for too long. Else it is still on its way.
    pub has_failed: bool,
    /// The revision of the module's release.
    pub revision: u32,
    /// Whether the module waits for a registry that does not answer.
    #[serde(default)]
    pub is_hindered: bool,
    /// The sentence, which begins with the object; empty while the objects are not judged.
    pub sentence: String,
}

/// The memory of the choice and of trials, kept from life to life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Remembered {
    /// The memory of the choice of versions.
    pub choice: Memory,
    /// The digests that failed on trial. At most the last hundred are kept.
    pub failed: BTreeMap<ImageDigest, Failed>,
    /// Failed digests whose approval is used up: an approval counts for one trial. A digest leaves this set when its
    /// approval is taken back.
    pub spent: BTreeSet<ImageDigest>,
    /// The digest whose last trial had no result.
    pub unclear: Option<Unclear>,
    /// The times at which other writers put back the image that we had replaced.
    pub put_back: Vec<Timestamp>,
    /// The reason why no version is tried until a person resumes the channel.
    pub stopped: Option<String>,
    /// An image that people put into the Deployment and that a person told us to continue with. Kept until the Deployment
    /// notes that the image counts as ours.
    pub adopted: Option<String>,
    /// The value of the annotation by which a person last resumed the channel. Another value is another resume.
    pub resumed: Option<String>,
}

/// A failed trial of a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// The reason why the trial failed.
    pub why: String,
    /// The time of the verdict.
    pub at: Timestamp,
}

/// Trials of one digest in a row without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unclear {
    /// The digest.
    pub digest: ImageDigest,
    /// The number of trials in a row without a result.
    pub times: u32,
    /// The end of the last trial without a result.
    pub at: Timestamp,
    /// The time from which on another trial may begin.
    pub again: Timestamp,
    /// The reason why the last trial had no result.
    pub why: String,
}

/// Times as whole seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(duration.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}
