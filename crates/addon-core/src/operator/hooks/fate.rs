//! What becomes of a module's life while one of its hooks runs, and what of that which the hook asks for counts then.

use super::Doing;
use crate::hook::cause::Cause;
use crate::name::Owner;
use crate::operator::Operator;
use crate::operator::task::Lane;

/// What became of a module's life while one of its hooks ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// Nothing has.
    GoesOn,
    /// Its monitors begin anew: nothing waits any more for what this one read.
    WatchesAnew,
    /// It is over, also if another one has begun: nothing of what this one asks for counts.
    Over,
}

impl Operator {
    /// The hook that ran stood in line by itself, or hung, and its module was switched off meanwhile: what it asks for has no
    /// place any more, and must not be found by the module's next life, nor come into it.
    pub(in crate::operator) fn came_too_late(&self, lane: &Lane) -> bool {
        let is_late = |doing: &Doing| doing.fate == Fate::Over || !self.is_wanted(&doing.hook);
        self.is_disowned(lane) || self.stands_by_itself(lane) && self.doing.get(lane).is_some_and(is_late)
    }

    /// What hooks of the module do in other queues is nobody's business any more.
    pub(in crate::operator) fn forsake_hooks(&mut self, owner: &Owner) {
        for doing in self.doing.values_mut().filter(|doing| doing.hook.owner == *owner) {
            doing.fate = Fate::Over;
        }
    }

    /// Nobody waits any more for what its hooks do in other queues about objects: its monitors begin anew.
    pub(in crate::operator) fn forsake_runs_for_objects(&mut self, owner: &Owner) {
        let of_objects = |doing: &&mut Doing| doing.hook.owner == *owner && doing.labels.cause == Cause::Objects;
        for doing in self.doing.values_mut().filter(of_objects) {
            doing.fate = doing.fate.max(Fate::WatchesAnew);
        }
    }
}
