//! The events that the operator takes in. The list is closed: everything that can wake the core is listed here.

mod finished;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use self::finished::{Finished, HookRan};

use channel_core::trial::record::Ruling;
use names::{HookName, ModuleName, MonitorId};

use super::health::HealthSight;
use super::provenance::{Made, Provenance};
use crate::digest::Digest;
use crate::failure::Failure;
use crate::hook::config::WatchEvent;
use crate::module::outline::ValuesFiles;
use crate::module::{Edition, Inventory, Module, Origin};
use crate::object::{ObjectName, ObjectView};
use crate::release::{ConfigTrace, Status};
use crate::review::request::ReviewRequest;
use crate::values::Given;
use crate::values::trial_sections::TrialSections;

/// An event of the outside world, as the core gets it.
#[derive(Debug, Clone)]
pub enum Event {
    /// The directories were read at the start.
    InventoryChanged(Inventory),
    /// The directory of one module was read again, or for the first time. The module begins a new life with its contents.
    ModuleRead(Edition, Origin, Box<Module>),
    /// The kept copies of all modules with sources were read. The first converge waits for this.
    CopiesRead,
    /// The ConfigMap was read or changed.
    ConfigChanged(ConfigRead),
    /// The API server's history went back, as after a restore of its store from a backup. Versions start again at a
    /// lower number, and in the restored history the objects that were read before may never have existed. The next
    /// reading tells the current state.
    HistoryWentBack,
    /// A job ended.
    JobFinished(Finished),
    /// An object changed in a part that a binding looks at.
    ObjectChanged(ObjectChange),
    /// The API server asks a question that our hooks answer.
    ReviewRequested(ReviewId, Asked),
    /// A published webhook configuration was changed, by another program or by the operator itself.
    WebhooksTouched,
    /// A release was damaged, or is whole again.
    ReleaseSeen(ReleaseSight),
    /// The statuses of a release's objects say something else than before.
    HealthSeen(HealthSight),
    /// A person confirms removals of releases by name. Only removals that are held at this moment count.
    PurgeConfirmed(BTreeSet<String>),
    /// A person confirms that the lost configuration is gone for good. The modules go on with the configuration that is left.
    LossConfirmed,
    /// The stage of the last trial, of this version or of another. It may be reported any number of times.
    TrialSeen(TrialStage),
    /// Another replica leads, so that there is time for the preparations of a standby.
    LedByAnother,
    /// This replica won the leadership and leads from now on.
    Elected,
    /// This replica does not lead any more. Another replica may lead soon.
    Deposed,
    /// The time that `poll_timeout` named has come.
    TimerFired,
    /// The process was asked to stop.
    ShutdownRequested,
}

/// The stage of a version's trial, as its record says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialStage {
    /// The trial has not ended.
    Open,
    /// The trial has ended with this ruling.
    Ended(Ruling),
}

/// The number of one question of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReviewId(pub u64);

/// A request for a review, from the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The path of the HTTP request.
    pub path: String,
    /// The decoded request.
    pub request: ReviewRequest,
    /// The time for which the API server waits for an answer.
    pub within: Duration,
}

/// The state of a release, as its watch found it. It is reported whenever it differs from the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSight {
    /// The release's name.
    pub release: String,
    /// The damage; `None` if the release is whole.
    pub drift: Option<Drift>,
}

/// The damage of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// This object is gone, or has lost our labels: `namespace/Kind/name`.
    Absent(String),
    /// Another program or a person changed a field of an object.
    Altered {
        /// The object as `namespace/Kind/name`.
        object: String,
        /// The first of the changed fields.
        field: String,
    },
    /// The newest revision is not `deployed`. `None`: the release has no revision any more.
    Status(Option<Status>),
}

/// One change of one object, reported by the monitor of a binding. A change outside of the part that the binding looks at
/// is not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectChange {
    /// The monitor.
    pub monitor: MonitorId,
    /// The number of this change among the monitor's changes. A snapshot carries the number of the last change that it
    /// includes.
    pub seq: u64,
    /// The kind of change.
    pub event: WatchEvent,
    /// The object.
    pub name: ObjectName,
    /// The object as the binding's filter shows it; for a deleted object, its last state.
    pub view: ObjectView,
    /// `metadata.resourceVersion` after the change; 0 if it is unknown.
    pub version: u64,
    /// The release that the object's annotations name.
    pub release: Option<ModuleName>,
    /// Whether a tool that hooks call, such as kubectl, made the last write of the object.
    pub by_tool: bool,
}

/// An object that a hook's patch wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectWritten {
    /// The object.
    pub object: ObjectName,
    /// `metadata.resourceVersion` after the write; `None` if the object was deleted.
    pub version: Option<u64>,
    /// The digest of the operation.
    pub content: Digest,
}

