//! The metrics of queues. Must never store the length of a queue: the operator value reports it at each scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::operator::query::QueueReport;

use super::{Meters, count, table};

/// The number of tasks of one hook in a queue above which the hook gets a series.
const CROWD: usize = 20;

/// The operations on a queue, with the original's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueAction {
    /// A task goes in front of all others.
    AddFirst,
    /// A task goes to the end.
    AddLast,
    /// The first task is read.
    GetFirst,
    /// The first task is done.
    RemoveFirst,
    /// Tasks are removed because they were combined with others.
    DeleteFunc,
    /// The tasks are listed.
    IterateSnapshot,
}

impl QueueAction {
    fn label(self) -> &'static str {
        match self {
            Self::AddFirst => "AddFirst",
            Self::AddLast => "AddLast",
            Self::GetFirst => "GetFirst",
            Self::RemoveFirst => "RemoveFirst",
            Self::DeleteFunc => "DeleteFunc",
            Self::IterateSnapshot => "IterateSnapshot",
        }
    }
}

/// Whether the durations of queue operations are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueActions {
    Counted,
    NotCounted,
}

impl Meters {
    /// Records the duration of an operation on a queue.
    pub fn queue_action(&self, queue: &str, action: QueueAction, took: Duration) {
        if self.queue_actions == QueueActions::Counted {
            self.observe(&table::TASKS_QUEUE_ACTION_SECONDS, [queue, action.label()], took);
        }
    }

    /// Counts a compaction: a hook's tasks were combined because the queue was long.
    pub fn queue_compacted(&self, queue: &str, hook: &str) {
        self.add(&table::TASKS_QUEUE_COMPACTED, [queue, hook], 1.0);
    }
}

/// The hooks with many tasks in one queue, with the number of these tasks.
pub(super) fn crowds(queues: &[QueueReport]) -> impl Iterator<Item = ([&str; 2], f64)> {
    let mut tasks: BTreeMap<[&str; 2], usize> = BTreeMap::new();
    for queue in queues {
        for task in queue.tasks.iter().filter(|task| !task.hook.is_empty()) {
            *tasks.entry([&queue.name, &task.hook]).or_default() += 1;
        }
    }
    let crowds = tasks.into_iter().filter(|(_, tasks)| *tasks > CROWD);
    crowds.map(|(labels, tasks)| (labels, count(tasks)))
}
