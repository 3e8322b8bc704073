//! The questions that people may ask the operator, each a type of its own, and the shapes of the answers.
//! `explain` ties every question to its answer. An answer is one borrow: never half of two moments.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::artifact::choice::Activity;
use crate::artifact::settings::Settings;
use crate::name::{BindingName, HookId, HookName, ModuleName, MonitorId, Owner};

/// Whether an answer holds what the schemas or the names of values call a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// Something else stands in its place.
    Masked,
    /// Somebody asked for it.
    Shown,
}

/// Did the first converge end? A [`Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusQuery;

/// How do we fare, for those who judge our version? A [`Health`](super::health::Health).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthQuery;

/// All queues with their tasks: `main` first, the others by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuesQuery;

/// All modules, by order and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModulesQuery;

/// Effective values: of `global`, or of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesQuery {
    /// `None` for the global ones.
    pub module: Option<ModuleName>,
    /// With the global section beside the module's, both under their keys.
    pub with_global: bool,
    /// As they are or not.
    pub secrets: Secrets,
}

/// The words of the ConfigMap alone, in the same forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValuesQuery {
    /// `None` for the global ones.
    pub module: Option<ModuleName>,
    /// With the global section beside the module's, both under their keys.
    pub with_global: bool,
    /// As they are or not.
    pub secrets: Secrets,
}

/// The values that the module's release would be given now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseValuesQuery(pub ModuleName);

/// The patches that hooks made, compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchesQuery {
    /// `None` for the global ones.
    pub module: Option<ModuleName>,
    /// As they are or not.
    pub secrets: Secrets,
}

/// The word of people about which version of us is wanted, and whether this is a moment to begin with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelQuery;

/// The names of the global hooks, which are all of them where hooks are alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHooksQuery;

/// The monitors of an owner's hooks, for those who want to see their snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorsQuery(pub Owner);

/// Every hook that is known, with its kubernetes bindings in the order of the configuration. A binding that is not watched is
/// left out.
pub type HookMonitors = BTreeMap<HookName, Vec<(BindingName, MonitorId)>>;

/// A question names a module that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchModule;

/// All that the choice of another version has to know of the work under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelReport {
    /// The settings that people made; nothing while these are not known.
    pub settings: Option<Settings>,
    /// Whether something would be disturbed.
    pub activity: Activity,
}

/// Where the operator stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The first converge has not begun.
    pub not_started: bool,
    /// The first converge has ended: ready.
    pub ready: bool,
    /// Tasks that belong to a running converge; 0 if none runs.
    pub converge_tasks: usize,
    /// What holds us up before the first converge, by name.
    pub waiting: Vec<String>,
    /// ConfigMap keys that cannot be used, with the reason.
    pub config_problems: BTreeMap<String, String>,
    /// Releases that were made with a configuration that is lost; empty if none is.
    pub config_lost: Vec<String>,
    /// Keys of the ConfigMap that are too large to be kept for a restart that finds them broken or gone.
    pub unkept: Vec<String>,
    /// Modules whose runs hang, each with what it waits for; empty if none does.
    pub late: Vec<String>,
    /// Removals that wait for their sources or for a person; empty if none does.
    pub held: Vec<HeldRemoval>,
    /// Modules whose upgrade waits for a person.
    pub held_upgrades: Vec<String>,
    /// Modules that wait for the trial of our version to be passed, each with the reason.
    pub held_by_trial: Vec<String>,
}

/// A removal whose only sign is that nothing is said, and that would be one of too many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldRemoval {
    /// Of which release; for ours that is the name of the module.
    pub release: String,
    /// Why it would be removed.
    pub sign: &'static str,
    /// Why it is not.
    pub reason: String,
    /// By whom.
    pub by: HeldBy,
}

/// The part of us that holds a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HeldBy {
    /// The brake, until a source speaks or a person confirms it.
    Brake,
    /// The trial of our version, until it is passed. No word of a person lets go what it holds.
    Trial,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    /// `main`, or the name that a binding gave.
    pub name: String,
    /// What its head does, in the original's words where it had some.
    pub status: String,
    /// First to last.
    pub tasks: Vec<TaskReport>,
}

/// One task of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// `ModuleRun`, `GlobalHookRun`, …
    pub kind: &'static str,
    /// Its module, if it has one.
    pub module: String,
    /// Its hook, if it is one.
    pub hook: String,
    /// Type, queue, binding, hook, failures: one line as the original prints it.
    pub description: String,
}

/// One module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleReport {
    /// Its name.
    pub name: String,
    /// Its order number.
    pub order: u32,
    /// It is to run.
    pub enabled: bool,
    /// Who decided that, and why.
    pub enabled_by: String,
    /// The state of its lifecycle.
    pub state: String,
    /// What it waits for, by name; empty if for nothing.
    pub waits_for: String,
    /// The last failure, if the last attempt failed.
    pub error: Option<String>,
    /// Failed attempts in a row.
    pub failures: u32,
    /// The last attempt to run it, to remove it or to ask its enabled script failed, or it cannot be run as it is declared.
    pub fails: bool,
    /// Its run does not get on, and others go on without it.
    pub late: bool,
    /// The modules that it needs.
    pub depends_on: Vec<String>,
    /// What of it failed and is tried again, in whichever queue.
    pub failing: Vec<FailingTask>,
    /// The module that it needs and that has not succeeded, be its turn still to come or not.
    pub needs: Option<String>,
    /// Its upgrade waits for a person.
    pub upgrade_held: bool,
    /// Nobody but people changes its objects.
    pub in_maintenance: bool,
    /// The modules whose turn has to be over before its own comes.
    pub after: Vec<String>,
    /// What is wrong with its keys of the ConfigMap; what was last good is in force.
    pub config_problems: Vec<String>,
}

/// A task that failed and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingTask {
    /// Where it stands.
    pub queue: String,
    /// `ModuleRun`, `ModuleHookRun`, …
    pub task: &'static str,
    /// Its hook; empty if it is none.
    pub hook: String,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Why the last one failed.
    pub error: String,
    /// Seconds to the next attempt; nothing while one runs or waits for something else.
    pub retry_in: Option<u64>,
}

/// Why the operator wants to be woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// A task is tried again after a failure.
    Backoff {
        /// Its description.
        task: String,
        /// Failures in a row.
        failures: u32,
    },
    /// A hook may not run more often.
    RateLimit {
        /// Which.
        hook: HookId,
    },
    /// The API server waits for this hook.
    Review(HookId),
    /// The API server waits for what we say to an edit of the ConfigMap.
    Edit,
    /// A crontab is due.
    Schedule {
        /// Its text.
        crontab: String,
    },
    /// An enabled script is asked again.
    EnabledScript(ModuleName),
    /// A run will have held up others for long.
    Patience(String),
    /// A module runs because its release was damaged.
    Restoring(ModuleName),
    /// Something of our own is tried again.
    Step(String),
    /// Running jobs are given this long after a shutdown was asked for.
    Shutdown(Duration),
}
