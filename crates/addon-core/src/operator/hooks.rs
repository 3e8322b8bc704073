//! Running one hook at the head of a lane, whatever the head is: a task of its own, a converge, a run, a removal.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Operator;
use super::effect::{HookLabels, HookRun, Job, Notice};
use super::event::{HookRan, Usage};
use super::lanes::{Admission, Doing, Fate};
use super::policy::Mode;
use super::task::{HookTask, Lane, Reason, RunReason, Task};
use crate::failure::{Class, Failure};
use crate::hook::cause::Cause;
use crate::hook::config::{ConfigVersion, Stage};
use crate::hook::context::{self, BindingContext};
use crate::name::{HookId, ModuleName, MonitorId, Owner};
use crate::values::patch::FlagOp;
use crate::values::{Change, Globals};

impl Operator {
    /// Lets a hook that stands in line by itself run. False if it must wait for a slot.
    pub(super) fn advance_hook(&mut self, lane: &Lane) -> bool {
        let Some(task) = self.lanes.head(lane).and_then(|head| head.task.as_hook()) else {
            return false;
        };
        let hook = task.hook.clone();
        if !self.is_wanted(&hook) {
            self.lanes.finish(lane);
            return true;
        }
        if task.is_skipped {
            let first_runs = task.first_runs.clone();
            self.lanes.begin_head(&mut self.cx, lane);
            self.lanes.finish(lane);
            self.first_run_over(&first_runs, &BTreeMap::new());
            return true;
        }
        match self.lanes.admit(&self.cx, &self.jobs, &self.bindings, (lane, &hook)) {
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

    /// The hook that ran stood in line by itself, or hung, and its module was switched off meanwhile: what it asks for has no
    /// place any more, and must not be found by the module's next life, nor come into it.
    pub(super) fn came_too_late(&self, lane: &Lane) -> bool {
        let is_late = |doing: &Doing| doing.fate == Fate::Over || !self.is_wanted(&doing.hook);
        self.is_disowned(lane) || self.lanes.stands_by_itself(lane) && self.lanes.doing(lane).is_some_and(is_late)
    }

    /// Hooks of a module that is switched off, or not yet started, are not run.
    fn is_wanted(&self, hook: &HookId) -> bool {
        match &hook.owner {
            Owner::Global => true,
            Owner::Module(name) => self
                .modules
                .get(name)
                .is_some_and(|unit| unit.enabled && unit.life.takes_changes()),
        }
    }

    /// Takes the contexts of directly following runs of the same hook into the head of the lane. Returns the run that it is now.
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

    /// What the next run would tell may be told with this one.
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

    /// A hook at its place in the life of the operator or of a module.
    pub(super) fn stage_task(&self, stage: Stage, hook: HookId) -> HookTask {
        let config = self.bindings.get(&hook);
        let context = config.map(|config| BindingContext::stage(stage, config));
        // Where hooks are alone, start-up is in no queue and under no name.
        let (binding_name, queue) = match self.cx.policy.mode {
            Mode::Hooks => ("", ""),
            Mode::Addons => (stage.key(), "main"),
        };
        HookTask {
            labels: HookLabels {
                cause: Cause::Stage(stage),
                binding_name: binding_name.to_owned(),
                queue: queue.to_owned(),
                activation: self.converge.activation(),
            },
            contexts: context.into_iter().collect(),
            allow_failure: false,
            deadline: self.deadline(config.and_then(|config| config.timeout)),
            first_runs: Vec::new(),
            is_skipped: false,
            hook,
        }
    }

    /// How long a run may take whose hook or binding says this.
    pub(super) fn deadline(&self, said: Option<Duration>) -> Duration {
        said.unwrap_or(self.cx.policy.hook_deadline)
    }

    /// Starts a hook that is a step of the head of a lane.
    pub(super) fn start_stage_hook(&mut self, lane: &Lane, stage: Stage, hook: HookId) {
        let task = self.stage_task(stage, hook);
        self.start_hook(lane, task);
    }

    /// Starts a hook as a job of the head of a lane.
    pub(super) fn start_hook(&mut self, lane: &Lane, task: HookTask) {
        let HookTask {
            hook,
            labels,
            contexts,
            allow_failure,
            deadline,
            first_runs,
            is_skipped: _,
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
            hook: hook.clone(),
        };
        let doing = Doing {
            hook,
            labels,
            allow_failure,
            began: self.cx.now.tick,
            first_runs,
            fate: Fate::GoesOn,
            read: BTreeMap::new(),
        };
        self.lanes.begin_hook(lane, doing);
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::RunHook(run, ticket));
    }

    /// The global values that a hook sees: those of the run that it is a step of, else those of now.
    fn globals_for(&self, lane: &Lane, owner: &Owner) -> Globals {
        let in_run = self.lanes.head(lane).is_some_and(|head| head.task.is_run());
        match owner.module().filter(|_| in_run) {
            Some(name) => self.globals_of_run(name),
            None => self.values.globals(),
        }
    }

    /// A hook ran and what it patched is in force.
    pub(super) fn hook_succeeded(&mut self, lane: &Lane, usage: Usage, change: &Change) {
        let Some(doing) = self.lanes.end_hook(lane) else { return };
        self.cx.tell(Notice::HookSucceeded {
            hook: doing.hook.clone(),
            labels: doing.labels.clone(),
            usage,
        });
        self.lanes.succeeded(lane);
        self.bindings.spoke(doing.hook.clone());
        self.take_flags(&change.flags);
        let is_awaited = self.is_step_of_start(&doing);
        self.first_run_over(&doing.first_runs, &doing.read);
        self.hook_over(lane, &doing, change.values_changed && !is_awaited);
    }

    /// A hook counts as failed although its config patch is in force: what depends on that follows now, for the hook's
    /// next run will find nothing to change.
    pub(super) fn hook_half_succeeded(&mut self, lane: &Lane, change: &Change, failure: Failure) {
        let follows = self.lanes.doing(lane).filter(|_| change.values_changed).cloned();
        let follows = follows.filter(|doing| self.lanes.stands_by_itself(lane) && !self.is_step_of_start(doing));
        self.take_flags(&change.flags);
        self.hook_counts_as_failed(lane, failure);
        if let Some(doing) = follows {
            self.follow_change(&doing);
        }
    }

    /// The hook ran for what was there at first, and its module has not come to its release, which will see what it set.
    fn is_step_of_start(&self, doing: &Doing) -> bool {
        let unit = doing.hook.owner.module().and_then(|name| self.modules.get(name));
        !doing.first_runs.is_empty() && unit.is_some_and(|unit| !unit.life.takes_events())
    }

    /// What a hook said about modules' flags counts from now on.
    fn take_flags(&mut self, flags: &[FlagOp]) {
        let mut changed = Vec::new();
        for flag in flags {
            if let Some(unit) = self.modules.get_mut(&flag.module)
                && unit.dynamic != flag.opinion
            {
                unit.dynamic = flag.opinion;
                changed.push(&flag.module);
            }
        }
        for module in &changed {
            // Its section may have waited for a removal that does not come any more.
            self.apply_what_nothing_holds(module);
        }
        if !changed.is_empty() {
            self.reassess(Reason::DynamicUpdate, std::collections::BTreeSet::new());
        }
    }

    /// The head of the lane has its hook behind it.
    fn hook_over(&mut self, lane: &Lane, doing: &Doing, values_changed: bool) {
        let Some(head) = self.lanes.head(lane) else { return };
        match &head.task {
            Task::Hook(_) => {
                self.lanes.finish(lane);
                if values_changed {
                    self.follow_change(doing);
                }
            }
            Task::Converge(_) => self.all_hook_succeeded(),
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module } => {
                let module = module.clone();
                // How far a first run brought the module was settled when it was over.
                if doing.first_runs.is_empty() {
                    self.step_succeeded(&module);
                }
                self.lanes.resume(lane);
            }
            Task::EnableKubernetes(_) | Task::EnableSchedules(_) | Task::AwaitFirstRuns | Task::Purge { .. } => {}
        }
    }

