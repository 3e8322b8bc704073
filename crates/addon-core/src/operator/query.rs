//! The questions that people may ask the operator, each a type of its own, and the shapes of the answers. `explain`
//! ties every question to its answer. An answer borrows the operator only once, so it never mixes the states of two
//! moments.

use std::collections::BTreeMap;
use std::time::Duration;

use channel_core::choice::Activity;
use channel_core::settings::Settings;
use channel_core::source::ModuleSource;
use jiff::Timestamp;
use names::{BindingName, HookId, HookName, ModuleName, MonitorId, Owner};
use serde::Serialize;

use super::health::Health;

/// Whether an answer contains secrets: values that a schema or the name of their key marks as secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// A placeholder is shown in the place of each secret.
    Masked,
    /// The secrets are shown, because the person asked for them.
    Shown,
}

/// The progress of the first converge, and everything that waits: a [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusQuery;

/// The last converges that have ended, the newest last: at most twenty [`PastConverge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvergesQuery;

/// A converge that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastConverge {
    /// The event that caused it, as a text for people.
    pub reason: String,
    /// The time of its end.
    pub ended: Timestamp,
    /// The time from its start to its end.
    pub took: Duration,
    /// The number of modules that had not succeeded at its end.
    pub failing: usize,
}

/// The state of this process, by which a trial of its version is judged: a [`Pulse`](super::pulse::Pulse).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PulseQuery;

/// All queues with their tasks: `main` first, the others by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuesQuery;

/// The slots that limit the number of jobs at once, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotsQuery;

/// The slots of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotReport {
    /// `helm`, `hook` or `review`.
    pub kind: &'static str,
    /// The number of slots. More are lent while jobs hang.
    pub number: usize,
    /// The subjects of the jobs that hold one, as texts for people.
    pub jobs: Vec<String>,
}

/// All modules, by order and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModulesQuery;

/// Effective values: of `global`, or of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesQuery {
    /// The module; `None` for the global values.
    pub module: Option<ModuleName>,
    /// Whether the global section stands beside the module's, each under its key.
    pub with_global: bool,
    /// Whether secrets are shown in the document.
    pub secrets: Secrets,
}

/// The values of the ConfigMap alone, in the forms of [`ValuesQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValuesQuery {
    /// The module; `None` for the global values.
    pub module: Option<ModuleName>,
    /// Whether the global section stands beside the module's, each under its key.
    pub with_global: bool,
    /// Whether secrets are shown.
    pub secrets: Secrets,
}

/// The values that a module would have without a section of the ConfigMap and without hooks; secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultsQuery(pub ModuleName);

/// The values that the module's release would be given now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseValuesQuery(pub ModuleName);

/// The patches of values that hooks made, compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchesQuery {
    /// The module; `None` for the global values.
    pub module: Option<ModuleName>,
    /// Whether secrets are shown.
    pub secrets: Secrets,
}

/// The settings of people for the operator's own version, and whether a change of version would disturb running work now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelQuery;

/// The sources of modules; `None` while they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcesQuery;

/// A source of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSource {
    /// The source.
    pub source: ModuleSource,
    /// The number of this naming of the source. A higher number than before means that the source was taken out
    /// meanwhile and named again, so that the module waits for its files.
    pub naming: u64,
}

/// The names of the global hooks. Without modules every hook is a global hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHooksQuery;

/// The monitors of an owner's hooks, by which their snapshots are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorsQuery(pub Owner);

/// Every known hook with its kubernetes bindings, in the order of its configuration. A binding that is not watched is left out.
pub type HookMonitors = BTreeMap<HookName, Vec<(BindingName, MonitorId)>>;

/// A question names a module that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchModule;

/// The answer to [`ChannelQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelReport {
    /// The settings of people; `None` while these are not known.
    pub settings: Option<Settings>,
    /// Whether the start of a trial would disturb running work.
    pub activity: Activity,
}

/// The answer to [`StatusQuery`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Whether the first converge has not begun.
    pub not_started: bool,
    /// Whether the first converge has ended, so that the operator is ready.
    pub ready: bool,
    /// The number of tasks of the running converge; 0 if none runs.
    pub converge_tasks: usize,
    /// The obstacles of the start before the first converge, by name.
    pub waiting: Vec<String>,
    /// ConfigMap keys that cannot be used, with the reason.
    pub config_problems: BTreeMap<String, String>,
    /// Releases whose configuration is lost.
    pub config_lost: Vec<String>,
    /// Keys of the ConfigMap that are too large for the state Secret. If they are broken or gone at the next start, their
    /// last good texts are unknown.
    pub unkept: Vec<String>,
    /// Modules whose runs hang, each with the reason of its wait.
    pub late: Vec<String>,
    /// Global hooks that fail while the values of their last good run serve for them, each with the time of that run.
    pub old_values: Vec<String>,
    /// Removals that are held until a source names the module, a person confirms them, or a trial ends.
    pub held: Vec<HeldRemoval>,
    /// Modules whose upgrade waits for a person.
    pub held_upgrades: Vec<String>,
    /// Modules that wait until the trial of this version is passed, each with the reason.
    pub held_by_trial: Vec<String>,
}

