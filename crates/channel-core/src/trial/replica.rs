//! The replica that drives a machine: its version, its pod, and its wishes.
//!
//! Must never hold facts of the cluster: these are in sights.

use std::collections::{BTreeMap, BTreeSet};

use crate::choice::{Activity, Memory, Target};
use crate::reference::ImageDigest;
use crate::settings::Settings;

/// The replica that runs a state machine of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// The name of the replica's pod.
    pub pod: String,
    /// The digest by which all nodes can pull the replica's version.
    pub digest: ImageDigest,
    /// All digests of the replica's version: the digest `digest`, and those of the manifests in it.
    pub digests: BTreeSet<ImageDigest>,
    /// The kind of the replica's pod.
    pub place: PodKind,
}

/// The kind of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodKind {
    /// A pod of the Deployment.
    Deployment,
    /// The pod of a trial.
    Trial,
}

/// The knowledge and the wishes of a replica, apart from its sight of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The version whose trial may begin according to the last choice of a version.
    pub wanted: Option<Wanted>,
    /// The settings of people; `None` while they are not known.
    pub settings: Option<Settings>,
    /// The value of the annotation by which a person last resumed the channel.
    pub resumed: Option<String>,
    /// Whether the replica leads.
    pub lead: Lead,
    /// Whether work is under way that a trial would disturb.
    pub activity: Activity,
    /// The subjects (`module NAME`, `hook NAME`) that fail now.
    pub failing: BTreeSet<String>,
    /// The modules that are not healthy now.
    pub unwell: BTreeSet<String>,
    /// The revision of each module's release now.
    pub revisions: BTreeMap<String, u32>,
    /// The memory of the choice, to be kept for later lives; `None` if this replica makes no choice, or has not read yet
    /// what earlier lives kept.
    pub choice: Option<Memory>,
}

/// A version whose trial may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The version whose trial may begin.
    pub target: Target,
    /// All digests of the version: of its index and of the manifests in it.
    pub digests: BTreeSet<ImageDigest>,
}

/// Whether a replica leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    /// The replica leads, and does not have to give up the lease.
    Leads,
    /// The replica does not lead, or will soon give up the lease.
    Follows,
}

impl Wish {
    /// The wishes of a replica that knows nothing yet.
    pub(super) fn nothing() -> Self {
        Self {
            wanted: None,
            settings: None,
            resumed: None,
            lead: Lead::Follows,
            activity: Activity::Busy,
            failing: BTreeSet::new(),
            unwell: BTreeSet::new(),
            revisions: BTreeMap::new(),
            choice: None,
        }
    }
}
