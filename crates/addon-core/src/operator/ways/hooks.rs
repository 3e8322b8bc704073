//! The way of a hook into a job. The head of its lane may be a hook task, a converge, a run or a removal.

use std::collections::BTreeMap;

use clock::Tick;
use names::{HookId, Owner};

use crate::hook::cause::Cause;
use crate::hook::config::{ConfigVersion, Stage};
use crate::hook::context::{self, BindingContext};
use crate::operator::Operator;
use crate::operator::effect::{HookLabels, HookRun, Job, Notice};
use crate::operator::lanes::{Admission, Doing, Fate};
use crate::operator::loops::Request;
use crate::operator::policy::Mode;
use crate::operator::task::{HookTask, Lane, Task, Trigger};
use crate::values::Globals;

impl Operator {
    /// Advances a hook task. False if it must wait for a slot.
    pub(super) fn advance_hook(&mut self, lane: &Lane) -> bool {
        let Some(task) = self.lanes.head(lane).and_then(|head| head.task.as_hook()) else {
            return false;
        };
        let hook = task.hook.clone();
        if !self.modules.take_changes(&hook) {
            self.lanes.finish(&self.cx, lane);
            return true;
        }
        if task.is_skipped {
            let first_runs = task.first_runs.clone();
            self.lanes.begin_head(&mut self.cx, lane);
            self.lanes.finish(&self.cx, lane);
            self.first_run_over(&first_runs, &BTreeMap::new());
            return true;
        }
        if self.hold_back(lane, &hook) {
            return true;
        }
        if self.tells_of_all_in(lane) && self.lanes.spreads_out(&self.cx, &self.bindings, lane, &hook) {
            return true;
        }
        match self.lanes.admit(&self.cx, &self.jobs, &self.bindings, lane, &hook) {
            Admission::Now => {}
            Admission::NoSlot => return false,
            Admission::Later => return true,
        }
        self.lanes.begin_head(&mut self.cx, lane);
        if let Some(task) = self.combine(lane) {
            self.start_hook(lane, task);
        }
        true
    }

    /// Puts the runs of the hook at the head of a lane aside, if the hook causes its own runs too often. If a run for a
    /// change by others waits behind them, they run at once.
    fn hold_back(&mut self, lane: &Lane, hook: &HookId) -> bool {
        let head = self.lanes.head(lane).filter(|head| !head.begun);
        let is_of_changes = |task: &&HookTask| task.trigger == Trigger::Objects && !task.is_first_run();
        let Some(task) = head.and_then(|head| head.task.as_hook()).filter(is_of_changes) else {
            return false;
        };
        let wait = self.loops.wait_of(hook, self.cx.now.tick);
        if !self.is_own(hook, &task.origins) {
            let doubt = self.loops.doubt(&task.origins, self.cx.now.tick);
            if let Some(until) = doubt.filter(|_| wait.is_some()) {
                self.hold_in_doubt(lane, hook, until);
                return true;
            }
            self.let_go_before(lane, hook);
            return false;
        }
        let Some(wait) = wait else { return false };
        let is_foreign = |task: &HookTask| task.hook == *hook && !self.is_own(hook, &task.origins);
        let behind = self.lanes.behind_head(lane);
        if behind.filter_map(|entry| entry.task.as_hook()).any(is_foreign) {
            return false;
        }
        if let Some(task) = self.combine(lane) {
            self.lanes.finish(&self.cx, lane);
            self.put_aside(hook, wait, Request::Hook(lane.clone(), Box::new(task)));
        }
        true
    }

    /// Puts the runs aside for a moment, if the hook has to wait: in that time it may turn out that a hook caused them.
    fn hold_in_doubt(&mut self, lane: &Lane, hook: &HookId, until: Tick) {
        let Some(task) = self.combine(lane) else { return };
        self.lanes.finish(&self.cx, lane);
        self.loops
            .put_aside(hook, until, Request::Hook(lane.clone(), Box::new(task)));
    }

    /// Moves the contexts of directly following runs of the same hook into the head of the lane. Returns the combined run.
    fn combine(&mut self, lane: &Lane) -> Option<HookTask> {
        let mut tasks = self.lanes.tasks(lane).map(|entry| entry.task.as_hook());
        let head = tasks.next()??;
        let belongs = |next: Option<&HookTask>| next.is_some_and(|next| self.belongs(head, next));
        let count = tasks.take_while(|next| belongs(*next)).count();
        let merged = self.lanes.merge_into_head(lane, count);
        let task = self.lanes.head_hook_mut(lane)?;
        for merged in merged {
            if let Task::Hook(merged) = merged {
                task.absorb(merged);
            }
        }
        task.contexts = context::combined(std::mem::take(&mut task.contexts));
        Some(task.clone())
    }

