//! The records of a trial, as they stand in the Secret of our state: all replicas of both versions read them, and a leader that
//! comes later goes on by them alone.
//!
//! Must never hold a value of a module.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::artifact::channel::Channel;
use crate::artifact::choice::{Memory, Target};
use crate::artifact::reference::ImageDigest;

/// A trial, from its beginning to the end of all that follows from its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// All digests of the old version: of its index, and of the manifests in it that our pods run.
    pub from: BTreeSet<ImageDigest>,
    /// The image that the Deployment names, unchanged.
    pub image: String,
    /// The version on trial.
    pub to: Target,
    /// All digests that count as the version on trial.
    pub to_digests: BTreeSet<ImageDigest>,
    /// The hash of the pod template of the Deployment.
    pub template: String,
    /// The subjects (`module NAME`, `hook NAME`) that fail already under the old version.
    pub failing: BTreeSet<String>,
    /// When it began.
    pub begun: Timestamp,
    /// The pod that began it.
    pub by: String,
    /// The channel that was set at the start; another channel voids the trial.
    pub channel: Option<Channel>,
    /// A person had approved of this version by then; whoever takes that back voids the trial.
    pub is_approved: bool,
    /// How long the first converge of the new version may take.
    #[serde(with = "seconds")]
    pub limit: Duration,
    /// Tells the pod of the trial from those that were lost before; nothing while there is none.
    pub pod: Option<String>,
    /// So many pods of it were lost.
    pub lost: u32,
    /// So often the lease was handed to it.
    pub handed: u32,
    /// The end of the trial; nothing while it goes on.
    pub verdict: Option<Verdict>,
}

/// The end of a trial, written once by whichever judge comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The ruling.
    pub ruling: Ruling,
    /// A sentence that says why.
    pub why: String,
    /// When it was written.
    pub at: Timestamp,
    /// The pod that judged.
    pub judge: String,
}

/// How a trial may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ruling {
    /// The new version goes into the Deployment.
    Passed,
    /// The old version leads again, and this digest is not tried again unless a person approves of it.
    Failed,
    /// Nothing was found out about the new version: it is tried again later.
    Unclear,
    /// People changed the Deployment or the channel: nothing counts.
    Void,
}

/// The failures of a subject. A later one in this order is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failures {
    /// So many in a row.
    InARow(u32),
    /// It is a module that cannot be run as it is declared: it is not tried again before something else changes.
    ForGood,
}

/// The words of the version on trial about itself, written at every change and every ten seconds as long as there is no verdict:
/// also while it does not lead, since a pod that has lost the lease is not one that hangs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version that writes.
    pub of: ImageDigest,
    /// The pod that writes.
    pub pod: String,
    /// Counts the reports of one process, so that each differs from the one before.
    pub number: u64,
    /// When the first converge of this process was over, by its own clock; nothing before.
    pub converged: Option<Timestamp>,
    /// The subjects (`module NAME`, `hook NAME`) that fail now, each with its failures.
    pub failing: BTreeMap<String, Failures>,
}

/// All that is remembered of channel and trials from life to life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Remembered {
    /// The memory of the choice.
    pub choice: Memory,
    /// The digests that failed on trial: the last hundred of them.
    pub failed: BTreeMap<ImageDigest, Failed>,
    /// Those of them of which a person has to approve anew: an approval counts for one trial. Nothing stays here without its
    /// approval.
    pub spent: BTreeSet<ImageDigest>,
    /// The digest whose last trial had no result.
    pub unclear: Option<Unclear>,
    /// When others put back the image that our own patch had replaced.
    pub put_back: Vec<Timestamp>,
    /// Why no version is tried any more until a person resumes.
    pub stopped: Option<String>,
    /// The image that people put into the Deployment themselves, and from which a person told us to go on, until the Deployment
    /// notes that it counts as ours.
    pub adopted: Option<String>,
    /// The value of the last resume by a person. Another value is another resume.
    pub resumed: Option<String>,
}

/// A trial that its version failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// Why.
    pub why: String,
    /// When.
    pub at: Timestamp,
}

/// Trials of one digest in a row that found out nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unclear {
    /// That digest.
    pub digest: ImageDigest,
    /// How many they were.
    pub times: u32,
    /// When the last of them ended.
    pub at: Timestamp,
    /// When there may be another.
    pub again: Timestamp,
    /// Why the last one found out nothing.
    pub why: String,
}

/// Whole seconds.
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
