//! A run of a module, from its first step to its end, and the state of the release in it.

use clock::Tick;

use crate::module::lifecycle::ModuleStep;
use crate::operator::event::SyncAction;
use crate::values::{Globals, Version};

/// A run of a module, from its first step to its end.
#[derive(Debug, Clone)]
pub(in crate::operator) struct Run {
    pub(in crate::operator) began: Tick,
    /// The global values that this attempt uses. A run uses the same global values from start to end.
    pub(in crate::operator) globals: Globals,
    /// The step of the run whose job was started last.
    pub(in crate::operator) step: ModuleStep,
    pub(in crate::operator) release: Release,
}

/// The state of the release in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Release {
    /// The release job has not been started.
    ToCome,
    /// The release job is running.
    UnderWay {
        began: Tick,
        /// The version of the module's values that the job was given.
        version: Version,
    },
    /// The release is in the state of its values.
    Synced { action: SyncAction, version: Version },
}

impl Release {
    /// The version of the module's values that the release is made of.
    pub(in crate::operator) fn version(self) -> Version {
        match self {
            Self::ToCome => Version::default(),
            Self::UnderWay { version, .. } | Self::Synced { version, .. } => version,
        }
    }

    /// The work that the release needed, once it is known.
    pub(in crate::operator) fn action(self) -> Option<SyncAction> {
        match self {
            Self::ToCome | Self::UnderWay { .. } => None,
            Self::Synced { action, .. } => Some(action),
        }
    }
}

impl Run {
    pub(in crate::operator) fn begin(now: Tick, globals: Globals) -> Self {
        Self {
            began: now,
            globals,
            step: ModuleStep::Done,
            release: Release::ToCome,
        }
    }

    /// Notes that an attempt failed. The next attempt uses the current global values. Returns the failed step, and the
    /// start of the helm job if one was running.
    pub(in crate::operator) fn fail(&mut self, globals: Globals) -> (ModuleStep, Option<Tick>) {
        self.globals = globals;
        match self.release {
            Release::UnderWay { began, .. } => {
                self.release = Release::ToCome;
                (ModuleStep::Release, Some(began))
            }
            Release::ToCome | Release::Synced { .. } => (self.step.clone(), None),
        }
    }
}
