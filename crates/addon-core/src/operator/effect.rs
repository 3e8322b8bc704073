//! What the operator asks of the world. Closed: the driver carries out these and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::event::{ReviewId, SyncAction, Usage};
use crate::failure::Failure;
use crate::hook::config::{ConfigVersion, KubernetesBinding};
use crate::hook::context::BindingContext;
use crate::name::{BindingName, HookId, ModuleName, MonitorId, Owner, QueueName};
use crate::review::reply::Reply;
use crate::review::routes::Routes;
use crate::values::HookDocument;

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
    /// Start it now; its end is told with `JobFinished`, whatever happens.
    StartJob(JobId, Job),
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

/// A piece of work for the shell. All have a deadline there; none retries.
#[derive(Debug, Clone)]
pub enum Job {
    /// Read our state Secret.
    LoadState,
    /// Make the last good entries in the state Secret these.
    SaveState {
        /// ConfigMap key to text.
        last_good: BTreeMap<String, String>,
    },
    /// List the releases of the namespace from their Secrets.
    ListReleases,
    /// Ask every hook of the owner for its configuration.
    ConfigureHooks(Owner),
    /// Make the API server ask our hooks about these, and about nothing else.
    PublishWebhooks(Arc<Routes>),
    /// Resolve, list and filter for all kubernetes bindings of a hook, and watch on. All of them, or none is left running.
    StartMonitors {
        /// Whose bindings.
        hook: HookId,
        /// In the order of the configuration.
        monitors: Vec<MonitorStart>,
    },
    /// Run one hook with these contexts.
    RunHook(HookRun),
    /// Ask a module's enabled script.
    RunEnabledScript {
        /// Whose script.
        module: ModuleName,
        /// `VALUES_PATH`: as for a hook, with `global.enabledModules`.
        values: Arc<Value>,
        /// `CONFIG_VALUES_PATH`.
        config_values: HookDocument,
    },
    /// Make the release what these values render to.
    SyncRelease {
        /// Whose chart.
        module: ModuleName,
        /// `{"global": …, "fooBar": …}`.
        values: HookDocument,
    },
    /// Uninstall a release that is ours; one that is absent is a success.
    DeleteRelease {
        /// The release's name: a module's, or that of a module which is gone.
        release: String,
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
    },
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

/// The labels of a hook run in logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLabels {
    /// The binding's kind: `onStartup`, `schedule`, `beforeHelm`, …
    pub binding: &'static str,
    /// The binding's own name, if it has one.
    pub binding_name: String,
    /// The queue it runs in, empty for none.
    pub queue: String,
    /// What set the run off: `OperatorStartup` during the first converge, else empty.
    pub activation: &'static str,
}

