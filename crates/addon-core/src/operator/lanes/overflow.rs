//! Queues that grow too long: what waits for one hook becomes one task. Only contexts that are told again by a later
//! one of their group are lost.

use super::Lanes;
use crate::hook::config::ConfigVersion;
use crate::hook::context;
use crate::name::HookId;
use crate::operator::bindings::Bindings;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::operator::policy::Mode;
use crate::operator::task::{HookTask, Lane, Task};

/// A queue that is longer than this is looked at.
const LONG: usize = 100;
/// A hook with this many tasks in it is what makes it long.
const MANY: usize = 100;

impl Lanes {
    /// Appends a hook's run to a lane.
    pub(in crate::operator) fn push_hook(&mut self, cx: &mut Cx, bindings: &Bindings, lane: &Lane, task: HookTask) {
        let hook = task.hook.clone();
        self.push(cx, lane.clone(), Task::Hook(task));
        if is_compactable(cx, bindings, &hook) {
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

/// Runs of hooks of modules and of hooks alone, in the form that can tell more than one thing at once.
fn is_compactable(cx: &Cx, bindings: &Bindings, hook: &HookId) -> bool {
    let of_kind = cx.policy.mode == Mode::Hooks || hook.owner.module().is_some();
    let config = bindings.get(hook);
    of_kind && config.is_some_and(|config| config.version == ConfigVersion::V1)
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
