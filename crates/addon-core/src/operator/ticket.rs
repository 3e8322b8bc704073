//! Tickets: the tie between a job and its outcome. A job carries the ticket of the part of the core that wants its
//! outcome, and the outcome brings the ticket back. The ticket's type says which outcomes that part can take.
//!
//! Only the core makes tickets, one for each job. The shell hands them back and must never look into them.

use names::{HookId, ModuleName, Owner};

use super::effect::JobId;
use super::event::ReviewId;
use super::task::Lane;

/// The ticket of one job. `W` is the type of the part of the core that wants the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket<W> {
    id: JobId,
    wanted_by: W,
}

impl<W> Ticket<W> {
    /// The ticket of a job that is about to start.
    pub(super) fn new(id: JobId, wanted_by: W) -> Self {
        Self { id, wanted_by }
    }

    /// The id of the job.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The part of the core that wants the outcome.
    pub(super) fn wanted_by(&self) -> &W {
        &self.wanted_by
    }

    pub(super) fn into_wanted_by(self) -> W {
        self.wanted_by
    }
}

/// The head of a lane wants the outcome of this step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtHead(pub(super) Lane);

/// The part of the core that wants the outcome of a hook's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFor {
    /// The hook is a step of the head of a lane.
    Head(AtHead),
    /// The API server waits for the hook's answer.
    Review(ReviewId),
}

/// The reason for which hooks are asked for their configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskFor {
    /// The global hooks have to be known before the start.
    Start,
    /// The hooks are needed for the run or the removal of a module.
    Head(AtHead),
    /// A standby prepares: it asks the hooks of this module before the module runs.
    Warmth(ModuleName),
}

impl From<AtHead> for RunFor {
    fn from(head: AtHead) -> Self {
        Self::Head(head)
    }
}

impl From<AtHead> for AskFor {
    fn from(head: AtHead) -> Self {
        Self::Head(head)
    }
}

/// The reason for which the monitors of a hook are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchFor {
    /// A step of a lane's head starts the monitors of this hook.
    Head(AtHead, HookId),
    /// A standby prepares: it watches for this hook before the hook runs.
    Warmth(HookId),
}

/// The reason for which values are checked against schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VetFor {
    /// A hook of the owner patched its values.
    Patches(Owner),
    /// The values were read from the ConfigMap.
    Reading,
}
