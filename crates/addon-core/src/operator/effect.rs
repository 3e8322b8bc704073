//! The effects that the operator asks of the world. Closed: the driver carries out these and nothing else.

mod notice;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::notice::{HeldFor, Notice};

use super::edit::Edit;
use super::event::ReviewId;
use super::policy::OnTrial;
use super::provenance::Made;
use super::ticket::{AskFor, AtHead, RunFor, Ticket, VetFor, WatchFor};
use crate::artifact::trial::record::Ruling;
use crate::failure::Failure;
use crate::hook::cause::Cause;
use crate::hook::config::{ConfigVersion, KubernetesBinding};
use crate::hook::context::BindingContext;
use crate::module::outline::ValuesFiles;
use crate::name::{BindingName, HookId, ModuleName, MonitorId, Owner};
use crate::release::ConfigTrace;
use crate::review::reply::Reply;
use crate::review::routes::Routes;
use crate::values::HookDocument;
use crate::values::section::Maintenance;
use crate::values::vetted::{Unvetted, Vetting};

/// The name of one running job, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Start it now; its end is told with `JobFinished` and the job's ticket, whatever happens.
    StartJob(Job),
    /// End it early; its end is still told.
    CancelJob(JobId),
    /// Tell people: a log record, metrics, later Events.
    Tell(Notice),
    /// Answer the API server.
    Reply(ReviewId, Reply),
    /// End these monitors; what is still on its way from them is ignored.
    StopMonitors(Vec<MonitorId>),
    /// Everything is stopped; the process may end.
    Exit,
    /// Nothing can be done before a person mends this; the process ends with it as its error.
    GiveUp(Failure),
}

/// A piece of work for the shell. All have a deadline there; none retries. Its last part is the ticket that its outcome brings
/// back.
#[derive(Debug, Clone)]
pub enum Job {
    /// Read our state Secret.
    LoadState(Ticket<()>),
    /// Make what the state Secret holds of the ConfigMap this.
    SaveState {
        /// ConfigMap key to text.
        last_good: BTreeMap<String, String>,
        /// The ConfigMap, if a program made it.
        made: Option<Made>,
        /// Of this job.
        ticket: Ticket<()>,
    },
    /// Keep in the state Secret what the values files say.
    SaveValuesFiles(ValuesFiles, Ticket<()>),
    /// Read the modules directories again.
    ReadDirectories(Ticket<()>),
    /// List the releases of the namespace from their Secrets.
    ListReleases(Ticket<()>),
    /// Put the CRDs of these modules into the cluster and wait until they can be used.
    EnsureCrds {
        /// The modules that bring them.
        modules: Vec<ModuleName>,
        /// On trial one that is there stays as it is, and is named.
        on_trial: OnTrial,
        /// Of this job.
        ticket: Ticket<AtHead>,
    },
    /// Render the charts of these modules, and make what they say of conversion webhooks be in the cluster.
    EnsureConversions(Vec<Conversions>, Ticket<AtHead>),
    /// Watch the releases of the namespace and the objects of those that are ours, for the rest of this life.
    WatchReleases {
        /// These are to be there; one that is not is told as one that has gone.
        expected: Vec<ModuleName>,
        /// Of this job.
        ticket: Ticket<()>,
    },
    /// Ask every hook of the owner for its configuration.
    ConfigureHooks(Owner, Ticket<AskFor>),
    /// Make the API server ask our hooks about these, and about nothing else.
    PublishWebhooks(Arc<Routes>, Ticket<()>),
    /// Hold values against schemas that take their time.
    Vet(Unvetted, Ticket<VetFor>),
    /// Say what somebody who edits the ConfigMap should know.
    JudgeEdit(Box<Edit>, Ticket<ReviewId>),
    /// Resolve, list and filter for all kubernetes bindings of a hook, and watch on. All of them, or none is left running.
    StartMonitors {
        /// Whose bindings.
        hook: HookId,
        /// In the order of the configuration.
        monitors: Vec<MonitorStart>,
        /// Of this job.
        ticket: Ticket<WatchFor>,
    },
    /// Run one hook with these contexts.
    RunHook(HookRun, Ticket<RunFor>),
    /// Ask a module's enabled script.
    RunEnabledScript {
        /// Whose script.
        module: ModuleName,
        /// `VALUES_PATH`: as for a hook, with `global.enabledModules`.
        values: Arc<Value>,
        /// `CONFIG_VALUES_PATH`.
        config_values: HookDocument,
        /// Of this job.
        ticket: Ticket<ModuleName>,
    },
    /// Make the release what these values render to.
    SyncRelease {
        /// Whose chart.
        module: ModuleName,
        /// `{"global": …, "fooBar": …}`.
        values: HookDocument,
        /// The ConfigMap's part of these values, in the same form.
        asked: HookDocument,
        /// What is to be held against the schema before anything else, unless that has been done.
        vetting: Option<Box<Vetting>>,
        /// Whether people have its objects in their own hands: then it is marked so once, and left alone.
        maintenance: Maintenance,
        /// The trace of the ConfigMap that the release is marked with.
        config: ConfigTrace,
        /// Of this job.
        ticket: Ticket<AtHead>,
    },
    /// Uninstall a release that is ours; one that is absent is a success.
    DeleteRelease {
        /// The release's name: a module's, or that of a module which is gone.
        release: String,
        /// Of this job.
        ticket: Ticket<AtHead>,
    },
    /// Replace one key of the ConfigMap, if that key still holds what the base says.
    SaveConfig {
        /// `global` or `fooBar`.
        key: String,
        /// The whole new section.
        text: String,
        /// What the key held when the section was computed; `None`: the key was absent.
        base: Option<String>,
        /// There was no ConfigMap: make one. Otherwise one that has vanished is a conflict.
        create: bool,
        /// On trial it is noted before the write what the key held, so that it can be put back.
        on_trial: OnTrial,
        /// Of this job.
        ticket: Ticket<Owner>,
    },
    /// Do with what hooks saved on trial what follows from its end, and forget it: after one that was not passed, put back
    /// what people have not edited since.
    SettleSections(Ruling, Ticket<()>),
}

