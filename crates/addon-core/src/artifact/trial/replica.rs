//! The replica that drives a machine: its version, and all its knowledge except that of the cluster.
//!
//! Must never hold facts of the cluster: those are sights.

use std::collections::BTreeSet;

use crate::artifact::choice::{Activity, Memory, Target};
use crate::artifact::reference::ImageDigest;
use crate::artifact::settings::Settings;

/// The replica that drives a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// Its pod.
    pub pod: String,
    /// The digest by which its version can be pulled on all machines.
    pub digest: ImageDigest,
    /// All digests of its version: that one, and those of the manifests in it.
    pub digests: BTreeSet<ImageDigest>,
    /// The kind of its pod.
    pub place: PodKind,
}

/// The kind of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodKind {
    /// One of those that the Deployment wants.
    Deployment,
    /// That of a trial.
    Trial,
}

/// All that a replica knows beside the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The version whose trial may begin, by the choice.
    pub wanted: Option<Wanted>,
    /// The settings that people made; nothing while they are not known.
    pub settings: Option<Settings>,
    /// The value of the last resume by a person.
    pub resumed: Option<String>,
    /// Whether it leads.
    pub lead: Lead,
    /// Whether this is a quiet moment.
    pub activity: Activity,
    /// The subjects (`module NAME`, `hook NAME`) that fail now.
    pub failing: BTreeSet<String>,
    /// The memory of the choice, which is to be kept for later lives; nothing where nobody chooses, or where it was not read yet
    /// what earlier lives have kept.
    pub choice: Option<Memory>,
}

/// A version whose trial may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// That version.
    pub target: Target,
    /// All digests that count as it.
    pub digests: BTreeSet<ImageDigest>,
}

/// Whether a replica leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// It leads, and need not yield.
    Leads,
    /// It does not, or not much longer.
    Follows,
}

impl Wish {
    /// That of a replica that knows nothing yet.
    pub(super) fn nothing() -> Self {
        Self {
            wanted: None,
            settings: None,
            resumed: None,
            lead: Lead::Follows,
            activity: Activity::Busy,
            failing: BTreeSet::new(),
            choice: None,
        }
    }
}
