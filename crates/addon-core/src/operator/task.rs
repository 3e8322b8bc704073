//! The tasks of the queues, and their texts for people.

mod reason;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

pub(super) use self::reason::{Reason, RunReason, Trigger};
use names::{HookId, HookName, ModuleName, MonitorId, Owner, QueueName};

use super::effect::HookLabels;
use super::loops::Origin;
use super::policy::Mode;
use crate::hook::cause::Cause;
use crate::hook::context::BindingContext;
use crate::queue;

/// A lane, in which tasks run one after another. The queue `main` consists of all lanes except the named ones. Without
/// modules `main` is the global lane alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The lane of global hooks and converges.
    Global,
    /// The lane of one module: its runs, its removal, and its hooks that name no queue.
    Module(ModuleName),
    /// The lane for the removal of a release without a module.
    Release(String),
    /// The lane of a queue that a binding names.
    Named(QueueName),
    /// The lane of a global hook that a stand-in serves for: its tasks of `main` are tried there until they succeed.
    Aside(HookName),
}

impl Lane {
    /// The lane for the runs of a binding with this queue.
    pub(super) fn of(owner: &Owner, queue: &QueueName) -> Self {
        match owner {
            _ if *queue != QueueName::main() => Self::Named(queue.clone()),
            Owner::Global => Self::Global,
            Owner::Module(name) => Self::Module(name.clone()),
        }
    }

    /// The module of the lane, if it is the lane of one.
    pub(super) fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Module(name) => Some(name),
            Self::Global | Self::Release(_) | Self::Named(_) | Self::Aside(_) => None,
        }
    }

    /// The queue under which people know this lane.
    pub(super) fn queue(&self) -> QueueName {
        match self {
            Self::Global | Self::Module(_) | Self::Release(_) | Self::Aside(_) => QueueName::main(),
            Self::Named(name) => name.clone(),
        }
    }
}

/// The kind of slot that a job occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Hook,
    /// A slot for hooks that answer the API server.
    Review,
    Helm,
    None,
}

/// A task in its lane. While the task is the head and ready, it keeps the kind of slot that it lacked.
pub(super) type Entry = queue::Entry<Task, Slot>;

/// One run of one hook.
#[derive(Debug, Clone)]
pub(super) struct HookTask {
    pub(super) trigger: Trigger,
    pub(super) hook: HookId,
    pub(super) labels: HookLabels,
    pub(super) contexts: Vec<BindingContext>,
    pub(super) allow_failure: bool,
    /// The deadline of the run.
    pub(super) deadline: Duration,
    /// The monitors for which this run is the first run; empty for other runs.
    pub(super) first_runs: Vec<MonitorId>,
    /// The hook does not want this first run. The task only makes later changes reach the hook.
    pub(super) is_skipped: bool,
    /// The origins of the changes that the run reports to the hook; empty for other runs.
    pub(super) origins: Vec<Origin>,
}

/// One entry of a queue.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Hook(HookTask),
    /// Starts the monitors of a hook without a module.
    EnableKubernetes(HookId),
    /// Enables the schedules of a hook without a module.
    EnableSchedules(HookId),
    /// Waits for first runs of hooks without a module that are in other queues.
    AwaitFirstRuns,
    Converge(Reason),
    ModuleRun {
        module: ModuleName,
        reason: RunReason,
    },
    ModuleDelete {
        module: ModuleName,
        reason: RunReason,
    },
    Purge {
        release: String,
    },
}