/// A removal that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldRemoval {
    /// The release's name. For a release of ours it is the module's name.
    pub release: String,
    /// The sign that the release is to be removed.
    pub sign: &'static str,
    /// The reason why the removal is held.
    pub reason: String,
    /// The check that holds the removal.
    pub by: HeldBy,
}

/// The part of the operator that holds a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HeldBy {
    /// The brake, until a source names the module or a person confirms the removal.
    Brake,
    /// The trial of this version, until it is passed. A confirmation by a person does not end this hold.
    Trial,
}

/// The report about one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    /// `main`, or a name that a binding gave.
    pub name: String,
    /// The status of the head, in the original's words where the original has this status.
    pub status: String,
    /// The tasks, first to last.
    pub tasks: Vec<TaskReport>,
}

/// The report about one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// `ModuleRun`, `GlobalHookRun`, …
    pub kind: &'static str,
    /// The task's module; an empty text if the task has none.
    pub module: String,
    /// The task's hook; an empty text if the task has none.
    pub hook: String,
    /// Type, queue, binding, hook, failures: one line as the original prints it.
    pub description: String,
}

/// The report about one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleReport {
    /// The module's name.
    pub name: String,
    /// The order number.
    pub order: u32,
    /// Whether the verdict is that the module runs.
    pub enabled: bool,
    /// Whether there is a verdict. Without one the module is off, because nothing is known yet.
    pub decided: bool,
    /// The source of the verdict, and the source's reason.
    pub enabled_by: String,
    /// The state of the module's lifecycle.
    pub state: String,
    /// The name of the obstacle that the module waits for; empty if there is none.
    pub waits_for: String,
    /// The error of the last attempt, if it failed.
    pub error: Option<String>,
    /// The remedies for that error.
    pub hints: Vec<String>,
    /// Warnings about objects of the release.
    pub remarks: Vec<String>,
    /// The number of failed attempts in a row.
    pub failures: u32,
    /// Whether the last attempt to run the module, to remove it or to ask its enabled script failed, or the module cannot
    /// be run as it is declared.
    pub fails: bool,
    /// Whether the module's run hangs, so that other modules go on without it.
    pub late: bool,
    /// The modules that this module depends on.
    pub depends_on: Vec<String>,
    /// The tasks of the module that failed and are retried, in all queues.
    pub failing: Vec<FailingTask>,
    /// A module that this module depends on and that has not succeeded, even if its turn has not come yet.
    pub needs: Option<String>,
    /// Whether the upgrade of the release waits for a person.
    pub upgrade_held: bool,
    /// Whether people maintain the module's objects, so that the operator does not change them.
    pub in_maintenance: bool,
    /// The modules whose turn has to be over before this module's turn.
    pub after: Vec<String>,
    /// The errors in the module's keys of the ConfigMap. The last good texts stay applied.
    pub config_problems: Vec<String>,
    /// The md5 sum of the module's section in the ConfigMap, as it is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
    /// The health of the objects of the module's release.
    pub health: Health,
    /// The sentence about the object for which the module is not healthy.
    pub unhealthy: Option<String>,
    /// The seconds for which the module has not been healthy.
    pub unhealthy_for: Option<u64>,
}

/// A task that failed and is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingTask {
    /// The task's queue.
    pub queue: String,
    /// `ModuleRun`, `ModuleHookRun`, …
    pub task: &'static str,
    /// The task's hook; an empty text if the task has none.
    pub hook: String,
    /// The number of failed attempts in a row.
    pub failures: u32,
    /// The error of the last attempt.
    pub error: String,
    /// Seconds to the next attempt; `None` while an attempt runs or the task waits for something other than a time.
    pub retry_in: Option<u64>,
}

/// The reason for which the operator wants to be woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// A failed task is retried.
    Backoff {
        /// The task's description.
        task: String,
        /// The number of failures in a row.
        failures: u32,
    },
    /// The rate limit of a hook ends.
    RateLimit {
        /// The hook.
        hook: HookId,
    },
    /// The API server's time to wait for this hook ends.
    Review(HookId),
    /// The API server's time to wait for the answer to an edit of the ConfigMap ends.
    Edit,
    /// A crontab is due.
    Schedule {
        /// The text of the crontab.
        crontab: String,
    },
    /// A failed enabled script is asked again, or a running enabled script becomes late.
    EnabledScript(ModuleName),
    /// A module that programs have switched too often may be switched again.
    Switch(ModuleName),
    /// A run will have held up other modules for too long. The text names the run.
    Patience(String),
    /// A hook that causes its own next run too often may run again.
    Loop {
        /// The hook.
        hook: HookId,
    },
    /// A module runs because its release was damaged.
    Restoring(ModuleName),
    /// The objects of this module are on their way for too long from then on.
    Health(ModuleName),
    /// The step of the operator's own work that is named here is retried.
    Step(String),
    /// The running jobs are cancelled. This is the time that they got when the shutdown was asked for.
    Shutdown(Duration),
}
