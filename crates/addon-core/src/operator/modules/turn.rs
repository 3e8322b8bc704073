//! How a module stands in a converge, and why one is held.

use crate::name::ModuleName;

/// How a module stands in the current converge, or stood when the last one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::operator) enum Turn {
    /// It does not take part.
    Out,
    /// Modules before it, or those it needs, have not passed.
    Waiting,
    /// Its run is in its lane.
    Running,
    /// It succeeded.
    Passed,
    /// It failed at least once and is retried in its own lane.
    Failed,
    /// Its run hangs, and counts when it ends.
    Late,
    /// It cannot run until something else changes, which is named.
    Held(Hold),
}

/// Why an enabled module cannot run for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::operator) struct Hold {
    pub(in crate::operator) reason: String,
    /// The module without whose success it cannot run.
    pub(in crate::operator) need: Option<ModuleName>,
    /// What it says of itself is at fault, not what becomes of others.
    pub(in crate::operator) is_own_fault: bool,
    /// It goes on when the trial of our version is passed.
    pub(in crate::operator) is_for_trial: bool,
}

impl Turn {
    /// Those behind it need not wait any longer.
    pub(in crate::operator) fn is_over(&self, strict: bool) -> bool {
        match self {
            Self::Out | Self::Passed => true,
            Self::Waiting | Self::Running => false,
            Self::Failed | Self::Late | Self::Held(_) => !strict,
        }
    }

    /// It goes on when the trial of our version is passed.
    pub(in crate::operator) fn waits_for_trial(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_for_trial)
    }

    /// It takes part and has not been let run.
    pub(in crate::operator) fn is_to_come(&self) -> bool {
        match self {
            Self::Waiting | Self::Held(_) => true,
            Self::Out | Self::Running | Self::Passed | Self::Failed | Self::Late => false,
        }
    }

    /// It takes part and has not succeeded.
    pub(in crate::operator) fn is_lacking(&self) -> bool {
        match self {
            Self::Failed | Self::Late | Self::Held(_) => true,
            Self::Out | Self::Waiting | Self::Running | Self::Passed => false,
        }
    }

    /// A converge has to get through it: it waits for its run, or the run is in its lane.
    pub(in crate::operator) fn is_awaited(&self) -> bool {
        match self {
            Self::Waiting | Self::Running => true,
            Self::Out | Self::Passed | Self::Failed | Self::Late | Self::Held(_) => false,
        }
    }

    /// A run is in its lane and has not failed.
    pub(in crate::operator) fn is_under_way(&self) -> bool {
        match self {
            Self::Running | Self::Late => true,
            Self::Out | Self::Waiting | Self::Passed | Self::Failed | Self::Held(_) => false,
        }
    }

    /// The reason for which it cannot run.
    pub(in crate::operator) fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Held(hold) => Some(hold),
            Self::Out | Self::Waiting | Self::Running | Self::Passed | Self::Failed | Self::Late => None,
        }
    }

    /// It cannot run as it is declared.
    pub(in crate::operator) fn is_own_fault(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_own_fault)
    }
}