impl Task {
    /// The name of this kind of task in the contract with the original.
    pub(super) fn kind(&self, mode: Mode) -> &'static str {
        match (self, mode) {
            (Self::Hook(_), Mode::Hooks) => "HookRun",
            (Self::Hook(task), Mode::Addons) => match task.hook.owner {
                Owner::Global => "GlobalHookRun",
                Owner::Module(_) => "ModuleHookRun",
            },
            (Self::EnableKubernetes(_), Mode::Hooks) => "EnableKubernetesBindings",
            (Self::EnableKubernetes(_), Mode::Addons) => "GlobalHookEnableKubernetesBindings",
            (Self::EnableSchedules(_), Mode::Hooks) => "EnableScheduleBindings",
            (Self::EnableSchedules(_), Mode::Addons) => "GlobalHookEnableScheduleBindings",
            (Self::AwaitFirstRuns, _) => "GlobalHookWaitKubernetesSynchronization",
            (Self::Converge(_), _) => "ConvergeModules",
            (Self::ModuleRun { .. }, _) => "ModuleRun",
            (Self::ModuleDelete { .. }, _) => "ModuleDelete",
            (Self::Purge { .. }, _) => "ModulePurge",
        }
    }

    /// The run of a hook, if this task is one.
    pub(super) fn as_hook(&self) -> Option<&HookTask> {
        match self {
            Self::Hook(task) => Some(task),
            Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => None,
        }
    }

    /// The reason of a converge, if this task is one.
    pub(super) fn converge_reason(&self) -> Option<Reason> {
        match self {
            Self::Converge(reason) => Some(*reason),
            Self::Hook(_)
            | Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => None,
        }
    }

    /// The reason of a module's run, if this task is one.
    pub(super) fn run_reason(&self) -> Option<RunReason> {
        match self {
            Self::ModuleRun { reason, .. } => Some(*reason),
            Self::Hook(_)
            | Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => None,
        }
    }

    /// The module, if this task is its run or its removal.
    pub(super) fn module_at_work(&self) -> Option<&ModuleName> {
        match self {
            Self::ModuleRun { module, .. } | Self::ModuleDelete { module, .. } => Some(module),
            Self::Hook(_)
            | Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::Purge { .. } => None,
        }
    }

    pub(super) fn is_run(&self) -> bool {
        self.run_reason().is_some()
    }

    pub(super) fn is_removal(&self) -> bool {
        self.module_at_work().is_some() && !self.is_run()
    }

    /// The release that the task purges; `None` for other tasks.
    pub(super) fn purged(&self) -> Option<&str> {
        match self {
            Self::Purge { release } => Some(release),
            Self::Hook(_)
            | Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. } => None,
        }
    }

    pub(super) fn is_converge(&self) -> bool {
        self.converge_reason().is_some()
    }

    /// Whether the task waits for first runs of hooks without a module.
    pub(super) fn awaits_first_runs(&self) -> bool {
        match self {
            Self::AwaitFirstRuns => true,
            Self::Hook(_)
            | Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::Converge(_)
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => false,
        }
    }

    /// The module of the task.
    pub(super) fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Hook(HookTask { hook, .. }) | Self::EnableKubernetes(hook) | Self::EnableSchedules(hook) => {
                hook.owner.module()
            }
            Self::ModuleRun { module, .. } | Self::ModuleDelete { module, .. } => Some(module),
            Self::AwaitFirstRuns | Self::Converge(_) | Self::Purge { .. } => None,
        }
    }

    /// The hook of the task.
    pub(super) fn hook(&self) -> Option<&HookId> {
        match self {
            Self::Hook(HookTask { hook, .. }) | Self::EnableKubernetes(hook) | Self::EnableSchedules(hook) => {
                Some(hook)
            }
            Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => None,
        }
    }

    /// The binding, if the task is the run of a hook, else the kind of the task.
    pub(super) fn binding(&self, mode: Mode) -> String {
        match self {
            Self::Hook(task) => task.labels.binding_name.clone(),
            Self::EnableKubernetes(_)
            | Self::EnableSchedules(_)
            | Self::AwaitFirstRuns
            | Self::Converge(_)
            | Self::ModuleRun { .. }
            | Self::ModuleDelete { .. }
            | Self::Purge { .. } => self.kind(mode).to_owned(),
        }
    }

    /// One line as the original prints it: kind, queue, binding, hook or module, trigger.
    pub(super) fn describe(&self, queue: &QueueName, mode: Mode) -> String {
        let kind = self.kind(mode);
        let startup = Trigger::Startup;
        match self {
            Self::Hook(task) => match mode {
                Mode::Hooks => task.describe_alone(kind),
                Mode::Addons => task.describe(kind),
            },
            Self::EnableKubernetes(hook) | Self::EnableSchedules(hook) => match mode {
                Mode::Hooks => format!("{kind}:::{}:{kind}", hook.name),
                Mode::Addons => format!("{kind}:{queue}::{}:{startup}", hook.name),
            },
            Self::AwaitFirstRuns => format!("{kind}:{queue}:::{startup}"),
            Self::Converge(reason) => format!("{kind}:{queue}:::{reason}"),
            Self::ModuleRun { module, reason } | Self::ModuleDelete { module, reason } => {
                format!("{kind}:{queue}:{module}:{reason}")
            }
            Self::Purge { release } => format!("{kind}:{queue}:{release}:Operator-PostConvergeCleanup"),
        }
    }
}

impl HookTask {
    /// Whether this is the first run for a binding or for several bindings.
    pub(super) fn is_first_run(&self) -> bool {
        !self.first_runs.is_empty()
    }

    /// Adds the contexts of another run to this one.
    pub(super) fn absorb(&mut self, other: Self) {
        self.contexts.extend(other.contexts);
        self.first_runs.extend(other.first_runs);
        self.origins.extend(other.origins);
        // The deadline and the first runs of a dropped context are kept, too: a later context of its group stands in
        // its place, but the hook still has to do the dropped context's work.
        self.deadline = self.deadline.max(other.deadline);
    }

    /// One line: queue, kind of binding, hook, names of the bindings with the number of contexts, trigger.
    fn describe(&self, kind: &str) -> String {
        let labels = &self.labels;
        let mut text = format!("{kind}:{}:{}:{}", labels.queue, labels.cause, self.hook.name);
        let names: BTreeSet<&str> = self.contexts.iter().map(BindingContext::binding).collect();
        if !names.is_empty() {
            text.push(':');
            text.push_str(&names.into_iter().collect::<Vec<_>>().join(","));
        }
        let contexts = self.contexts.len();
        if contexts > 1 {
            let _ = write!(text, " in {contexts} contexts");
        }
        let _ = write!(text, ":{}", self.trigger);
        text
    }

    /// The line for hooks without modules: queue, kind of binding, hook, group, name of the binding. A stage has no name
    /// beside its kind.
    fn describe_alone(&self, kind: &str) -> String {
        let labels = &self.labels;
        let mut text = format!("{kind}:{}:{}:{}", labels.queue, labels.cause, self.hook.name);
        if let Some(group) = self.contexts.first().and_then(BindingContext::group) {
            text.push_str(":group=");
            text.push_str(group);
        }
        let name = match labels.cause {
            Cause::Stage(_) => "",
            Cause::Schedule | Cause::Objects | Cause::Validating | Cause::Mutating | Cause::Conversion => {
                &labels.binding_name
            }
        };
        if !name.is_empty() {
            text.push(':');
            text.push_str(name);
        }
        text
    }
}