    /// A hook that stood in line by itself changed values.
    fn follow_change(&mut self, doing: &Doing) {
        let (reason, run_reason) = match doing.labels.cause {
            Cause::Schedule => (Reason::ScheduleChange, RunReason::ScheduleChange),
            Cause::Objects => (Reason::KubernetesChange, RunReason::KubernetesChange),
            Cause::Stage(_) | Cause::Validating | Cause::Mutating | Cause::Conversion => return,
        };
        match &doing.hook.owner {
            Owner::Global if self.cx.policy.mode == Mode::Hooks => {}
            Owner::Global => self.request_converge(reason, false),
            Owner::Module(name) => self.rerun(name, run_reason),
        }
    }

    /// The hook of a lane has ended.
    pub(super) fn hook_finished(&mut self, lane: &Lane, result: Result<HookRan, Failure>) {
        match result {
            Ok(ran) => {
                self.lanes.hook_read(lane, ran.read);
                self.hook_ran(lane, ran.output, ran.usage);
            }
            Err(failure) => self.hook_failed(lane, failure),
        }
    }

    /// A hook ran and failed.
    fn hook_failed(&mut self, lane: &Lane, failure: Failure) {
        let Some(hook) = self.lanes.doing(lane).map(|doing| &doing.hook) else {
            return;
        };
        let failure = self.of_hook(hook, failure);
        self.hook_counts_as_failed(lane, failure);
    }

