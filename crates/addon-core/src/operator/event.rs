//! The events of the world. Closed: every event that can wake the core is listed here.

mod finished;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use self::finished::{Finished, HookRan};

use super::provenance::{Made, Provenance};
use crate::artifact::trial::record::Ruling;
use crate::artifact::trial::sections::TrialSections;
use crate::failure::Failure;
use crate::hook::config::WatchEvent;
use crate::module::Inventory;
use crate::module::outline::ValuesFiles;
use crate::name::MonitorId;
use crate::object::{ObjectName, ObjectView};
use crate::release::{ConfigTrace, Status};
use crate::review::request::ReviewRequest;

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The directories were read, at start or again.
    InventoryChanged(Inventory),
    /// The ConfigMap was read or changed.
    ConfigChanged(ConfigRead),
    /// The API server's history went back, as after its store was restored from a backup: versions count from an older one,
    /// and what was read before may never have been. The next reading says what is true now.
    HistoryWentBack,
    /// A job ended.
    JobFinished(Finished),
    /// An object changed in a way that a binding looks at.
    ObjectChanged(ObjectChange),
    /// The API server asks our hooks something.
    ReviewRequested(ReviewId, Asked),
    /// What was published for webhooks was changed, by somebody else or by ourselves.
    WebhooksTouched,
    /// What stands in the cluster of a release was damaged, or is whole again.
    ReleaseSeen(ReleaseSight),
    /// A person wants these releases removed, as far as their removal is held at this moment.
    PurgeConfirmed(BTreeSet<String>),
    /// A person says that the configuration is lost for good: what is left of it counts from now on.
    LossConfirmed,
    /// The trial of a version stands so, be it ours or another. Told as often as anybody likes.
    TrialSeen(TrialStage),
    /// Another one leads, so that there is time to find out what leading will take.
    LedByAnother,
    /// We lead from now on.
    Elected,
    /// We do not lead any more: another one may soon.
    Deposed,
    /// The time that `poll_timeout` named has come.
    TimerFired,
    /// The process was asked to stop.
    ShutdownRequested,
}

/// How the trial of a version stands, by its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialStage {
    /// Nobody has judged it yet.
    Open,
    /// It was judged.
    Ended(Ruling),
}

/// One question of the API server, until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReviewId(pub u64);

/// What the API server asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The path of its request.
    pub path: String,
    /// What it is about.
    pub request: ReviewRequest,
    /// How long it waits for an answer.
    pub within: Duration,
}

/// How a release was found by those who watch it. It is told whenever it differs from what was told last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSight {
    /// Its name.
    pub release: String,
    /// What is wrong with it, `None` if nothing is.
    pub drift: Option<Drift>,
}

/// What somebody did to a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// This object is gone, or does not carry our labels any more: `namespace/Kind/name`.
    Absent(String),
    /// Somebody altered this field of one of its objects: `namespace/Kind/name` and the field.
    Altered {
        /// `namespace/Kind/name`.
        object: String,
        /// The first of its fields.
        field: String,
    },
    /// Its newest revision is not `deployed`; `None` if it has none any more.
    Status(Option<Status>),
}

/// One change of one object, as the monitor of a binding tells it: what the binding does not look at is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectChange {
    /// Which monitor.
    pub monitor: MonitorId,
    /// The monitor's count of changes, this one included; a snapshot says up to which one it holds them.
    pub seq: u64,
    /// What happened.
    pub event: WatchEvent,
    /// To what.
    pub name: ObjectName,
    /// How the binding shows it; for a deleted object, its last state.
    pub view: ObjectView,
}

/// What a read of our ConfigMap said. An error is not a read and never becomes an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigRead {
    /// The API server says that there is none.
    Missing,
    /// Its `data`, at a version.
    Present {
        /// `metadata.resourceVersion` as a number, 0 if it is none.
        version: u64,
        /// The keys and their texts.
        data: BTreeMap<String, String>,
        /// Where it comes from.
        provenance: Provenance,
    },
}

/// Why not all CRDs of a module are as it wants them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrdObstacle {
    /// It went wrong.
    Failed(Failure),
    /// These exist in another form, and this version may not change them before its trial is passed.
    Held(Vec<String>),
}

/// The end of what hooks saved on trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The keys of the ConfigMap that hold again what they held before the trial.
    pub put_back: Vec<String>,
    /// Those that stay, as people have edited them since.
    pub edited: Vec<String>,
    /// The ConfigMap as it was written; nothing if it was not.
    pub read: Option<ConfigRead>,
}

/// Our own state, kept in one Secret. Losing it loses no release.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedState {
    /// The last good `data` entries of the ConfigMap, by key; `None` if they were never saved, or cannot be read.
    pub last_good: Option<BTreeMap<String, String>>,
    /// The ConfigMap, if a program made it.
    pub made: Option<Made>,
    /// The common values files when a converge last finished; `None` if nothing is known of them.
    pub values_files: Option<ValuesFiles>,
    /// The sections that hooks saved on trial, as long as nobody has seen to them.
    pub trial_sections: TrialSections,
}

/// A release as its newest revision describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSummary {
    /// Its name, which for ours is the module's.
    pub name: String,
    /// It carries our labels, or those of the original operator.
    pub ours: bool,
    /// The trace of the ConfigMap of which it was made, if it is marked with one.
    pub config: Option<ConfigTrace>,
}

/// What a child process used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// From spawn to exit.
    pub wall: Duration,
    /// CPU in user mode.
    pub user: Duration,
    /// CPU in the kernel.
    pub system: Duration,
    /// Peak resident memory in bytes.
    pub max_rss: u64,
}

/// What an enabled script answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptAnswer {
    /// `MODULE_ENABLED_RESULT`.
    pub enabled: bool,
    /// `MODULE_ENABLED_REASON`, if it gave one.
    pub reason: Option<String>,
    /// What the process used.
    pub usage: Usage,
}

/// How a release came to be as its values want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// What had to be done.
    pub action: SyncAction,
    /// The revision that is deployed now; 0 for a module without a chart.
    pub revision: u32,
    /// The objects of another maker, which stay when the release goes.
    pub adopted: Vec<String>,
}

/// The three ways a sync can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAction {
    /// Nothing that can change the outcome had changed: no child process.
    Unchanged,
    /// It was rendered and came out the same: no new revision.
    Recorded,
    /// helm made a new revision.
    Upgraded,
}

/// How the write of one section ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Saved {
    /// It stands in the cluster, at this version.
    Written {
        /// `metadata.resourceVersion` after the write.
        version: u64,
        /// There was no ConfigMap, and now there is one with this key alone.
        created: bool,
    },
    /// Somebody had changed the ConfigMap meanwhile; nothing was written. This is what it holds.
    Conflict(ConfigRead),
}
