//! The reasons for which tasks are in queues, worded as in the original where it has them.

use std::fmt;

/// The event that caused a converge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Reason {
    /// The start of the operator.
    Startup,
    /// The global section or the set of enabled modules changed in the ConfigMap.
    ConfigChanged,
    /// A global hook switched modules.
    DynamicUpdate,
    /// A run of a global hook by schedule changed global values.
    ScheduleChange,
    /// A run of a global hook for changed objects changed global values.
    KubernetesChange,
    /// The hooks after all modules changed global values.
    AfterAllChange,
    /// A late answer of an enabled script changed a verdict.
    ScriptAnswered,
    /// It became certain that a module has to be removed.
    RemovalCertain,
    /// The directory of a module was read again.
    FilesRead,
    /// The trial of this version is passed, and modules waited for its end.
    TrialPassed,
    /// The last failing module succeeded. Only the hooks after all modules run.
    Recovered,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Operator-Startup",
            Self::ConfigChanged => "ReloadAll-After-KubeConfigChange",
            Self::DynamicUpdate => "ReloadAll-After-GlobalHookDynamicUpdate",
            Self::ScheduleChange => "Schedule-Change-GlobalValues",
            Self::KubernetesChange => "Kubernetes-Change-GlobalValues",
            Self::AfterAllChange => "AfterAll-Hooks-Change-GlobalValues",
            Self::ScriptAnswered => "ReloadAll-After-EnabledScript",
            Self::RemovalCertain => "ReloadAll-After-Removal-Became-Certain",
            Self::FilesRead => "ReloadAll-After-Files-Read",
            Self::TrialPassed => "ReloadAll-After-Trial-Passed",
            Self::Recovered => "AfterAll-After-Recovery",
        })
    }
}

/// The event that caused a run of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum RunReason {
    /// The module was next in order in the first converge.
    Startup,
    /// The module was next in order in a converge after the first one.
    Converge,
    /// A module that this module depends on succeeded at last.
    DependencyReady,
    /// The module's section of the ConfigMap changed.
    ConfigChanged,
    /// The module's directory was read again.
    FilesRead,
    /// A scheduled run of one of the module's hooks changed the module's values.
    ScheduleChange,
    /// A run of one of the module's hooks for changed objects changed the module's values.
    KubernetesChange,
    /// The module's hooks that run after its release changed the module's values.
    AfterHelmChange,
    /// An object of the module's release is gone.
    ObjectAbsent,
    /// An object of the module's release was altered.
    ObjectAltered,
    /// The module's release is not `deployed` any more.
    UnexpectedStatus,
    /// The objects of the release do not do their work, and the module leaves the revision.
    Unhealthy,
}

impl fmt::Display for RunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "OperatorStartup",
            Self::Converge => "ReloadAllModules",
            Self::DependencyReady => "Dependency-Became-Ready",
            Self::ConfigChanged => "KubeConfig-Changed-Modules",
            Self::FilesRead => "Module-Files-Read",
            Self::ScheduleChange => "Schedule-Change-ModuleValues",
            Self::KubernetesChange => "Kubernetes-Change-ModuleValues",
            Self::AfterHelmChange => "AfterHelm-Hooks-Change-Values",
            Self::ObjectAbsent => "AbsentHelmResourcesDetected",
            Self::ObjectAltered => "AlteredHelmResourcesDetected",
            Self::UnexpectedStatus => "HelmReleaseUnexpectedStatus",
            Self::Unhealthy => "ModuleUnhealthy",
        })
    }
}

/// The event that caused a task, named as in the original's dump of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Trigger {
    /// The start of the operator.
    Startup,
    /// A run of the hook's module, which runs the hook for the objects that exist at first.
    Run(RunReason),
    /// A change of an object.
    Objects,
    /// The time of a crontab.
    Schedule,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Startup => Reason::Startup.fmt(f),
            Self::Run(reason) => reason.fmt(f),
            Self::Objects => f.write_str("Kubernetes"),
            Self::Schedule => f.write_str("Schedule"),
        }
    }
}
