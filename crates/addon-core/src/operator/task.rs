//! What waits in the queues, and how it is shown.

use std::fmt;

use super::effect::HookLabels;
use crate::hook::context::BindingContext;
use crate::name::{HookId, ModuleName, Owner, QueueName};

/// Where tasks stand in line. The queue `main` is the union of all lanes but the named ones.
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
    /// The queue that people know this lane by.
    pub(super) fn queue(&self) -> QueueName {
        match self {
            Self::Global | Self::Module(_) | Self::Release(_) => QueueName::main(),
            Self::Named(name) => name.clone(),
        }
    }
}

/// Why a converge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first one.
    Startup,
    /// The global section or the set of enabled modules changed in the ConfigMap.
    ConfigChanged,
    /// A global hook switched modules.
    DynamicUpdate,
    /// A global hook on a schedule changed global values.
    ScheduleChange,
    /// The hooks after all modules changed global values.
    AfterAllChange,
    /// An enabled script answered at last, and otherwise than before.
    ScriptAnswered,
    /// It became certain that a module is not to run.
    RemovalCertain,
    /// The last failing module recovered: only the hooks after all modules run.
    Recovered,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Operator-Startup",
            Self::ConfigChanged => "ReloadAll-After-KubeConfigChange",
            Self::DynamicUpdate => "ReloadAll-After-GlobalHookDynamicUpdate",
            Self::ScheduleChange => "Schedule-Change-GlobalValues",
            Self::AfterAllChange => "AfterAll-Hooks-Change-GlobalValues",
            Self::ScriptAnswered => "ReloadAll-After-EnabledScript",
            Self::RemovalCertain => "ReloadAll-After-Removal-Became-Certain",
            Self::Recovered => "AfterAll-After-Recovery",
        })
    }
}

/// Why a module runs outside of a converge's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunReason {
    /// Its turn in the first converge.
    Startup,
    /// Its turn in a later converge.
    Converge,
    /// What it needs became ready at last.
    DependencyReady,
    /// Its section of the ConfigMap changed.
    ConfigChanged,
    /// One of its hooks on a schedule changed its values.
    ScheduleChange,
    /// Its hooks after the release changed its values.
    AfterHelmChange,
}

impl fmt::Display for RunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "OperatorStartup",
            Self::Converge => "ReloadAllModules",
            Self::DependencyReady => "Dependency-Became-Ready",
            Self::ConfigChanged => "KubeConfig-Changed-Modules",
            Self::ScheduleChange => "Schedule-Change-ModuleValues",
            Self::AfterHelmChange => "AfterHelm-Hooks-Change-Values",
        })
    }
}

/// One run of one hook that stands in line by itself.
#[derive(Debug, Clone)]
pub(super) struct HookTask {
    pub(super) hook: HookId,
    pub(super) labels: HookLabels,
    pub(super) contexts: Vec<BindingContext>,
    pub(super) allow_failure: bool,
}

/// One entry of a queue.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Hook(HookTask),
    Converge(Reason),
    ModuleRun { module: ModuleName, reason: RunReason },
    ModuleDelete { module: ModuleName },
    Purge { release: String },
}

impl Task {
    /// The contract's name of this kind of task.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Hook(task) => match task.hook.owner {
                Owner::Global => "GlobalHookRun",
                Owner::Module(_) => "ModuleHookRun",
            },
            Self::Converge(_) => "ConvergeModules",
            Self::ModuleRun { .. } => "ModuleRun",
            Self::ModuleDelete { .. } => "ModuleDelete",
            Self::Purge { .. } => "ModulePurge",
        }
    }

    /// The module it is about.
    pub(super) fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Hook(task) => task.hook.owner.module(),
            Self::ModuleRun { module, .. } | Self::ModuleDelete { module } => Some(module),
            Self::Converge(_) | Self::Purge { .. } => None,
        }
    }

    /// The hook it runs.
    pub(super) fn hook(&self) -> Option<&HookId> {
        match self {
            Self::Hook(task) => Some(&task.hook),
            Self::Converge(_) | Self::ModuleRun { .. } | Self::ModuleDelete { .. } | Self::Purge { .. } => None,
        }
    }

    /// The binding of a hook, the kind of anything else.
    pub(super) fn binding(&self) -> String {
        match self {
            Self::Hook(task) => task.labels.binding_name.clone(),
            Self::Converge(_) | Self::ModuleRun { .. } | Self::ModuleDelete { .. } | Self::Purge { .. } => {
                self.kind().to_owned()
            }
        }
    }

    /// One line as the original prints it: kind, queue, binding, hook or module, reason.
    pub(super) fn describe(&self, queue: &QueueName) -> String {
        let kind = self.kind();
        match self {
            Self::Hook(task) => {
                let mut text = format!("{kind}:{queue}:{}:{}", task.labels.binding, task.hook.name);
                if task.labels.binding_name != task.labels.binding && !task.labels.binding_name.is_empty() {
                    text.push(':');
                    text.push_str(&task.labels.binding_name);
                }
                text
            }
            Self::Converge(reason) => format!("{kind}:{queue}:::{reason}"),
            Self::ModuleRun { module, reason } => format!("{kind}:{queue}:{module}:{reason}"),
            Self::ModuleDelete { module } => format!("{kind}:{queue}:{module}"),
            Self::Purge { release } => format!("{kind}:{queue}:{release}"),
        }
    }
}
