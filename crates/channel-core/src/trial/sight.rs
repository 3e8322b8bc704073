//! The cluster as one replica sees it: the Deployment, the ReplicaSet of the trial with its pod, the lease.
//!
//! Must never hold a derived fact: a sight only describes the cluster.

use std::collections::BTreeSet;

use clock::Tick;
use jiff::Timestamp;

use super::record::{Remembered, Report, Trial};
use crate::platform::Platform;
use crate::reference::{ImageDigest, Reference};
use crate::version::Version;

/// The objects of the cluster as one replica saw them at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The last time at which the API server answered all these reads, by the clock of this replica. Times without an
    /// answer are not counted, and an old sight leads to no action.
    pub heard: Tick,
    /// Our Deployment.
    pub deployment: Option<Deployment>,
    /// The pods of the Deployment; `None` if they are not known.
    pub replicas: Option<Vec<Replica>>,
    /// The ReplicaSet of the trial.
    pub set: Known<TrialSet>,
    /// The lease.
    pub lease: Option<LeaseSight>,
    /// The record of the trial.
    pub trial: Known<Trial>,
    /// The report of the version on trial about itself.
    pub report: Known<Report>,
    /// The memory of trials: `None` if it was not read, the default if none was ever written.
    pub remembered: Option<Remembered>,
}

/// An object that may be absent. It may also be unknown whether the object exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Known<T> {
    /// The object was not read yet, or cannot be read.
    #[default]
    Unknown,
    /// The object does not exist.
    Absent,
    /// The object exists.
    There(T),
}

impl<T> Known<T> {
    /// The object if it exists; `None` if it is absent or unknown.
    pub fn there(&self) -> Option<&T> {
        match self {
            Self::There(it) => Some(it),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Whether it is known that the object exists or is absent.
    pub fn is_known(&self) -> bool {
        match self {
            Self::There(_) | Self::Absent => true,
            Self::Unknown => false,
        }
    }
}

/// Our Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The image of our container, unchanged.
    pub image: String,
    /// The parsed name of the image; `None` if it is invalid.
    pub reference: Option<Reference>,
    /// The hash of the pod template.
    pub template: String,
    /// The version of the chart that made the Deployment, if its label names one.
    pub chart: Option<Version>,
    /// The image that our last patch set, from its annotation.
    pub patched: Option<String>,
    /// The image that our last patch replaced, from its annotation.
    pub former: Option<String>,
    /// The image in the chart's values, from the chart's annotation.
    pub chart_image: Option<String>,
    /// The image in the chart's values at the time of our last patch, from its annotation.
    pub chart_image_then: Option<String>,
    /// The value of the annotation by which a person last resumed the channel.
    pub resumed: Option<String>,
    /// The field manager of the image in `managedFields`, and the time of its write.
    pub manager: Option<(String, Option<Timestamp>)>,
    /// Whether the image is pulled at every start of a pod.
    pub pulls_always: bool,
    /// Whether the rollout is complete: all pods run the template and are ready, and no other pods are left.
    pub is_rolled_out: bool,
    /// The reason why the rollout does not progress, if the status has one.
    pub stuck: Option<String>,
}

/// A pod of the Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The pod's name.
    pub pod: String,
    /// The digests that the runtime reports as running: of an index or of a manifest.
    pub digests: BTreeSet<ImageDigest>,
    /// The platform of the pod's node, if that is known.
    pub platform: Option<Platform>,
    /// Whether the pod is ready.
    pub is_ready: bool,
}

/// The ReplicaSet that runs the version on trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialSet {
    /// The uid, which differs for each ReplicaSet of this name.
    pub uid: String,
    /// The digest of the image that the ReplicaSet runs.
    pub digest: ImageDigest,
    /// Whether the ReplicaSet is being deleted. It exists until its pod has ended.
    pub is_going: bool,
    /// The ReplicaSet's pod, unless there is none or it is terminating.
    pub pod: Option<TrialPod>,
}

/// The pod that runs the version on trial. It belongs to the trial's ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPod {
    /// The pod's name.
    pub name: String,
    /// The uid, which differs for each pod of this name.
    pub uid: String,
    /// The state of the pod.
    pub state: PodState,
    /// The number of restarts of the pod's container.
    pub restarts: u32,
    /// Whether the container before the last restart ended itself because its lease had run out.
    pub was_overdue: bool,
}

/// The state of a trial's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// The pod has no node. The text is the reason in the pod's condition.
    Unscheduled(String),
    /// The pod's image cannot be pulled. The text is the reason.
    NotPulled(String),
    /// The pod is pulling, starting, or not ready yet.
    Starting,
    /// The pod is ready.
    Ready,
    /// The pod's container has ended and will be restarted. The text is the reason for its end.
    Crashed(String),
    /// The pod has ended for good, was evicted, or its node is gone. The text is the reason.
    Lost(String),
}

/// The lease, as this replica's part in the election knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseSight {
    /// The pod that holds the lease; `None` if the lease is free.
    pub holder: Option<String>,
    /// The digest of the version that is entitled to the lease.
    pub entitled: Option<ImageDigest>,
}

/// The facts about a trial that a judge sees at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance<'a> {
    pub(super) trial: &'a Trial,
    pub(super) pod: Option<&'a TrialPod>,
    pub(super) lease: &'a LeaseSight,
    pub(super) report: Option<&'a Report>,
    pub(super) heard: Tick,
}

impl<'a> Glance<'a> {
    /// The report, if it is one of this pod about the version on trial.
    pub(super) fn report_by(&self, pod: &TrialPod) -> Option<&'a Report> {
        let is_of = |report: &&Report| report.pod == pod.name && self.trial.to_digests.contains(&report.of);
        self.report.filter(is_of)
    }
}
