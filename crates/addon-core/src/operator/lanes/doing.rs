//! The hooks that heads of lanes run, and whether the life of their module goes on meanwhile.

use std::collections::BTreeMap;

use clock::Tick;
use names::{HookId, MonitorId, Owner};

use super::Lanes;
use crate::hook::cause::Cause;
use crate::operator::effect::{HookLabels, JobId};
use crate::operator::task::Lane;

/// The hook that the head of a lane runs.
#[derive(Debug, Clone)]
pub(in crate::operator) struct Doing {
    pub(in crate::operator) hook: HookId,
    pub(in crate::operator) labels: HookLabels,
    pub(in crate::operator) allow_failure: bool,
    pub(in crate::operator) began: Tick,
    /// The monitors for which this run is the first run; empty for other runs.
    pub(in crate::operator) first_runs: Vec<MonitorId>,
    /// Whether the life of the hook's module has gone on since the run began.
    pub(in crate::operator) fate: Fate,
    /// For each snapshot that the hook read, the number of the last change in it.
    pub(in crate::operator) read: BTreeMap<MonitorId, u64>,
    /// The job of the run. Its outcome goes to the lane that the run is in by then.
    pub(in crate::operator) job: JobId,
}

/// The fate of a module's life while one of its hooks ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::operator) enum Fate {
    /// The life goes on.
    GoesOn,
    /// The module's monitors begin anew, so the objects that this run read no longer matter.
    WatchesAnew,
    /// The life is over, even if another one has begun: the output of this run is dropped.
    Over,
}

impl Lanes {
    /// The hook that the head of a lane runs.
    pub(in crate::operator) fn doing(&self, lane: &Lane) -> Option<&Doing> {
        self.doing.get(lane)
    }

    /// Notes that the head of a lane begins to run a hook.
    pub(in crate::operator) fn begin_hook(&mut self, lane: &Lane, doing: Doing) {
        self.doing.insert(lane.clone(), doing);
    }

    /// Notes, for each snapshot that the lane's hook has read, the number of the last change in it.
    pub(in crate::operator) fn hook_read(&mut self, lane: &Lane, read: BTreeMap<MonitorId, u64>) {
        if let Some(doing) = self.doing.get_mut(lane) {
            doing.read = read;
        }
    }

    /// The lane whose head runs the hook of this job now. The job began in the lane `at`.
    pub(in crate::operator) fn lane_of(&self, job: JobId, at: &Lane) -> Lane {
        let mut doing = self.doing.iter();
        let found = doing.find(|(_, doing)| doing.job == job).map(|(lane, _)| lane);
        found.unwrap_or(at).clone()
    }

    /// Moves the running hook at the head of one lane to the head of another lane. Returns the job of the run.
    pub(in crate::operator) fn move_run(&mut self, from: &Lane, to: &Lane) -> Option<JobId> {
        let doing = self.doing.remove(from)?;
        let job = doing.job;
        self.doing.insert(to.clone(), doing);
        Some(job)
    }

    /// Notes that the hook of a lane has ended.
    pub(in crate::operator) fn end_hook(&mut self, lane: &Lane) -> Option<Doing> {
        self.doing.remove(lane)
    }

    /// Notes that a life of the owner is over: the output of its hooks that run in other queues will be dropped.
    pub(in crate::operator) fn forsake_hooks(&mut self, owner: &Owner) {
        for doing in self.doing.values_mut().filter(|doing| doing.hook.owner == *owner) {
            doing.fate = Fate::Over;
        }
    }

    /// Notes that the owner's monitors begin anew: the snapshots that its hooks in other queues have read do not matter
    /// any more.
    pub(in crate::operator) fn forsake_runs_for_objects(&mut self, owner: &Owner) {
        let of_objects = |doing: &&mut Doing| doing.hook.owner == *owner && doing.labels.cause == Cause::Objects;
        for doing in self.doing.values_mut().filter(of_objects) {
            doing.fate = doing.fate.max(Fate::WatchesAnew);
        }
    }
}