/// Something worth telling a person, and the source of our own metrics.
#[derive(Debug, Clone)]
pub enum Notice {
    /// All hooks of the owner are configured; `bindings` counts them by hook.
    HooksConfigured {
        /// Whose.
        owner: Owner,
        /// Hook name and number of its bindings.
        bindings: Vec<(HookId, usize)>,
    },
    /// A hook is about to run.
    HookStarted {
        /// Which.
        hook: HookId,
        /// How it is labelled.
        labels: HookLabels,
    },
    /// A hook run succeeded.
    HookSucceeded {
        /// Which.
        hook: HookId,
        /// How it is labelled.
        labels: HookLabels,
        /// What it used.
        usage: Usage,
    },
    /// A hook run failed.
    HookFailed {
        /// Which.
        hook: HookId,
        /// How it is labelled.
        labels: HookLabels,
        /// Why.
        failure: Failure,
        /// Its binding allows that; it is not retried.
        allowed: bool,
        /// How often in a row, this time included.
        attempts: u32,
        /// When it is tried again.
        retry_in: Option<Duration>,
    },
    /// Two bindings claim to be one webhook: the first of them is asked.
    ReviewClash {
        /// Which, and whose.
        failure: Failure,
    },
    /// A hook waits for its first runs; its objects are watched.
    MonitorsStarted {
        /// Which hook.
        hook: HookId,
        /// From job start to end.
        took: Duration,
    },
    /// The objects of a hook cannot be watched; it is retried.
    MonitorsFailed {
        /// Which hook.
        hook: HookId,
        /// Why.
        failure: Failure,
        /// How often in a row.
        attempts: u32,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// The schedules of a hook count from now on.
    SchedulesEnabled {
        /// Which hook.
        hook: HookId,
    },
    /// First runs are over: from now on changes reach the hook.
    EventsUnlocked {
        /// Which hook.
        hook: HookId,
        /// Which of its bindings.
        bindings: Vec<BindingName>,
    },
    /// An enabled script answered.
    ScriptAnswered {
        /// Whose script.
        module: ModuleName,
        /// What it used.
        usage: Usage,
    },
    /// An enabled script failed: the module stays as it is until it answers.
    ScriptFailed {
        /// Whose script.
        module: ModuleName,
        /// Why.
        failure: Failure,
        /// When it is asked again.
        retry_in: Duration,
    },
    /// A module is switched on or off, with the source that decided.
    ModuleSwitched {
        /// Which.
        module: ModuleName,
        /// On or off.
        enabled: bool,
        /// Who said so, and why.
        reason: String,
    },
    /// A module reached the state its values want.
    ModuleReady {
        /// Which.
        module: ModuleName,
        /// What the release needed; `None` without a chart.
        action: Option<SyncAction>,
        /// From the start of the run.
        took: Duration,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
    },
    /// A run of a module failed; it is retried, the others go on.
    ModuleFailed {
        /// Which.
        module: ModuleName,
        /// What was being done.
        step: &'static str,
        /// Why.
        failure: Failure,
        /// How often in a row.
        attempts: u32,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Helm work of a module ended well after this long.
    HelmFinished {
        /// Which.
        module: ModuleName,
        /// What had to be done.
        action: SyncAction,
        /// From job start to end.
        took: Duration,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
    },
    /// A module's release and hooks are gone.
    ModuleDeleted {
        /// Which.
        module: ModuleName,
    },
    /// Removing a module failed; it is retried.
    ModuleDeleteFailed {
        /// Which.
        module: ModuleName,
        /// Why.
        failure: Failure,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// A release of ours without a module was removed.
    ReleasePurged {
        /// Its name.
        release: String,
    },
    /// Removing it failed; it is retried.
    PurgeFailed {
        /// Its name.
        release: String,
        /// Why.
        failure: Failure,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Releases without a module that are not removed, and why.
    PurgeHeld {
        /// Their names.
        releases: Vec<String>,
        /// Why they stay.
        reason: String,
    },
    /// A module cannot be run as it is declared.
    ModuleBlocked {
        /// Which.
        module: ModuleName,
        /// Why: a cycle, a missing name, files that cannot be read.
        failure: Failure,
    },
    /// A converge began.
    ConvergeStarted {
        /// What set it off.
        reason: String,
    },
    /// A converge ended.
    ConvergeFinished {
        /// What had set it off.
        reason: String,
        /// How long it took.
        took: Duration,
        /// It was the first: the operator is ready now.
        first: bool,
        /// Modules that have not succeeded yet.
        failing: Vec<ModuleName>,
    },
    /// A key of the ConfigMap cannot be used; its last good value stays in force.
    ConfigRejected {
        /// Which key.
        key: String,
        /// What is wrong, and where.
        message: String,
    },
    /// The ConfigMap changed and was taken over.
    ConfigApplied {
        /// The keys that mean something else now.
        keys: Vec<String>,
    },
    /// The ConfigMap does not exist; what was last good stays in force.
    ConfigMissing,
    /// A section for a module that does not exist was kept and ignored.
    ConfigUnknown {
        /// The keys.
        keys: Vec<String>,
    },
    /// Something of our own that must succeed before we go on failed; it is retried.
    StepFailed {
        /// What was attempted.
        step: String,
        /// Why it failed.
        failure: Failure,
        /// It failed for the same reason the time before.
        again: bool,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// Tasks left a queue without being run.
    TasksDropped {
        /// From which queue.
        queue: QueueName,
        /// How many.
        count: usize,
        /// Why.
        reason: &'static str,
    },
    /// A queue had grown too long: tasks of one hook became one, and no context without a group was lost.
    TasksCompacted {
        /// In which queue.
        queue: QueueName,
        /// Whose tasks.
        hook: HookId,
        /// How many went into the earliest one.
        count: usize,
    },
    /// How long a task had waited when it began.
    TaskWaited {
        /// In which queue.
        queue: QueueName,
        /// The task's hook, if it is one.
        hook: Option<HookId>,
        /// The task's module, if it has one.
        module: Option<ModuleName>,
        /// The task's binding or kind.
        binding: String,
        /// How long.
        waited: Duration,
    },
    /// The shutdown began; what still runs is given time.
    ShuttingDown {
        /// How many jobs still run.
        running: usize,
    },
}
