//! Queues that grow too long: what waits for one hook becomes one task. Only contexts that are told again by a later
//! one of their group are lost.

use super::Operator;
use super::effect::Notice;
use super::policy::Mode;
use super::task::{HookTask, Lane, Task};
use crate::hook::config::ConfigVersion;
use crate::hook::context;
use crate::name::{HookId, Owner};

/// A queue that is longer than this is looked at.
const LONG: usize = 100;
/// A hook with this many tasks in it is what makes it long.
const MANY: usize = 100;

impl Operator {
    /// Appends a hook's run to a lane.
    pub(super) fn push_hook(&mut self, lane: &Lane, task: HookTask) {
        let hook = task.hook.clone();
        self.queues.push(lane.clone(), Task::Hook(task), self.now.tick);
        self.compact(lane, hook);
    }

    fn compact(&mut self, lane: &Lane, hook: HookId) {
        let tasks = self.queues.tasks(lane);
        if tasks.len() <= LONG || !self.is_compactable(&hook) {
            return;
        }
        let of_hook = |task: &Task| is_event_of(task, &hook);
        if tasks.filter(|entry| of_hook(&entry.task)).count() < MANY {
            return;
        }
        let count = self.queues.merge_all(lane, of_hook, merge);
        self.tell(Notice::TasksCompacted {
            queue: lane.queue(),
            hook,
            count,
        });
    }

    /// Runs of hooks of modules and of hooks alone, in the form that can tell more than one thing at once.
    fn is_compactable(&self, hook: &HookId) -> bool {
        let of_kind = self.policy.mode == Mode::Hooks || matches!(hook.owner, Owner::Module(_));
        let config = self.hooks.get(hook);
        of_kind && config.is_some_and(|config| config.version == ConfigVersion::V1)
    }
}

/// A run of the hook other than a first one: what follows a first run must not be told with it or before it.
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