    /// The hook of a lane counts as failed, for a reason that names it.
    pub(super) fn hook_counts_as_failed(&mut self, lane: &Lane, failure: Failure) {
        let Some(doing) = self.lanes.end_hook(lane) else {
            return;
        };
        let took = self.cx.now.tick - doing.began;
        if failure.class != Class::Defect && doing.allow_failure || doing.fate != Fate::GoesOn {
            self.cx.tell(Notice::HookFailed {
                hook: doing.hook.clone(),
                labels: doing.labels.clone(),
                failure,
                took,
                allowed: doing.allow_failure,
                attempts: 1,
                retry_in: None,
            });
            self.first_run_over(&doing.first_runs, &BTreeMap::new());
            self.hook_over(lane, &doing, false);
            return;
        }
        self.monitors.first_run_failed(&doing.first_runs);
        let head = self.lanes.head(lane);
        let in_run = head.is_some_and(|head| head.task.module_at_work().is_some());
        let (attempts, retry_in) = if in_run {
            (head.map_or(0, |head| head.failures) + 1, None)
        } else {
            let (attempts, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
            (attempts, Some(retry_in))
        };
        self.cx.tell(Notice::HookFailed {
            hook: doing.hook.clone(),
            labels: doing.labels,
            failure: failure.clone(),
            took,
            allowed: false,
            attempts,
            retry_in,
        });
        if in_run {
            self.lane_failed(lane, failure);
        } else if let Owner::Module(name) = &doing.hook.owner {
            self.first_run_holds_up(name, &doing.first_runs, failure.report);
        }
    }

    /// The failure with the name of its hook.
    pub(super) fn of_hook(&self, HookId { owner, name }: &HookId, failure: Failure) -> Failure {
        match (owner, self.cx.policy.mode) {
            (_, Mode::Hooks) => failure.within(format_args!("{name} FAILED")),
            (Owner::Global, Mode::Addons) => failure.within(format_args!("global hook '{name}' failed")),
            (Owner::Module(_), Mode::Addons) => failure.within(format_args!("module hook '{name}' failed")),
        }
    }

    /// A first run in another queue failed: its module waits, the others do not wait for it.
    fn first_run_holds_up(&mut self, module: &ModuleName, ids: &[MonitorId], report: String) {
        let unit = self.modules.get_mut(module);
        if let Some(unit) = unit.filter(|unit| ids.iter().any(|id| unit.life.awaits(*id))) {
            unit.held_up(report);
            // What a user mends in the section must reach the hook, although the run has not ended.
            self.apply_deferred(module);
        }
    }
}
