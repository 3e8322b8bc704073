//! Why tasks stand in queues, in the words of the original where it has some.

use std::fmt;

/// Why a converge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Reason {
    /// The first one.
    Startup,
    /// The global section or the set of enabled modules changed in the ConfigMap.
    ConfigChanged,
    /// A global hook switched modules.
    DynamicUpdate,
    /// A global hook on a schedule changed global values.
    ScheduleChange,
    /// A global hook changed global values because of objects of the cluster.
    KubernetesChange,
    /// The hooks after all modules changed global values.
    AfterAllChange,
    /// An enabled script answered at last, and otherwise than before.
    ScriptAnswered,
    /// It became certain that a module is not to run.
    RemovalCertain,
    /// The trial of our version is passed, and modules waited for that.
    TrialPassed,
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
            Self::KubernetesChange => "Kubernetes-Change-GlobalValues",
            Self::AfterAllChange => "AfterAll-Hooks-Change-GlobalValues",
            Self::ScriptAnswered => "ReloadAll-After-EnabledScript",
            Self::RemovalCertain => "ReloadAll-After-Removal-Became-Certain",
            Self::TrialPassed => "ReloadAll-After-Trial-Passed",
            Self::Recovered => "AfterAll-After-Recovery",
        })
    }
}

/// Why a module runs outside of a converge's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum RunReason {
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
    /// One of its hooks changed its values because of objects of the cluster.
    KubernetesChange,
    /// Its hooks after the release changed its values.
    AfterHelmChange,
    /// An object of its release is gone.
    ObjectAbsent,
    /// Somebody altered an object of its release.
    ObjectAltered,
    /// Its release is not `deployed` any more.
    UnexpectedStatus,
}

impl fmt::Display for RunReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "OperatorStartup",
            Self::Converge => "ReloadAllModules",
            Self::DependencyReady => "Dependency-Became-Ready",
            Self::ConfigChanged => "KubeConfig-Changed-Modules",
            Self::ScheduleChange => "Schedule-Change-ModuleValues",
            Self::KubernetesChange => "Kubernetes-Change-ModuleValues",
            Self::AfterHelmChange => "AfterHelm-Hooks-Change-Values",
            Self::ObjectAbsent => "AbsentHelmResourcesDetected",
            Self::ObjectAltered => "AlteredHelmResourcesDetected",
            Self::UnexpectedStatus => "HelmReleaseUnexpectedStatus",
        })
    }
}

/// The event to which a task goes back, as the original names it in a dump of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Trigger {
    /// The operator starts.
    Startup,
    /// A run of the hook's module has come to the objects that are there at first.
    Run(RunReason),
    /// An object has changed.
    Objects,
    /// A crontab was due.
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
