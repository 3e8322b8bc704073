//! Queues that grow too long: the tasks of one hook are combined into one. Only contexts that a later context of their
//! group repeats are dropped.

use names::{HookId, Owner};

use super::Lanes;
use crate::hook::config::ConfigVersion;
use crate::hook::context;
use crate::operator::bindings::Bindings;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::operator::policy::Mode;
use crate::operator::task::{HookTask, Lane, Task};

/// The number of tasks from which on a queue is searched for tasks to combine.
const LONG: usize = 100;
/// The number of tasks of one hook from which on these tasks are combined.
const MANY: usize = 100;

impl Lanes {
    /// Appends a run of a hook to a lane.
    pub(in crate::operator) fn push_hook(&mut self, cx: &mut Cx, bindings: &Bindings, lane: &Lane, task: HookTask) {
        let hook = task.hook.clone();
        // A task that waits aside comes first: it may have to start the monitors whose snapshots this run needs.
        let aside = Lane::Aside(hook.name.clone());
        let goes_aside = hook.owner == Owner::Global && self.is_aside(&hook.name);
        let lane = if goes_aside { &aside } else { lane };
        self.push(cx, lane.clone(), Task::Hook(task));
        if is_compactable(cx, bindings, lane, &hook) {
            self.compact(cx, lane, hook);
        }
    }

    fn compact(&mut self, cx: &mut Cx, lane: &Lane, hook: HookId) {
        let tasks = self.tasks(lane);
        if tasks.len() <= LONG {
            return;
        }
        let of_hook = |task: &Task| is_event_of(task, &hook);
        if tasks.filter(|entry| of_hook(&entry.task)).count() < MANY {
            return;
        }
        let count = self.queues.merge_all(lane, of_hook, merge);
        cx.tell(Notice::TasksCompacted {
            queue: lane.queue(),
            hook,
            count,
        });
    }
}

/// Whether tasks of the hook may be combined. The hook must belong to a module, wait aside, or run in the mode without
/// modules, and its configuration format must allow several contexts in one run.
fn is_compactable(cx: &Cx, bindings: &Bindings, lane: &Lane, hook: &HookId) -> bool {
    let waits_aside = matches!(lane, Lane::Aside(_));
    let of_kind = cx.policy.mode == Mode::Hooks || hook.owner.module().is_some() || waits_aside;
    let config = bindings.get(hook);
    of_kind && config.is_some_and(|config| config.version == ConfigVersion::V1)
}

/// Whether the task is a run of this hook and not a first run. Later runs must not be combined with a first run.
fn is_event_of(task: &Task, hook: &HookId) -> bool {
    task.as_hook()
        .is_some_and(|task| task.hook == *hook && !task.is_first_run())
}

fn merge(first: &mut Task, others: Vec<Task>) {
    let Task::Hook(first) = first else { return };
    for other in others {
        if let Task::Hook(other) = other {
            first.absorb(other);
        }
    }
    first.contexts = context::compacted(std::mem::take(&mut first.contexts));
}