/// The result of a read of our ConfigMap. A read that failed never becomes an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigRead {
    /// The API server says that there is no ConfigMap.
    Missing,
    /// The ConfigMap's `data`, at a version.
    Present {
        /// `metadata.resourceVersion` as a number; 0 if it is not a number.
        version: u64,
        /// The keys of the ConfigMap, each with its text.
        data: BTreeMap<String, String>,
        /// The annotations that tell how the ConfigMap was made.
        provenance: Provenance,
    },
}

/// The reason for which the CRDs of a module could not all be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrdObstacle {
    /// An error.
    Failed(Failure),
    /// These CRDs exist in another form, and this version must not change them before its trial is passed.
    Held(Vec<String>),
}

/// The result of putting back the sections that hooks saved on trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// The keys of the ConfigMap that were set back to their texts from before the trial.
    pub put_back: Vec<String>,
    /// The keys that were not put back, because people have edited them since.
    pub edited: Vec<String>,
    /// The ConfigMap after the write; `None` if nothing was written.
    pub read: Option<ConfigRead>,
}

/// The operator's own state, kept in one Secret. Losing the Secret loses no release.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedState {
    /// The last good texts of the ConfigMap, by key; `None` if they were never saved, or cannot be read.
    pub last_good: Option<BTreeMap<String, String>>,
    /// How the ConfigMap was made, if a program made it.
    pub made: Option<Made>,
    /// The outlines of the common values files when a converge last finished; `None` if they were never saved.
    pub values_files: Option<ValuesFiles>,
    /// The sections that hooks saved on trial and that were neither put back nor forgotten.
    pub trial_sections: TrialSections,
    /// The values that global hooks gave in their last good runs, by hook.
    pub given: BTreeMap<HookName, Given>,
}

/// A release, from its newest revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSummary {
    /// The release's name. For a release of ours it is the module's name.
    pub name: String,
    /// Whether the release carries our labels, or the labels of the original operator.
    pub ours: bool,
    /// The trace of the ConfigMap that the release was made with; `None` if it carries no trace.
    pub config: Option<ConfigTrace>,
}

/// The resources that a child process used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Wall-clock time from spawn to exit.
    pub wall: Duration,
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Peak resident memory in bytes.
    pub max_rss: u64,
}

/// The decision of an enabled script about its module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptAnswer {
    /// The decision in `MODULE_ENABLED_RESULT`.
    pub enabled: bool,
    /// The text in `MODULE_ENABLED_REASON`, if there is one.
    pub reason: Option<String>,
    /// The resources that the process used.
    pub usage: Usage,
}

/// The result of a job that brought a release to the state of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The work that helm had to do to bring the release to its values.
    pub action: SyncAction,
    /// The revision that is deployed now; 0 for a module without a chart.
    pub revision: u32,
    /// Objects that another program had made and the release took over. They stay when the release is removed.
    pub adopted: Vec<String>,
    /// Objects that helm's record named by kinds that are no longer served, each with what became of it.
    pub amended: Vec<String>,
    /// Objects that were deleted and created anew, each with the immutable field that made this necessary.
    pub replaced: Vec<String>,
    /// Damaged records of helm, each with its remedy.
    pub repaired: Vec<String>,
    /// Warnings about objects of the release.
    pub remarks: Vec<String>,
}

impl Synced {
    /// The result of a job that took over, rewrote and replaced nothing.
    pub fn plain(action: SyncAction, revision: u32) -> Self {
        Self {
            action,
            revision,
            adopted: Vec::new(),
            amended: Vec::new(),
            replaced: Vec::new(),
            repaired: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

/// The changes of helm's records before a removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reworked {
    /// Objects that helm's record named by kinds that are no longer served, each with what became of it.
    pub amended: Vec<String>,
    /// Damaged records of helm, each with its remedy.
    pub repaired: Vec<String>,
}

/// The work that a successful sync did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAction {
    /// None: no input had changed, so that no child process was started.
    Unchanged,
    /// The chart was rendered, and the manifest was the same: no new revision.
    Recorded,
    /// helm made a new revision.
    Upgraded,
}

/// The result of a write of one section.
#[derive(Debug, Clone, PartialEq)]
pub enum Saved {
    /// The section was written.
    Written {
        /// `metadata.resourceVersion` after the write.
        version: u64,
        /// There was no ConfigMap, and the write created one with this key alone.
        created: bool,
    },
    /// The ConfigMap had been changed meanwhile, so nothing was written. This is its state.
    Conflict(ConfigRead),
}
