//! The steps of a run and of a removal, and the facts that the choice of the next step depends on.

use names::{HookName, MonitorId};

use crate::hook::config::Stage;
use crate::values::Version;

/// The next step of a module's run or removal. One step is one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleStep {
    /// Install the CRDs.
    EnsureCrds,
    /// Ask the hooks for their configuration.
    Configure,
    /// Run the given hook for the given stage.
    Hook(Stage, HookName),
    /// Start the monitors of the given hook.
    Watch(HookName),
    /// Do the first run of the given monitor's hook.
    FirstRun(MonitorId),
    /// Wait for first runs in other queues.
    AwaitFirstRuns,
    /// Publish the conversion webhooks of the chart.
    EnsureConversions,
    /// Install or upgrade the release.
    Release,
    /// Uninstall the release.
    Uninstall,
    /// There is no next step: the run has ended.
    Done,
}

impl ModuleStep {
    /// The step as a text for people.
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

/// The facts on which the choice of the next step depends, apart from the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Whether there is a chart to install.
    pub has_chart: bool,
    /// Whether the CRDs were not installed since the module was switched on.
    pub needs_crds: bool,
    /// Whether the conversion webhooks were not published since a converge took the module up.
    pub needs_conversions: bool,
    /// Whether a release of ours exists.
    pub has_release: bool,
    /// The current version of the module's values.
    pub version: Version,
}
