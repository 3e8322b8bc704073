//! A run of a module, from its first step to its end, and how far it has come with the release.

use crate::module::lifecycle::ModuleStep;
use crate::operator::event::SyncAction;
use crate::time::Tick;
use crate::values::{Globals, Version};

/// A run of a module, from its first step to its end: what is true of it alone.
#[derive(Debug)]
pub(in crate::operator) struct Run {
    pub(in crate::operator) began: Tick,
    /// The global values as this attempt found them: it sees one state of them from start to end.
    pub(in crate::operator) globals: Globals,
    /// The step of which a job was started last.
    pub(in crate::operator) step: ModuleStep,
    pub(in crate::operator) release: Release,
}

/// How far a run has come with the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Release {
    /// Its job has not been started.
    ToCome,
    /// Its job is under way.
    UnderWay {
        began: Tick,
        /// The version of the module's values that it was given.
        version: Version,
    },
    /// It is as the values want it.
    Synced { action: SyncAction, version: Version },
}

impl Release {
    /// The version of the values that it is made of.
    pub(in crate::operator) fn version(self) -> Version {
        match self {
            Self::ToCome => Version::default(),
            Self::UnderWay { version, .. } | Self::Synced { version, .. } => version,
        }
    }

    /// The work that it needed, once that is known.
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

    /// An attempt failed. The next one sees the global values of now. Says which step failed, and since when helm was at work.
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
