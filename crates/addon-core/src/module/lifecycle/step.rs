//! The steps of a run and of a removal, and the facts on which the choice of the next one depends.

use crate::hook::config::Stage;
use crate::name::{HookName, MonitorId};
use crate::values::Version;

/// The next step. One step is one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleStep {
    /// Put its CRDs into the cluster.
    EnsureCrds,
    /// Ask the hooks for their configuration.
    Configure,
    /// Run this hook for this stage.
    Hook(Stage, HookName),
    /// Start the monitors of this hook.
    Watch(HookName),
    /// Run the hook of this monitor for the objects that are there at first.
    FirstRun(MonitorId),
    /// Wait for first runs in other queues.
    AwaitFirstRuns,
    /// Put the conversion webhooks of its chart into the cluster.
    EnsureConversions,
    /// Bring the release up to date.
    Release,
    /// Uninstall the release.
    Uninstall,
    /// Nothing: the run has reached its end.
    Done,
}

impl ModuleStep {
    /// The step in words, for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::EnsureCrds => "ensure its CRDs",
            Self::Configure => "ask its hooks for their configuration",
            Self::Hook(stage, _) => stage.key(),
            Self::Watch(_) => "start the monitors of its hooks",
            Self::FirstRun(_) | Self::AwaitFirstRuns => "run its hooks for the objects that are there",
            Self::EnsureConversions => "ensure its conversion webhooks",
            Self::Release => "bring its release up to date",
            Self::Uninstall => "uninstall its release",
            Self::Done => "nothing",
        }
    }
}

/// The inputs of a run beside the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// There is something for helm to install.
    pub has_chart: bool,
    /// Its CRDs have not been looked after since it was switched on.
    pub needs_crds: bool,
    /// The conversion webhooks of its chart have not been looked after since a converge took it up.
    pub needs_conversions: bool,
    /// A release of ours exists.
    pub has_release: bool,
    /// The version of the module's values now.
    pub version: Version,
}