/// A chart whose conversion webhooks are to be there.
#[derive(Debug, Clone)]
pub struct Conversions {
    /// Whose chart.
    pub module: ModuleName,
    /// `{"global": …, "fooBar": …}`.
    pub values: HookDocument,
    /// What is to be held against the schema before anything else, unless that has been done.
    pub vetting: Option<Box<Vetting>>,
}

/// A monitor to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorStart {
    /// Its name from now on.
    pub id: MonitorId,
    /// What it watches, and how it shows objects.
    pub binding: KubernetesBinding,
}

/// Everything needed to run one hook.
#[derive(Debug, Clone)]
pub struct HookRun {
    /// Which hook.
    pub hook: HookId,
    /// The form of its configuration, which is that of its contexts too.
    pub version: ConfigVersion,
    /// `BINDING_CONTEXT_PATH`.
    pub contexts: Vec<BindingContext>,
    /// The monitors whose snapshots the contexts want, each to be read once, right before the process starts. A wanted
    /// name without a monitor is an empty snapshot.
    pub snapshots: BTreeMap<BindingName, MonitorId>,
    /// `VALUES_PATH`.
    pub values: HookDocument,
    /// `CONFIG_VALUES_PATH`.
    pub config_values: HookDocument,
    /// After this long the process group is ended and the run has failed.
    pub deadline: Duration,
    /// How the run is labelled.
    pub labels: HookLabels,
}

/// The cause of a hook run, and its labels in logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLabels {
    /// The kind of binding that set it off.
    pub cause: Cause,
    /// The binding's own name, if it has one.
    pub binding_name: String,
    /// The queue it runs in, empty for none.
    pub queue: String,
    /// What set the run off: `OperatorStartup` during the first converge, else empty.
    pub activation: &'static str,
}
