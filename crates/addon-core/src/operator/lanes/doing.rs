//! The hooks that heads of lanes run, and what becomes of their modules' lives meanwhile.

use std::collections::BTreeMap;

use super::Lanes;
use crate::hook::cause::Cause;
use crate::name::{HookId, MonitorId, Owner};
use crate::operator::effect::HookLabels;
use crate::operator::task::Lane;
use crate::time::Tick;

/// The hook that the head of a lane runs.
#[derive(Debug, Clone)]
pub(in crate::operator) struct Doing {
    pub(in crate::operator) hook: HookId,
    pub(in crate::operator) labels: HookLabels,
    pub(in crate::operator) allow_failure: bool,
    pub(in crate::operator) began: Tick,
    /// The monitors whose first run it is.
    pub(in crate::operator) first_runs: Vec<MonitorId>,
    /// The fate of its module's life since it began.
    pub(in crate::operator) fate: Fate,
    /// Up to which change it read each snapshot.
    pub(in crate::operator) read: BTreeMap<MonitorId, u64>,
}

/// The fate of a module's life while one of its hooks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::operator) enum Fate {
    /// It goes on.
    GoesOn,
    /// Its monitors begin anew: nothing waits any more for the objects that this run read.
    WatchesAnew,
    /// It is over, also if another one has begun: nothing of what this run asks for counts.
    Over,
}

impl Lanes {
    /// The hook that the head of a lane runs.
    pub(in crate::operator) fn doing(&self, lane: &Lane) -> Option<&Doing> {
        self.doing.get(lane)
    }

    /// The head of a lane begins to run a hook.
    pub(in crate::operator) fn begin_hook(&mut self, lane: &Lane, doing: Doing) {
        self.doing.insert(lane.clone(), doing);
    }

    /// The hook of a lane has read its snapshots up to these changes.
    pub(in crate::operator) fn hook_read(&mut self, lane: &Lane, read: BTreeMap<MonitorId, u64>) {
        if let Some(doing) = self.doing.get_mut(lane) {
            doing.read = read;
        }
    }

    /// The hook of a lane is over.
    pub(in crate::operator) fn end_hook(&mut self, lane: &Lane) -> Option<Doing> {
        self.doing.remove(lane)
    }

    /// A life of the owner is over: nothing counts of what its hooks do in other queues.
    pub(in crate::operator) fn forsake_hooks(&mut self, owner: &Owner) {
        for doing in self.doing.values_mut().filter(|doing| doing.hook.owner == *owner) {
            doing.fate = Fate::Over;
        }
    }

    /// The owner's monitors begin anew: nothing waits any more for what its hooks do in other queues about objects.
    pub(in crate::operator) fn forsake_runs_for_objects(&mut self, owner: &Owner) {
        let of_objects = |doing: &&mut Doing| doing.hook.owner == *owner && doing.labels.cause == Cause::Objects;
        for doing in self.doing.values_mut().filter(of_objects) {
            doing.fate = doing.fate.max(Fate::WatchesAnew);
        }
    }
}
