//! Notices: what the operator reports to people through the log and Events, and counts in metrics.

mod causes;

use std::sync::Arc;
use std::time::Duration;

pub use self::causes::{HealthNews, HeldFor, RecordCause, Slowed, StandIn};
use names::{BindingName, HookId, ModuleName, Owner, QueueName};

use super::HookLabels;
use crate::failure::Failure;
use crate::operator::event::{Drift, SyncAction, Usage};

/// One notice to people. Our own metrics are made of notices, too.
#[derive(Debug, Clone)]
pub enum Notice {
    /// These texts of values must not be shown from now on.
    SecretsChanged(Arc<masking::secret::known::Known>),
    /// All hooks of the owner are configured; `bindings` counts them by hook.
    HooksConfigured {
        /// The owner of the hooks.
        owner: Owner,
        /// The hooks, each with the number of its bindings.
        bindings: Vec<(HookId, usize)>,
    },
    /// A hook is about to run.
    HookStarted {
        /// The hook.
        hook: HookId,
        /// The labels of the run.
        labels: HookLabels,
    },
    /// A hook run succeeded.
    HookSucceeded {
        /// The hook.
        hook: HookId,
        /// The labels of the run.
        labels: HookLabels,
        /// The resources that the hook's process used.
        usage: Usage,
    },
    /// A hook run failed.
    HookFailed {
        /// The hook.
        hook: HookId,
        /// The labels of the run.
        labels: HookLabels,
        /// The error.
        failure: Failure,
        /// The time from the start of the job to its failure.
        took: Duration,
        /// The binding has `allowFailure`, so that the run is not retried.
        allowed: bool,
        /// The number of failures in a row, this one included.
        attempts: u32,
        /// The delay before the next attempt.
        retry_in: Option<Duration>,
    },
    /// Two bindings claim the same webhook. The first of them is used. The error names both bindings and their hooks.
    ReviewClash(Failure),
    /// The monitors of a hook have started. Its first runs come next.
    MonitorsStarted {
        /// The hook.
        hook: HookId,
        /// The time from the start of the job to its end.
        took: Duration,
    },
    /// The monitors of a hook could not be started. The start is retried.
    MonitorsFailed {
        /// The hook.
        hook: HookId,
        /// The error.
        failure: Failure,
        /// The number of failures in a row.
        attempts: u32,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// The schedules of a hook count from now on.
    SchedulesEnabled {
        /// The hook.
        hook: HookId,
    },
    /// The first runs of a hook are over. From now on changes reach the hook.
    EventsUnlocked {
        /// The hook.
        hook: HookId,
        /// The bindings of the hook.
        bindings: Vec<BindingName>,
    },
    /// A program causes its own next work too often, so that this work waits.
    Slowed(Slowed),
    /// Values of an earlier run serve for a global hook that fails, or do so no longer.
    StandIn(StandIn),
    /// An enabled script answered.
    ScriptAnswered {
        /// The module of the script.
        module: ModuleName,
        /// The resources that the script's process used.
        usage: Usage,
    },
    /// An enabled script failed. The module stays as it is until the script answers.
    ScriptFailed {
        /// The module of the script.
        module: ModuleName,
        /// The error.
        failure: Failure,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// An enabled script takes long. The other modules go on without its answer.
    ScriptLate {
        /// The module of the script.
        module: ModuleName,
        /// The time for which all modules waited.
        waited: Duration,
    },
    /// A run of a hook or of helm takes long. Its slot is lent to other runs.
    RunLate {
        /// The run; a text for people.
        run: String,
        /// The time since the start of the run.
        waited: Duration,
    },
    /// The run of a module hangs. Other modules go on, and the result of the run counts when it ends.
    ModuleLate {
        /// The module.
        module: ModuleName,
        /// The obstacle that the run waits for; a text for people.
        waits_for: String,
    },
    /// A verdict switched a module on or off.
    ModuleSwitched {
        /// The module.
        module: ModuleName,
        /// Whether the module is on now.
        enabled: bool,
        /// The source of the verdict, and the source's reason.
        reason: String,
    },
    /// A run of a module succeeded.
    ModuleReady {
        /// The module.
        module: ModuleName,
        /// The work that helm had to do; `None` without a chart.
        action: Option<SyncAction>,
        /// The time from the start of the run.
        took: Duration,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
    },
    /// A run of a module failed. It is retried, and other modules go on.
    ModuleFailed {
        /// The module.
        module: ModuleName,
        /// The step of the module's run that failed.
        step: &'static str,
        /// The error.
        failure: Failure,
        /// The time from the start of the run.
        took: Duration,
        /// The time from the start of the release step, if that step failed.
        helm: Option<Duration>,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
        /// The number of failures in a row.
        attempts: u32,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// The helm job of a module succeeded.
    HelmFinished {
        /// The module.
        module: ModuleName,
        /// The work that helm had to do.
        action: SyncAction,
        /// The time from the start of the job to its end.
        took: Duration,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
    },
    /// A release took over objects that another program had made. They stay when the release is removed.
    ObjectsAdopted {
        /// The module, whose name is the release's name.
        module: ModuleName,
        /// The objects.
        objects: Vec<String>,
    },
    /// Helm's records of a release were rewritten. No object was touched.
    RecordRewritten {
        /// The name of the release.
        release: String,
        /// The reason.
        cause: RecordCause,
        /// The objects or records, each with what became of it.
        subjects: Vec<String>,
    },
    /// Objects of a release were deleted and created anew, because one of their fields is immutable and had to change.
    ObjectsReplaced {
        /// The module, whose name is the release's name.
        module: ModuleName,
        /// The objects, each with its field.
        objects: Vec<String>,
    },
    /// A module was removed: its release and its hooks are gone.
    ModuleDeleted {
        /// The module.
        module: ModuleName,
    },
    /// A removal of a module failed. It is retried.
    ModuleDeleteFailed {
        /// The module.
        module: ModuleName,
        /// The error.
        failure: Failure,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// The objects of a module's release do not work, or work again.
    HealthTurned(HealthNews),
    /// Another program or a person damaged a module's release. A run of the module restores it.
    ReleaseDrifted {
        /// The module.
        module: ModuleName,
        /// The damage.
        drift: Drift,
        /// The number of repairs in a row, this one included.
        times: u32,
    },
    /// A release of ours without a module was purged.
    ReleasePurged {
        /// The release's name.
        release: String,
    },
    /// The removal of a release without a module failed. It is retried.
    PurgeFailed {
        /// The release's name.
        release: String,
        /// The error.
        failure: Failure,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// A common values file is missing or empty, and had contents before.
    ValuesFileLost {
        /// The file's path.
        file: String,
        /// The modules whose flags or values were in the file.
        modules: Vec<ModuleName>,
    },
    /// Removals of releases that are held: no source names their modules, or the modules are gone.
    PurgeHeld {
        /// The releases' names.
        releases: Vec<String>,
        /// The reason for which the releases stay.
        reason: HeldFor,
    },
    /// A person confirmed removals that were held.
    PurgeConfirmed {
        /// The releases' names.
        releases: Vec<String>,
    },
    /// A module cannot be run as it is declared.
    ModuleBlocked {
        /// The module.
        module: ModuleName,
        /// The error: a cycle, a missing name, or files that cannot be read.
        failure: Failure,
    },
    /// A module waits for another module, which it depends on and which will not succeed soon.
    ModuleHeld {
        /// The module.
        module: ModuleName,
        /// The other module, and the reason for which it will not succeed.
        reason: String,
    },
    /// A converge began.
    ConvergeStarted {
        /// The event that caused the converge, as a text for people.
        reason: String,
    },
    /// A converge ended.
    ConvergeFinished {
        /// The event that caused the converge, as a text for people.
        reason: String,
        /// The time since the start of the converge.
        took: Duration,
        /// Whether it was the first converge of this life, so that the operator is ready now.
        first: bool,
        /// Modules that have not succeeded yet.
        failing: Vec<ModuleName>,
    },
    /// A key of the ConfigMap cannot be used. Its last good text stays applied.
    ConfigRejected {
        /// The key of the ConfigMap that cannot be used.
        key: String,
        /// The error, and the place in the text where it is.
        message: String,
    },
    /// A change of the ConfigMap was applied.
    ConfigApplied {
        /// The keys of the ConfigMap whose meaning changed.
        keys: Vec<String>,
    },
    /// These keys are too large for the state Secret, so their last good texts are unknown at the next start.
    SectionsNotKept {
        /// The keys of the ConfigMap whose texts were not saved.
        keys: Vec<String>,
    },
    /// The ConfigMap does not exist. Its last good texts stay applied.
    ConfigMissing,
    /// The configuration of these releases is lost. Their modules are held.
    ConfigLost {
        /// The releases' names.
        releases: Vec<String>,
    },
    /// People have decided about the lost configuration. The held modules go on.
    ConfigLossAnswered,
    /// A module waits until the trial of this version is passed.
    ModuleWaitsForTrial {
        /// The module.
        module: ModuleName,
        /// The reason for which the module waits; a text for people.
        reason: String,
    },
    /// The trial of this version is passed. The work that waited for it goes on.
    TrialPassed,
    /// A trial was not passed, and the sections that hooks had saved during it were put back.
    SectionsPutBack {
        /// The keys of the sections that were put back.
        keys: Vec<String>,
        /// The keys of sections that were not put back, because people have edited them since.
        edited: Vec<String>,
    },
    /// The ConfigMap has a section for a module that does not exist. It is ignored.
    ConfigUnknown {
        /// The keys of the sections that are ignored.
        keys: Vec<String>,
    },
    /// A piece of the operator's own work failed. It is retried, and further work waits for it.
    StepFailed {
        /// The piece of work that was attempted.
        step: String,
        /// The error.
        failure: Failure,
        /// Whether the error is the same as at the attempt before.
        again: bool,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// The module begins a new life with the files that were read again.
    ModuleRenewed {
        /// The module.
        module: ModuleName,
    },
    /// The files of a module that were read again cannot be used. The module goes on with its earlier files.
    FilesRefused {
        /// The module.
        module: ModuleName,
        /// The reason.
        failure: Failure,
    },
    /// Tasks were removed from a queue without being run.
    TasksDropped {
        /// The queue.
        queue: QueueName,
        /// The number of removed tasks.
        count: usize,
        /// The reason for which the tasks were removed.
        reason: &'static str,
    },
    /// A queue was too long: tasks of one hook were combined, and repeated binding contexts of a group were dropped.
    TasksCompacted {
        /// The queue.
        queue: QueueName,
        /// The hook that the combined tasks would have run.
        hook: HookId,
        /// The number of tasks that became part of the earliest one.
        count: usize,
    },
    /// A task began.
    TaskWaited {
        /// The queue.
        queue: QueueName,
        /// The task's hook, if it has one.
        hook: Option<HookId>,
        /// The task's module, if it has one.
        module: Option<ModuleName>,
        /// The task's binding or kind.
        binding: String,
        /// The time for which the task waited in its queue.
        waited: Duration,
    },
    /// The shutdown began. Running jobs get time to end.
    ShuttingDown {
        /// The number of running jobs.
        running: usize,
    },
}
