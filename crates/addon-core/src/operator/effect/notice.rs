//! Notices of the operator's doings: for people through the log, and for metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::HookLabels;
use crate::failure::Failure;
use crate::name::{BindingName, HookId, ModuleName, Owner, QueueName};
use crate::operator::event::{Drift, SyncAction, Usage};
use crate::secret::known::Known;

/// Something worth telling a person, and the source of our own metrics.
#[derive(Debug, Clone)]
pub enum Notice {
    /// These are the texts of values that must not be shown from now on.
    SecretsChanged(Arc<Known>),
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
        /// From job start to its failure.
        took: Duration,
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
    /// An enabled script takes its time: the other modules go on without its answer.
    ScriptLate {
        /// Whose script.
        module: ModuleName,
        /// How long all have waited.
        waited: Duration,
    },
    /// A run of a hook or of helm takes its time: its slot is lent to others.
    RunLate {
        /// Which, in words.
        run: String,
        /// How long it has run.
        waited: Duration,
    },
    /// The run of a module does not get on: others go on without it, and it counts when it ends.
    ModuleLate {
        /// Which.
        module: ModuleName,
        /// The reason of its wait, in words.
        waits_for: String,
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
        /// From the start of the run.
        took: Duration,
        /// From the start of the release step, if that is what failed.
        helm: Option<Duration>,
        /// `OperatorStartup` during the first converge, else empty.
        activation: &'static str,
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
    /// A release took over objects of another maker. They stay when the release goes.
    ObjectsAdopted {
        /// The release's name.
        module: ModuleName,
        /// Which objects.
        objects: Vec<String>,
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
    /// Somebody damaged the release of a module, which is restored by a run of the module.
    ReleaseDrifted {
        /// Which.
        module: ModuleName,
        /// What is wrong.
        drift: Drift,
        /// How often in a row that has happened so far.
        times: u32,
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
    /// A common values file that was there is missing or empty.
    ValuesFileLost {
        /// Its path.
        file: String,
        /// The modules that it spoke of.
        modules: Vec<ModuleName>,
    },
    /// Releases that are not removed although no source names their modules any more, or they have none.
    PurgeHeld {
        /// Their names.
        releases: Vec<String>,
        /// Why they stay.
        reason: HeldFor,
    },
    /// A person wants those gone that were held.
    PurgeConfirmed {
        /// Their names.
        releases: Vec<String>,
    },
    /// A module cannot be run as it is declared.
    ModuleBlocked {
        /// Which.
        module: ModuleName,
        /// Why: a cycle, a missing name, files that cannot be read.
        failure: Failure,
    },
    /// A module waits for one that it needs and that will not succeed soon.
    ModuleHeld {
        /// Which.
        module: ModuleName,
        /// The one that it needs, and what is wrong with that.
        reason: String,
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
    /// These keys are too large to be kept for a restart that finds them broken or gone.
    SectionsNotKept {
        /// Which.
        keys: Vec<String>,
    },
    /// The ConfigMap does not exist; what was last good stays in force.
    ConfigMissing,
    /// These releases were made with a configuration that nobody has any more: their modules are held.
    ConfigLost {
        /// Their names.
        releases: Vec<String>,
    },
    /// People have said what they want in its place: the modules go on.
    ConfigLossAnswered,
    /// A module waits for the trial of our version to be passed.
    ModuleWaitsForTrial {
        /// Which.
        module: ModuleName,
        /// Why.
        reason: String,
    },
    /// The trial of our version is passed: what waited for that goes on.
    TrialPassed,
    /// A version on trial was not kept, and the sections that its hooks had saved were put back.
    SectionsPutBack {
        /// Which.
        keys: Vec<String>,
        /// The others, which people have edited since.
        edited: Vec<String>,
    },
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

/// The reason for which a removal that nobody asked for waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldFor {
    /// The module may be in a part of the modules directories that could not be read, or in a directory that is empty.
    Directories,
    /// They hold something of that name by now, which the operator has not taken over.
    Changed,
    /// So many of so many of ours would go within ten minutes: a person has to confirm it.
    Confirmation {
        /// How many, those that went in that time included.
        goes: usize,
        /// Of how many.
        of: usize,
    },
}

impl fmt::Display for HeldFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directories => f.write_str("a modules directory is empty or could not be read completely"),
            Self::Changed => f.write_str("the modules directories changed since they were read"),
            Self::Confirmation { goes, of } => {
                write!(
                    f,
                    "{goes} of our {of} releases would go within ten minutes, and nobody said so"
                )
            }
        }
    }
}
