//! The states of one module. A state owns its data; the next step follows from the state alone.

mod deletion;
mod step;

pub use self::deletion::Deletion;
pub use self::step::{Facts, ModuleStep};

use super::first_runs::{FirstRuns, Outstanding};
use crate::hook::config::Stage;
use crate::name::{HookName, MonitorId};
use crate::values::Version;

/// Where a module stands between being switched on and being gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifecycle {
    /// Nothing of it runs or is known.
    Disabled,
    /// Its CRDs are put into the cluster.
    Ensuring,
    /// Its hooks are asked for their configuration.
    Configuring,
    /// Its start-up hooks run; this one is next.
    Starting(usize),
    /// The objects that its hooks are bound to begin to be watched.
    Watching {
        /// The hook whose monitors are started next.
        next: usize,
        /// First runs of the hooks before it.
        runs: FirstRuns,
    },
    /// Its hooks run for the objects that are there at first.
    Synchronizing(Outstanding),
    /// Its hooks before the release run; this one is next.
    BeforeHelm(usize),
    /// Its release is brought up to date.
    Releasing,
    /// Its hooks after the release run.
    AfterHelm {
        /// The version of its values before the first of them.
        released: Version,
        /// This one is next.
        next: usize,
    },
    /// The release is up to date with the values of this version.
    Ready {
        /// The version of its values that was released.
        released: Version,
    },
    /// It is being removed.
    Deleting(Deletion),
}

/// The hooks of a module by stage, each list in the order of its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookOrder {
    /// `onStartup`.
    pub startup: Vec<HookName>,
    /// `kubernetes`.
    pub watching: Vec<HookName>,
    /// `beforeHelm`.
    pub before_helm: Vec<HookName>,
    /// `afterHelm`.
    pub after_helm: Vec<HookName>,
    /// `beforeDeleteHelm`.
    pub before_delete: Vec<HookName>,
    /// `afterDeleteHelm`.
    pub after_delete: Vec<HookName>,
}

impl Lifecycle {
    /// The state in words, for people.
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

    /// Its schedules may fire: start-up is over and it is not being removed.
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

    /// Its first start is still to come or under way.
    pub fn is_starting_up(&self) -> bool {
        !self.takes_events() && !self.is_deleting()
    }

    /// Its removal has begun and has not come to its end.
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

    /// A life has ended, or is about to: the next run begins another one.
    pub fn is_over(&self) -> bool {
        self.is_deleting() || *self == Self::Disabled
    }

    /// The version of the values that its release was made of; nothing unless it is ready.
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

    /// Changes of objects may run its hooks: they are watched, and it is not being removed.
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

    /// The monitors of the next hook were started.
    pub fn watched(&mut self, of_hook: FirstRuns) {
        if let Self::Watching { next, runs } = self {
            *next += 1;
            runs.extend(of_hook);
        }
    }

    /// The first run of a monitor is over.
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

    /// The release has still to wait for the first run of this monitor.
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

    /// It may have missed changes of objects: they are watched anew, and its hooks run for all of them again.
    pub fn watch_again(&mut self) {
        if self.takes_changes() {
            *self = Self::Watching {
                next: 0,
                runs: FirstRuns::default(),
            };
        }
    }

    /// A run begins, or begins again after a failure: steps that are done once in a life are not repeated, the rest
    /// starts over.
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

    /// A removal begins, or begins again after a failure.
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

    /// The step that [`Lifecycle::step`] named went well. `version` is the one the release was made of.
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
            // Watching and first runs say more than that they went well: see `watched` and `first_run_over`.
            Self::Disabled | Self::Watching { .. } | Self::Synchronizing(_) | Self::Ready { .. } => {}
        }
    }
}

/// The hook at this place of a list.
fn hook(list: &[HookName], next: usize) -> Option<HookName> {
    list.get(next).cloned()
}

#[cfg(test)]
mod tests;
