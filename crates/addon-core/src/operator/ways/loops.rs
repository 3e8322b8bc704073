//! The ways of runs that their own hooks cause. Runs that come too often are put aside, and are queued again when their
//! wait is over or a change by others comes.

use std::collections::BTreeSet;

use names::{HookId, ModuleName};

use crate::operator::Operator;
use crate::operator::effect::{Notice, Slowed};
use crate::operator::event::ObjectChange;
use crate::operator::loops::{Lineage, Loops, Origin, Request, Wait};
use crate::operator::task::{HookTask, Lane, Reason, RunReason, Task, Trigger};

impl Operator {
    /// The origin of a change, to be judged when the hook runs: until then more may be known about writes of hooks.
    pub(super) fn origin_of(&mut self, change: &ObjectChange) -> Origin {
        let release = change.release.as_ref();
        let release = release.filter(|name| self.modules.contains(name));
        let lineage = release.map(|name| self.loops.of_release(name, self.cx.now.tick));
        let lineage = self.of_tool(change).or(lineage);
        Loops::origin(change, lineage.unwrap_or_default(), self.cx.now.tick)
    }

    /// The lineage of a change that a tool made while the hook that watches the object was running.
    fn of_tool(&mut self, change: &ObjectChange) -> Option<Lineage> {
        let served = self.monitors.binding_of(&self.bindings, change.monitor)?;
        let hook = change.by_tool.then_some(served.hook)?;
        self.loops.tool_wrote(hook, &change.name)
    }

    /// Whether all these changes follow from deeds of the hook, or another writer made them to undo the same deed of
    /// the hook again and again.
    pub(super) fn is_own(&self, hook: &HookId, origins: &[Origin]) -> bool {
        self.loops.of_changes(origins).has(hook) || self.loops.is_contest(hook, origins)
    }

    pub(super) fn put_aside(&mut self, hook: &HookId, wait: Wait, request: Request) {
        self.loops.put_aside(hook, wait.until, request);
        if self.loops.tells_of(hook, wait.until) {
            self.cx.tell(Notice::Slowed(Slowed::Hook {
                hook: hook.clone(),
                deed: wait.deed,
                times: wait.times,
                next_in: wait.until - self.cx.now.tick,
            }));
        }
    }

    /// Puts the waiting runs of a hook in front of the head of the lane, because the head reports a change by others.
    pub(super) fn let_go_before(&mut self, lane: &Lane, hook: &HookId) {
        let (before, others): (Vec<_>, Vec<_>) = self
            .loops
            .end_wait(hook)
            .into_iter()
            .partition(|request| matches!(request, Request::Hook(of, _) if of == lane));
        let tasks = before.into_iter().filter_map(|request| match request {
            Request::Hook(_, task) => Some(Task::Hook(*task)),
            Request::Run(..) | Request::Converge(..) => None,
        });
        let tasks: Vec<Task> = tasks.collect();
        if !tasks.is_empty() {
            self.lanes.push_front(&self.cx, lane, tasks);
        }
        self.let_go(others);
    }

    /// Notes the lineage of a hook that is about to run.
    pub(super) fn note_lineage(&mut self, lane: &Lane, task: &mut HookTask) {
        let origins = std::mem::take(&mut task.origins);
        let is_neutral = task.is_first_run() || task.trigger == Trigger::Schedule;
        let lineage = match (self.lanes.stands_by_itself(lane), is_neutral) {
            (_, true) => Lineage::FOREIGN,
            (true, false) => self.loops.of_changes(&origins),
            (false, false) => self.loops.of_head(lane),
        };
        if !is_neutral && !lineage.has(&task.hook) && !self.loops.is_contest(&task.hook, &origins) {
            let ended = self.loops.end_wait(&task.hook);
            self.let_go(ended);
        }
        self.loops.hook_begins(lane, &task.hook, lineage, is_neutral, origins);
    }

    /// Carries out the requests whose wait is over.
    pub(super) fn let_go_due(&mut self) {
        let due = self.loops.due(self.cx.now.tick);
        self.let_go(due);
    }

    fn let_go(&mut self, requests: Vec<Request>) {
        for request in requests {
            match request {
                Request::Hook(lane, task) => self.lanes.push_hook(&mut self.cx, &self.bindings, &lane, *task),
                Request::Run(name, reason, lineage) => self.rerun_after(&name, reason, &lineage),
                Request::Converge(reason, lineage) => self.converge_after(reason, lineage),
            }
        }
    }

    /// Runs a module once more because of deeds of hooks. If one of these hooks repeats its deed too often, the run
    /// comes later.
    pub(super) fn rerun_for(
        &mut self,
        name: &ModuleName,
        reason: RunReason,
        hooks: &BTreeSet<HookId>,
        lineage: Lineage,
    ) {
        match self.longest_wait(hooks) {
            Some((hook, wait)) if !self.is_run_queued(name) => {
                self.put_aside(&hook, wait, Request::Run(name.clone(), reason, lineage));
            }
            _ => self.rerun_after(name, reason, &lineage),
        }
    }

    /// Whether a run of the module is queued that will see all changes until now.
    fn is_run_queued(&self, name: &ModuleName) -> bool {
        let lane = Lane::Module(name.clone());
        self.lanes.tasks(&lane).any(|entry| entry.task.is_run() && !entry.begun)
    }

    /// Asks for a converge because of deeds of hooks. If one of these hooks repeats its deed too often, the converge
    /// comes later.
    pub(super) fn converge_for(&mut self, reason: Reason, hooks: &BTreeSet<HookId>, lineage: Lineage) {
        match self.longest_wait(hooks) {
            Some((hook, wait)) => self.put_aside(&hook, wait, Request::Converge(reason, lineage)),
            None => self.converge_after(reason, lineage),
        }
    }

    /// The longest wait of these hooks.
    pub(super) fn longest_wait(&self, hooks: &BTreeSet<HookId>) -> Option<(HookId, Wait)> {
        let waits = hooks
            .iter()
            .filter_map(|hook| Some((hook.clone(), self.loops.wait_of(hook, self.cx.now.tick)?)));
        waits.max_by_key(|(_, wait)| wait.until)
    }

    fn rerun_after(&mut self, name: &ModuleName, reason: RunReason, lineage: &Lineage) {
        let is_new = !self.is_run_queued(name);
        self.loops.run_asked(name, lineage, is_new);
        self.queue_run(name, reason);
    }

    fn converge_after(&mut self, reason: Reason, lineage: Lineage) {
        let waits = self
            .lanes
            .tasks(&Lane::Global)
            .any(|entry| entry.task.is_converge() && !entry.begun);
        self.loops.converge_asked(lineage, !waits);
        self.converge.request(&self.cx, &mut self.lanes, reason, false);
    }
}
