//! The effects that the operator asks for. The list is closed: the driver carries out these and nothing else.

mod notice;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::notice::{HealthNews, HeldFor, Notice, RecordCause, Slowed, StandIn};

use channel_core::trial::record::Ruling;
use names::{BindingName, HookId, HookName, ModuleName, MonitorId, Owner};

use super::edit::Edit;
use super::event::ReviewId;
use super::policy::OnTrial;
use super::provenance::Made;
use super::ticket::{AskFor, AtHead, RunFor, Ticket, VetFor, WatchFor};
use crate::failure::Failure;
use crate::hook::cause::Cause;
use crate::hook::config::{ConfigVersion, KubernetesBinding};
use crate::hook::context::BindingContext;
use crate::module::Edition;
use crate::module::outline::ValuesFiles;
use crate::release::ConfigTrace;
use crate::release::returned::Unhealthy;
use crate::review::reply::Reply;
use crate::review::routes::Routes;
use crate::values::section::Maintenance;
use crate::values::vetted::{Unvetted, Vetting};
use crate::values::{Given, HookDocument, HookSecrecy};

/// The number of a job. It is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An action that the core asks the driver to carry out.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Start this job. The driver reports its end with `JobFinished` and the job's ticket in every case.
    StartJob(Job),
    /// Cancel the job with this id. The end of the job is still reported.
    CancelJob(JobId),
    /// Report this to people: a log record, metrics, Kubernetes Events.
    Tell(Notice),
    /// Reply to a review request of the API server.
    Reply(ReviewId, Reply),
    /// Use the files of this reading for everything that starts from now on.
    TakeUpFiles(ModuleName, Edition),
    /// A run of the module with the files of this reading succeeded, or the last good files should return in their
    /// place.
    JudgeFiles(ModuleName, Edition, FilesVerdict),
    /// Stop these monitors. Changes that these monitors still report are ignored.
    StopMonitors(Vec<MonitorId>),
    /// End the process: nothing runs any more.
    Exit,
    /// End the process with this error, which a person has to mend first.
    GiveUp(Failure),
}

/// The judgement on files that came from a module's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesVerdict {
    /// A run of the module succeeded with them.
    Good,
    /// The files have a mistake, or runs failed with them one after another although the files before them did well.
    /// The text is the last error.
    Bad(String),
}

