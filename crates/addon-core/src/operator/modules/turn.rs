//! The turn of a module in a converge, and the reason for which a module is held.

use names::ModuleName;

/// The state of a module in the running converge, or at the end of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::operator) enum Turn {
    /// The module does not take part in the converge: it is not enabled.
    Out,
    /// The modules before this module, or the modules that it depends on, have not succeeded.
    Waiting,
    /// The module's run is in its lane.
    Running,
    /// The module's run succeeded.
    Passed,
    /// The module's run failed at least once and is retried in its own lane.
    Failed,
    /// The module's run takes longer than `Policy::patience`. Other modules go on. The result of the run counts when it
    /// ends.
    Late,
    /// The module cannot run before the obstacle that `Hold` names is gone.
    Held(Hold),
}

/// The reason for which an enabled module cannot run for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::operator) struct Hold {
    pub(in crate::operator) reason: String,
    /// The other module that has to succeed first.
    pub(in crate::operator) need: Option<ModuleName>,
    /// Whether the module's own declaration is at fault, and not another module.
    pub(in crate::operator) is_own_fault: bool,
    /// Whether the module goes on when the trial of this version is passed.
    pub(in crate::operator) is_for_trial: bool,
}

impl Turn {
    /// Whether the modules behind this one need not wait any longer.
    pub(in crate::operator) fn is_over(&self, strict: bool) -> bool {
        match self {
            Self::Out | Self::Passed => true,
            Self::Waiting | Self::Running => false,
            Self::Failed | Self::Late | Self::Held(_) => !strict,
        }
    }

    /// Whether the module waits for the end of the trial.
    pub(in crate::operator) fn waits_for_trial(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_for_trial)
    }

    /// Whether the module takes part and its run was not queued yet.
    pub(in crate::operator) fn is_to_come(&self) -> bool {
        match self {
            Self::Waiting | Self::Held(_) => true,
            Self::Out | Self::Running | Self::Passed | Self::Failed | Self::Late => false,
        }
    }

    /// Whether the module takes part and has failed, hangs or is held.
    pub(in crate::operator) fn is_lacking(&self) -> bool {
        match self {
            Self::Failed | Self::Late | Self::Held(_) => true,
            Self::Out | Self::Waiting | Self::Running | Self::Passed => false,
        }
    }

    /// Whether the converge waits for the module: its turn has not come, or its run is in its lane.
    pub(in crate::operator) fn is_awaited(&self) -> bool {
        match self {
            Self::Waiting | Self::Running => true,
            Self::Out | Self::Passed | Self::Failed | Self::Late | Self::Held(_) => false,
        }
    }

    /// Whether a run is in the module's lane and has not failed.
    pub(in crate::operator) fn is_under_way(&self) -> bool {
        match self {
            Self::Running | Self::Late => true,
            Self::Out | Self::Waiting | Self::Passed | Self::Failed | Self::Held(_) => false,
        }
    }

    /// The hold that says why the module cannot run; `None` if it is not held.
    pub(in crate::operator) fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Held(hold) => Some(hold),
            Self::Out | Self::Waiting | Self::Running | Self::Passed | Self::Failed | Self::Late => None,
        }
    }

    /// Whether the module cannot run because of its own declaration.
    pub(in crate::operator) fn is_own_fault(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_own_fault)
    }
}
