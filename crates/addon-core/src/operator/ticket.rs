//! Tickets: the tie between a job and its outcome. A job carries the ticket of the part of the core that wants its outcome, and
//! the outcome brings the ticket back. Its type says which outcomes that part can take.
//!
//! Only the core makes tickets, one for each job. The shell hands them back and must never look into them.

use super::effect::JobId;
use super::event::ReviewId;
use super::task::Lane;
use crate::name::{HookId, ModuleName, Owner};

/// The ticket of one job, whose outcome `W` wants.
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

    /// The name of the job.
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

/// The head of a lane wants the outcome, as that of its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtHead(pub(super) Lane);

/// Why a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFor {
    /// The head of a lane has come to it.
    Head(AtHead),
    /// The API server waits for its answer.
    Review(ReviewId),
}

/// Why hooks are asked for their configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskFor {
    /// The global hooks have to be known before the start.
    Start,
    /// The run or the removal of a module has come to it.
    Head(AtHead),
    /// A standby asks the hooks of this module before their time.
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

/// Why the monitors of a hook are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchFor {
    /// The head of a lane has come to it.
    Head(AtHead, HookId),
    /// A standby watches for this hook before its time.
    Warmth(HookId),
}

/// Why values are held against schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VetFor {
    /// A hook of this owner patched them.
    Patches(Owner),
    /// They stand in the ConfigMap.
    Reading,
}
