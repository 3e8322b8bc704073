//! The states of one module. A state owns its data; the next step follows from the state alone.

mod deletion;
mod step;

pub use self::deletion::Deletion;
pub use self::step::{Facts, ModuleStep};

use names::{HookName, MonitorId};

use super::first_runs::{FirstRuns, Outstanding};
use crate::hook::config::Stage;
use crate::values::Version;

/// The state of a module between being switched on and being removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifecycle {
    /// Nothing of the module runs or is known.
    Disabled,
    /// The module's CRDs are being installed.
    Ensuring,
    /// The module's hooks are being asked for their configuration.
    Configuring,
    /// The module's start-up hooks run; the number is the place of the next one.
    Starting(usize),
    /// The monitors of the module's hooks are being started.
    Watching {
        /// The index of the hook whose monitors are started next.
        next: usize,
        /// The first runs of the hooks before the hook `next`.
        runs: FirstRuns,
    },
    /// The module's hooks have their first runs.
    Synchronizing(Outstanding),
    /// The module's hooks before the release run; the number is the place of the next one.
    BeforeHelm(usize),
    /// The module's release is being installed or upgraded.
    Releasing,
    /// The module's hooks after the release run.
    AfterHelm {
        /// The version of the module's values before the first of its hooks after the release.
        released: Version,
        /// The index of the hook to run next.
        next: usize,
    },
    /// The release was made from the values of the given version.
    Ready {
        /// The version of the module's values that was released.
        released: Version,
    },
    /// The module is being removed.
    Deleting(Deletion),
}

/// The hooks of a module by stage, each list in the order in which they run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookOrder {
    /// The hooks with `onStartup`.
    pub startup: Vec<HookName>,
    /// The hooks with `kubernetes`.
    pub watching: Vec<HookName>,
    /// The hooks with `beforeHelm`.
    pub before_helm: Vec<HookName>,
    /// The hooks with `afterHelm`.
    pub after_helm: Vec<HookName>,
    /// The hooks with `beforeDeleteHelm`.
    pub before_delete: Vec<HookName>,
    /// The hooks with `afterDeleteHelm`.
    pub after_delete: Vec<HookName>,
}