/// A piece of work for the shell. The shell gives each job a deadline and retries none. The last part of each variant is
/// the ticket that the outcome brings back.
#[derive(Debug, Clone)]
pub enum Job {
    /// Read our state Secret.
    LoadState(Ticket<()>),
    /// Write these texts of the ConfigMap into the state Secret, in the place of the old ones.
    SaveState {
        /// The texts by key of the ConfigMap.
        last_good: BTreeMap<String, String>,
        /// How the ConfigMap was made, if a program made it.
        made: Option<Made>,
        /// The ticket of this job.
        ticket: Ticket<()>,
    },
    /// Write the outlines of the values files into the state Secret.
    SaveValuesFiles(ValuesFiles, Ticket<()>),
    /// Write the values that global hooks have given into the state Secret, by hook.
    SaveGiven(BTreeMap<HookName, Given>, Ticket<()>),
    /// Read the modules directories again.
    ReadDirectories(Ticket<()>),
    /// List the releases of the namespace from their Secrets.
    ListReleases(Ticket<()>),
    /// Install the CRDs of these modules and wait until they can be used.
    EnsureCrds {
        /// The modules whose CRDs are installed.
        modules: Vec<ModuleName>,
        /// On trial an existing CRD is not changed, but named in the outcome.
        on_trial: OnTrial,
        /// The ticket of this job.
        ticket: Ticket<AtHead>,
    },
    /// Render the charts of these modules, and publish the conversion webhooks that they describe.
    EnsureConversions(Vec<Conversions>, Ticket<AtHead>),
    /// Watch the releases of the namespace and the objects of our releases, for the rest of this life.
    WatchReleases {
        /// The releases that should exist. A missing one is reported as gone.
        expected: Vec<ModuleName>,
        /// The ticket of this job.
        ticket: Ticket<()>,
    },
    /// Ask every hook of the owner for its configuration.
    ConfigureHooks(Owner, Ticket<AskFor>),
    /// Configure the API server so that it asks our hooks about these routes and about nothing else.
    PublishWebhooks(Arc<Routes>, Ticket<()>),
    /// Check values against schemas whose checks take long.
    Vet(Unvetted, Ticket<VetFor>),
    /// Judge an edit of the ConfigMap.
    JudgeEdit(Box<Edit>, Ticket<ReviewId>),
    /// Resolve, list and filter the objects of all kubernetes bindings of a hook, and watch them. If one binding fails,
    /// none is watched.
    StartMonitors {
        /// The hook whose bindings the monitors serve.
        hook: HookId,
        /// The monitors in the order of the configuration.
        monitors: Vec<MonitorStart>,
        /// The ticket of this job.
        ticket: Ticket<WatchFor>,
    },
    /// Run one hook with the given binding contexts.
    RunHook(HookRun, Ticket<RunFor>),
    /// Run a module's enabled script.
    RunEnabledScript {
        /// The module of the script.
        module: ModuleName,
        /// The document in `VALUES_PATH`: as for a hook, with `global.enabledModules`.
        values: Arc<Value>,
        /// The document in `CONFIG_VALUES_PATH`.
        config_values: HookDocument,
        /// The ticket of this job.
        ticket: Ticket<ModuleName>,
    },
    /// Bring a module's release to the state that these values render to.
    SyncRelease {
        /// The module of the chart.
        module: ModuleName,
        /// `{"global": …, "fooBar": …}`.
        values: HookDocument,
        /// The part of `values` that the ConfigMap holds, in the form of `values`.
        asked: HookDocument,
        /// The check of these values against the schema that comes first; `None` if it was done.
        vetting: Option<Box<Vetting>>,
        /// Whether people maintain the module's objects. The release is then marked so once, and not touched otherwise.
        maintenance: Maintenance,
        /// The trace of the ConfigMap, which is written to the release.
        config: ConfigTrace,
        /// The revision whose objects do not do their work, if the module returns from it.
        unhealthy: Option<Unhealthy>,
        /// The ticket of this job.
        ticket: Ticket<AtHead>,
    },
    /// Uninstall a release of ours. An absent release is a success.
    DeleteRelease {
        /// The release's name, which is the name of its module, even if that module is gone.
        release: String,
        /// The ticket of this job.
        ticket: Ticket<AtHead>,
    },
    /// Replace one key of the ConfigMap, if that key still holds the text `base`.
    SaveConfig {
        /// `global` or `fooBar`.
        key: String,
        /// The new text of the section.
        text: String,
        /// The text of the key from which the new one was made; `None` if the key was absent.
        base: Option<String>,
        /// Whether to create the ConfigMap, because there was none. If false, an absent ConfigMap is a conflict.
        create: bool,
        /// On trial the old text of the key is saved before the write, so that it can be put back.
        on_trial: OnTrial,
        /// The ticket of this job.
        ticket: Ticket<Owner>,
    },
    /// Put back or forget the sections that hooks saved in the ConfigMap on trial. After a trial that was not passed,
    /// the old texts are put back, except in sections that people have edited since. The saved old texts are deleted in
    /// any case.
    SettleSections(Ruling, Ticket<()>),
}

/// A chart whose conversion webhooks are to be published.
#[derive(Debug, Clone)]
pub struct Conversions {
    /// The module of the chart.
    pub module: ModuleName,
    /// `{"global": …, "fooBar": …}`.
    pub values: HookDocument,
    /// The check of these values against the schema that comes first; `None` if it was done.
    pub vetting: Option<Box<Vetting>>,
}

/// A monitor to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorStart {
    /// The id of the monitor.
    pub id: MonitorId,
    /// The binding that the monitor serves: the objects to watch, and the filter that shows them.
    pub binding: KubernetesBinding,
}

/// All inputs of one run of a hook.
#[derive(Debug, Clone)]
pub struct HookRun {
    /// The hook.
    pub hook: HookId,
    /// The version of the hook's configuration format, which decides the format of binding contexts.
    pub version: ConfigVersion,
    /// The contexts in `BINDING_CONTEXT_PATH`.
    pub contexts: Vec<BindingContext>,
    /// The monitors whose snapshots the contexts include. Each snapshot is read once, right before the process starts. A
    /// name without a monitor gets an empty snapshot.
    pub snapshots: BTreeMap<BindingName, MonitorId>,
    /// The document in `VALUES_PATH`.
    pub values: HookDocument,
    /// The document in `CONFIG_VALUES_PATH`.
    pub config_values: HookDocument,
    /// The rules by which these values are masked where people see them.
    pub secrecy: HookSecrecy,
    /// The time after which the process group is killed and the run counts as failed.
    pub deadline: Duration,
    /// The labels of the run in logs and metrics.
    pub labels: HookLabels,
}

/// The cause of a hook run, and its labels in logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLabels {
    /// The kind of the binding that caused the run.
    pub cause: Cause,
    /// The name of the binding that caused the run; empty if the binding has no name.
    pub binding_name: String,
    /// The queue of the run; empty for a run outside of queues.
    pub queue: String,
    /// `OperatorStartup` during the first converge, else empty.
    pub activation: &'static str,
}