    /// Whether the contexts of the next run may be combined with the head's contexts.
    pub(super) fn belongs(&self, head: &HookTask, next: &HookTask) -> bool {
        let config = self.bindings.get(&head.hook);
        if head.hook != next.hook || config.is_some_and(|config| config.version == ConfigVersion::V0) {
            return false;
        }
        let is_grouped = head.contexts.first().is_some_and(|context| context.group().is_some());
        match self.cx.policy.mode {
            Mode::Hooks => !head.is_first_run() || is_grouped,
            Mode::Addons => {
                let waits = |task: &HookTask| {
                    let first = *task.first_runs.first()?;
                    let served = self.monitors.binding_of(&self.bindings, first)?;
                    Some(served.binding.wait_for_synchronization)
                };
                let both = head.is_first_run() && next.is_first_run();
                !both || (waits(head) == waits(next) && head.is_skipped == next.is_skipped)
            }
        }
    }

    /// Whether the run at the head of the lane reports changes of objects, and can be combined with all tasks behind it
    /// and with further changes.
    fn tells_of_all_in(&self, lane: &Lane) -> bool {
        let mut tasks = self.lanes.tasks(lane).map(|entry| entry.task.as_hook());
        let Some(head) = tasks.next().flatten() else {
            return false;
        };
        let is_of_changes = head.trigger == Trigger::Objects && !head.is_first_run();
        let belongs = |next: Option<&HookTask>| next.is_some_and(|next| self.belongs(head, next));
        is_of_changes && belongs(Some(head)) && tasks.all(belongs)
    }

    /// The run of a hook at a stage of the operator or of a module.
    pub(super) fn stage_task(&self, stage: Stage, hook: HookId) -> HookTask {
        let config = self.bindings.get(&hook);
        let context = config.map(|config| BindingContext::stage(stage, config));
        // Without modules, start-up hooks have no queue and no binding name.
        let (binding_name, queue) = match self.cx.policy.mode {
            Mode::Hooks => ("", ""),
            Mode::Addons => (stage.key(), "main"),
        };
        HookTask {
            trigger: Trigger::Startup,
            labels: HookLabels {
                cause: Cause::Stage(stage),
                binding_name: binding_name.to_owned(),
                queue: queue.to_owned(),
                activation: self.converge.activation(),
            },
            contexts: context.into_iter().collect(),
            allow_failure: false,
            deadline: self.cx.policy.deadline_of(config.and_then(|config| config.timeout)),
            first_runs: Vec::new(),
            is_skipped: false,
            origins: Vec::new(),
            hook,
        }
    }

    /// Starts a hook that is a step of the head of a lane.
    pub(super) fn start_stage_hook(&mut self, lane: &Lane, stage: Stage, hook: HookId) {
        let task = self.stage_task(stage, hook);
        self.start_hook(lane, task);
    }

    /// Starts a hook as a job of the head of a lane.
    pub(super) fn start_hook(&mut self, lane: &Lane, mut task: HookTask) {
        self.note_lineage(lane, &mut task);
        let HookTask {
            hook,
            labels,
            contexts,
            allow_failure,
            deadline,
            first_runs,
            is_skipped: _,
            origins: _,
            trigger: _,
        } = task;
        self.lanes.take_token(&self.cx, &self.bindings, lane, &hook);
        self.monitors.first_run_begins(&first_runs);
        self.cx.tell(Notice::HookStarted {
            hook: hook.clone(),
            labels: labels.clone(),
        });
        let version = self.bindings.version(&hook);
        let globals = self.globals_for(lane, &hook.owner);
        let run = HookRun {
            version,
            snapshots: self.monitors.snapshots_of(&self.bindings, &hook, &contexts),
            contexts,
            values: self.values.hook_values_under(&globals, &hook.owner),
            config_values: self.values.config_values_under(&globals, &hook.owner),
            deadline,
            labels: labels.clone(),
            secrecy: self.values.hook_secrecy(&hook.owner),
            hook: hook.clone(),
        };
        let job = self
            .lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::RunHook(run, ticket));
        let doing = Doing {
            hook,
            labels,
            allow_failure,
            began: self.cx.now.tick,
            first_runs,
            fate: Fate::GoesOn,
            read: BTreeMap::new(),
            job,
        };
        self.lanes.begin_hook(lane, doing);
    }

    /// The global values for a hook: if the hook is a step of a run, the run's global values, else the current ones.
    fn globals_for(&self, lane: &Lane, owner: &Owner) -> Globals {
        let in_run = self.lanes.head(lane).is_some_and(|head| head.task.is_run());
        match owner.module().filter(|_| in_run) {
            Some(name) => self.survey().globals_of_run(name),
            None => self.values.globals(),
        }
    }
}