impl Lifecycle {
    /// The state as a text for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Ensuring => "Ensuring",
            Self::Configuring => "Configuring",
            Self::Starting(_) => "Starting",
            Self::Watching { .. } => "Watching",
            Self::Synchronizing(_) => "Synchronizing",
            Self::BeforeHelm(_) => "BeforeHelm",
            Self::Releasing => "Releasing",
            Self::AfterHelm { .. } => "AfterHelm",
            Self::Ready { .. } => "Ready",
            Self::Deleting(_) => "Deleting",
        }
    }

    /// Whether schedules and reviews may reach the hooks: start-up is over, and the module is not being removed.
    pub fn takes_events(&self) -> bool {
        match self {
            Self::BeforeHelm(_) | Self::Releasing | Self::AfterHelm { .. } | Self::Ready { .. } => true,
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::Deleting(_) => false,
        }
    }

    /// Whether the module's first start has not ended.
    pub fn is_starting_up(&self) -> bool {
        !self.takes_events() && !self.is_deleting()
    }

    /// Whether the module's removal has begun and not ended.
    pub fn is_deleting(&self) -> bool {
        match self {
            Self::Deleting(_) => true,
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. } => false,
        }
    }

    /// Whether a life of the module has ended or is ending. The next run begins another life.
    pub fn is_over(&self) -> bool {
        self.is_deleting() || *self == Self::Disabled
    }

    /// The version of the values that the release was made of; `None` unless the module is ready.
    pub fn released(&self) -> Option<Version> {
        match self {
            Self::Ready { released } => Some(*released),
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Deleting(_) => None,
        }
    }

    /// Whether changes of objects may reach the hooks: their monitors are watching, and the module is not being removed.
    pub fn takes_changes(&self) -> bool {
        match self {
            Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. } => true,
            Self::Disabled | Self::Ensuring | Self::Configuring | Self::Starting(_) | Self::Deleting(_) => false,
        }
    }

    /// Notes that the monitors of the next hook were started.
    pub fn watched(&mut self, of_hook: FirstRuns) {
        if let Self::Watching { next, runs } = self {
            *next += 1;
            runs.extend(of_hook);
        }
    }

    /// Notes that the first run of a monitor is over.
    pub fn first_run_over(&mut self, monitor: MonitorId) {
        match self {
            Self::Watching { runs, .. } => runs.over(monitor),
            Self::Synchronizing(outstanding) => {
                let left = outstanding.clone().without(monitor);
                *self = left.map_or(Self::BeforeHelm(0), Self::Synchronizing);
            }
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. }
            | Self::Deleting(_) => {}
        }
    }

    /// The first runs that are steps of the module's run, the next one first.
    pub fn own_first_runs(&self) -> Vec<MonitorId> {
        if let Self::Synchronizing(outstanding) = self {
            outstanding.runs().own.iter().copied().collect()
        } else {
            Vec::new()
        }
    }

    /// The first runs in other queues that the module's run waits for.
    pub fn first_runs_elsewhere(&self) -> Vec<MonitorId> {
        if let Self::Synchronizing(outstanding) = self {
            outstanding.runs().elsewhere.iter().copied().collect()
        } else {
            Vec::new()
        }
    }

    /// Whether the release has still to wait for the first run of this monitor.
    pub fn awaits(&self, monitor: MonitorId) -> bool {
        match self {
            Self::Watching { runs, .. } => runs.contains(monitor),
            Self::Synchronizing(outstanding) => outstanding.runs().contains(monitor),
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. }
            | Self::Deleting(_) => false,
        }
    }

    /// Goes back to starting the monitors: changes of objects may have been missed, so the hooks have their first runs again.
    pub fn watch_again(&mut self) {
        if self.takes_changes() {
            *self = Self::Watching {
                next: 0,
                runs: FirstRuns::default(),
            };
        }
    }

    /// Begins a run, or begins it again after a failure. Steps that are done once in a life are not repeated; the others are.
    pub fn begin_run(&mut self) {
        match self {
            Self::Disabled | Self::Deleting(_) => *self = Self::Ensuring,
            Self::Ensuring | Self::Configuring | Self::Starting(_) | Self::Watching { .. } | Self::Synchronizing(_) => {
            }
            Self::BeforeHelm(_) | Self::Releasing | Self::AfterHelm { .. } | Self::Ready { .. } => {
                *self = Self::BeforeHelm(0);
            }
        }
    }

    /// Begins a new life with other files. A removal under way begins again.
    pub fn begin_anew(&mut self) {
        match self {
            Self::Disabled => {}
            Self::Deleting(_) => *self = Self::Deleting(Deletion::Configuring),
            Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. } => *self = Self::Ensuring,
        }
    }

    /// Begins a removal, or begins it again after a failure.
    pub fn begin_delete(&mut self, hooks_known: bool) {
        match self {
            Self::Deleting(_) => {}
            Self::Disabled | Self::Ensuring | Self::Configuring if !hooks_known => {
                *self = Self::Deleting(Deletion::Configuring);
            }
            Self::Disabled
            | Self::Ensuring
            | Self::Configuring
            | Self::Starting(_)
            | Self::Watching { .. }
            | Self::Synchronizing(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. } => *self = Self::Deleting(Deletion::BeforeDelete(0)),
        }
    }

    /// Skips steps without work and returns the next one.
    pub fn step(&mut self, hooks: &HookOrder, facts: Facts) -> ModuleStep {
        loop {
            match self {
                Self::Disabled | Self::Ready { .. } => return ModuleStep::Done,
                Self::Ensuring if facts.needs_crds => return ModuleStep::EnsureCrds,
                Self::Ensuring => *self = Self::Configuring,
                Self::Configuring => return ModuleStep::Configure,
                Self::Starting(next) => match hook(&hooks.startup, *next) {
                    Some(name) => return ModuleStep::Hook(Stage::OnStartup, name),
                    None => {
                        *self = Self::Watching {
                            next: 0,
                            runs: FirstRuns::default(),
                        }
                    }
                },
                Self::Watching { next, runs } => {
                    if let Some(name) = hook(&hooks.watching, *next) {
                        return ModuleStep::Watch(name);
                    }
                    let outstanding = Outstanding::new(std::mem::take(runs));
                    *self = outstanding.map_or(Self::BeforeHelm(0), Self::Synchronizing);
                }
                Self::Synchronizing(outstanding) => {
                    let next = outstanding.runs().own.front();
                    return next.map_or(ModuleStep::AwaitFirstRuns, |monitor| ModuleStep::FirstRun(*monitor));
                }
                Self::BeforeHelm(next) => match hook(&hooks.before_helm, *next) {
                    Some(name) => return ModuleStep::Hook(Stage::BeforeHelm, name),
                    None => *self = Self::Releasing,
                },
                Self::Releasing if facts.needs_conversions => return ModuleStep::EnsureConversions,
                Self::Releasing if facts.has_chart => return ModuleStep::Release,
                Self::Releasing => {
                    *self = Self::AfterHelm {
                        released: facts.version,
                        next: 0,
                    }
                }
                Self::AfterHelm { released, next } => match hook(&hooks.after_helm, *next) {
                    Some(name) => return ModuleStep::Hook(Stage::AfterHelm, name),
                    None => *self = Self::Ready { released: *released },
                },
                Self::Deleting(deletion) => match deletion.step(hooks, facts) {
                    Some(step) => return step,
                    None => *self = Self::Disabled,
                },
            }
        }
    }

    /// Notes the success of the step that [`Lifecycle::step`] named. `version` is the version of the values that the
    /// release was made of.
    pub fn succeeded(&mut self, version: Version) {
        match self {
            Self::Ensuring => *self = Self::Configuring,
            Self::Configuring => *self = Self::Starting(0),
            Self::Starting(next) | Self::BeforeHelm(next) | Self::AfterHelm { next, .. } => *next += 1,
            Self::Releasing => {
                *self = Self::AfterHelm {
                    released: version,
                    next: 0,
                }
            }
            Self::Deleting(deletion) => deletion.succeeded(),
            // Other methods note the start of monitors and the end of first runs: `watched` and `first_run_over`.
            Self::Disabled | Self::Watching { .. } | Self::Synchronizing(_) | Self::Ready { .. } => {}
        }
    }
}

/// The hook at the given index of a list.
fn hook(list: &[HookName], next: usize) -> Option<HookName> {
    list.get(next).cloned()
}

#[cfg(test)]
mod tests;
