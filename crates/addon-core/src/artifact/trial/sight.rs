//! The world as one replica sees it: the Deployment, the ReplicaSet of the trial with its pod, the lease.
//!
//! Must never hold anything that was derived: a sight only describes the cluster.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::record::{Remembered, Report, Trial};
use crate::artifact::platform::Platform;
use crate::artifact::reference::{ImageDigest, Reference};
use crate::artifact::version::Version;
use crate::time::Tick;

/// The sights of one replica at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// When the API server was asked last for all of this and answered, by the clock of this replica. No time is counted over
    /// which nothing was heard, and nothing is done about a sight that is old.
    pub heard: Tick,
    /// Our Deployment.
    pub deployment: Option<Deployment>,
    /// The pods that it wants; nothing if they are not known.
    pub replicas: Option<Vec<Replica>>,
    /// The ReplicaSet of the trial.
    pub set: Known<TrialSet>,
    /// The lease.
    pub lease: Option<LeaseSight>,
    /// The record of the trial.
    pub trial: Known<Trial>,
    /// The words of the version on trial about itself.
    pub report: Known<Report>,
    /// All that is remembered: nothing if that is not known, the default if nothing was ever written.
    pub remembered: Option<Remembered>,
}

/// Something that may be absent, and of which it may be unknown whether it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Known<T> {
    /// Not read yet, or unreadable.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// It is there.
    There(T),
}

impl<T> Known<T> {
    /// Itself if it is there; nothing if it is absent or unknown.
    pub fn there(&self) -> Option<&T> {
        match self {
            Self::There(it) => Some(it),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Whether it was read.
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
    /// The same, read; nothing if it is no name of an image.
    pub reference: Option<Reference>,
    /// A hash of its pod template.
    pub template: String,
    /// The version of the chart that made it, if its label tells.
    pub chart: Option<Version>,
    /// The image that our last patch put there, as that patch noted it.
    pub patched: Option<String>,
    /// The image that our last patch replaced, as that patch noted it.
    pub former: Option<String>,
    /// The image that the chart's values name, as the chart noted it.
    pub chart_image: Option<String>,
    /// The same at the time of our last patch, as that patch noted it.
    pub chart_image_then: Option<String>,
    /// The value of the last resume by a person.
    pub resumed: Option<String>,
    /// The manager that `managedFields` names for the image of our container, and when it wrote.
    pub manager: Option<(String, Option<Timestamp>)>,
    /// Pulls the image at every start of a pod.
    pub pulls_always: bool,
    /// All its pods run the template, are ready, and no others are left.
    pub is_rolled_out: bool,
    /// The reason why its rollout does not progress, if its status has one.
    pub stuck: Option<String>,
}

/// One of the pods that the Deployment wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Its name.
    pub pod: String,
    /// The digests that the runtime reports as running: of an index or of a manifest.
    pub digests: BTreeSet<ImageDigest>,
    /// The platform of its machine, if that is known.
    pub platform: Option<Platform>,
    /// It is ready.
    pub is_ready: bool,
}

/// The ReplicaSet of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialSet {
    /// Tells it from one of the same name that was there before.
    pub uid: String,
    /// The digest that it runs.
    pub digest: ImageDigest,
    /// It is being deleted, and is there until its pod has ended.
    pub is_going: bool,
    /// Its pod, if there is one that is not ending.
    pub pod: Option<TrialPod>,
}

/// The pod of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPod {
    /// Its name.
    pub name: String,
    /// Tells it from one of the same name that was there before.
    pub uid: String,
    /// How far it is.
    pub state: PodState,
    /// How often its container was started again.
    pub restarts: u32,
}

/// How far a pod is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// No node was found for it, with the reason that its condition gives.
    Unscheduled(String),
    /// Its image cannot be pulled, with the reason.
    NotPulled(String),
    /// It is on its way: pulling, starting, or not ready yet.
    Starting,
    /// It is ready.
    Ready,
    /// Its container has ended and is to be started again, with the reason.
    Crashed(String),
    /// It has ended for good, was evicted, or its node is gone.
    Lost(String),
}

/// The lease, as our own part in the election knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseSight {
    /// The pod that holds it, if any does.
    pub holder: Option<String>,
    /// The version that is entitled to it.
    pub entitled: Option<ImageDigest>,
}
