//! The tasks of the queues, and how they are shown.

mod reason;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

pub(super) use self::reason::{Reason, RunReason, Trigger};
use super::effect::HookLabels;
use super::policy::Mode;
use crate::hook::cause::Cause;
use crate::hook::context::BindingContext;
use crate::name::{HookId, ModuleName, MonitorId, Owner, QueueName};

/// Where tasks stand in line. The queue `main` is the union of all lanes but the named ones; where hooks are alone, it
/// is the global lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Global hooks and converges.
    Global,
    /// One module: its runs, its removal, its hooks that name no queue.
    Module(ModuleName),
    /// The removal of a release without a module.
    Release(String),
    /// A queue that a binding names.
    Named(QueueName),
}

impl Lane {
    /// Where the runs of a binding with this queue stand.
    pub(super) fn of(owner: &Owner, queue: &QueueName) -> Self {
        match owner {
            _ if *queue != QueueName::main() => Self::Named(queue.clone()),
            Owner::Global => Self::Global,
            Owner::Module(name) => Self::Module(name.clone()),
        }
    }

    /// The queue that people know this lane by.
    pub(super) fn queue(&self) -> QueueName {
        match self {
            Self::Global | Self::Module(_) | Self::Release(_) => QueueName::main(),
            Self::Named(name) => name.clone(),
        }
    }
}

/// One run of one hook.
#[derive(Debug, Clone)]
pub(super) struct HookTask {
    pub(super) trigger: Trigger,
    pub(super) hook: HookId,
    pub(super) labels: HookLabels,
    pub(super) contexts: Vec<BindingContext>,
    pub(super) allow_failure: bool,
    /// How long it may take.
    pub(super) deadline: Duration,
    /// The monitors whose first run it is.
    pub(super) first_runs: Vec<MonitorId>,
    /// It is a first run that the hook does not want: it only opens the way for what comes after it.
    pub(super) is_skipped: bool,
}

/// One entry of a queue.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Hook(HookTask),
    /// Starts the monitors of a hook that belongs to no module.
    EnableKubernetes(HookId),
    /// Lets the schedules of such a hook count.
    EnableSchedules(HookId),
    /// Waits for first runs of such hooks in other queues.
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
    /// The contract's name of this kind of task.
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

    /// The run of a hook that stands in a queue by itself.
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

    /// The reason of a converge.
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

    /// The reason of a module's run.
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

    /// The module whose run or removal it is.
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

    pub(super) fn is_converge(&self) -> bool {
        self.converge_reason().is_some()
    }

    /// It waits for first runs of hooks without a module.
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

    /// The module it is about.
    pub(super) fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Hook(HookTask { hook, .. }) | Self::EnableKubernetes(hook) | Self::EnableSchedules(hook) => {
                hook.owner.module()
            }
            Self::ModuleRun { module, .. } | Self::ModuleDelete { module, .. } => Some(module),
            Self::AwaitFirstRuns | Self::Converge(_) | Self::Purge { .. } => None,
        }
    }

    /// The hook it is about.
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

    /// The binding of a hook's run, the kind of anything else.
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
    /// It is the first run of a binding, or of several.
    pub(super) fn is_first_run(&self) -> bool {
        !self.first_runs.is_empty()
    }

    /// Tells at once what another run would have told.
    pub(super) fn absorb(&mut self, other: Self) {
        self.contexts.extend(other.contexts);
        self.first_runs.extend(other.first_runs);
        // Also what is not told again, because a later context of its group stands for it, is still to be done.
        self.deadline = self.deadline.max(other.deadline);
    }

    /// Queue, kind of binding, hook, names of the bindings with the number of contexts, trigger.
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

    /// Where hooks are alone: queue, kind of binding, hook, group, name of the binding; a stage has no name beside its kind.
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
