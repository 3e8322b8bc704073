//! Running one hook at the head of a lane, whatever the head is: a task of its own, a converge, a run, a removal.

use super::Operator;
use super::effect::{HookLabels, HookRun, Job, Notice};
use super::event::Usage;
use super::task::{HookTask, Lane, Reason, RunReason, Task};
use crate::failure::{Class, Failure};
use crate::hook::config::{ConfigVersion, Stage};
use crate::hook::context::{self, BindingContext};
use crate::name::{HookId, Owner};
use crate::values::patch::FlagOp;
use crate::values::{Change, Globals};

/// The hook that the head of a lane runs.
#[derive(Debug, Clone)]
pub(super) struct Doing {
    pub(super) hook: HookId,
    pub(super) labels: HookLabels,
    allow_failure: bool,
}

impl Operator {
    /// Lets a hook that stands in line by itself run. False if it must wait for a slot.
    pub(super) fn advance_hook(&mut self, lane: &Lane, task: HookTask) -> bool {
        if !self.is_wanted(&task.hook) {
            self.queues.finish(lane);
            return true;
        }
        if !self.jobs.hook_slot(&self.policy) {
            return false;
        }
        self.begin_head(lane);
        let task = self.combine(lane, task);
        self.start_hook(lane, task);
        true
    }

    /// The hook that ran stood in line by itself, and its module was switched off meanwhile: what it asks for has no
    /// place any more, and must not be found by the module's next life.
    pub(super) fn came_too_late(&self, lane: &Lane) -> bool {
        let by_itself = self
            .queues
            .head(lane)
            .is_some_and(|head| matches!(head.task, Task::Hook(_)));
        let hook = self.doing.get(lane).map(|doing| &doing.hook);
        by_itself && hook.is_some_and(|hook| !self.is_wanted(hook))
    }

    /// Hooks of a module that is switched off, or not yet started, are not run.
    fn is_wanted(&self, hook: &HookId) -> bool {
        match &hook.owner {
            Owner::Global => true,
            Owner::Module(name) => self
                .modules
                .get(name)
                .is_some_and(|unit| unit.enabled && unit.life.takes_events()),
        }
    }

    /// Takes the contexts of directly following runs of the same hook into this one.
    fn combine(&mut self, lane: &Lane, mut task: HookTask) -> HookTask {
        let same = |head: &Task, next: &Task| match (head, next) {
            (Task::Hook(head), Task::Hook(next)) => head.hook == next.hook,
            _ => false,
        };
        for merged in self.queues.merge_following(lane, same) {
            if let Task::Hook(merged) = merged {
                task.contexts.extend(merged.contexts);
            }
        }
        task.contexts = context::combined(task.contexts);
        if let Some(head) = self.queues.head_mut(lane) {
            head.task = Task::Hook(task.clone());
        }
        task
    }

    /// A hook at its place in the life of the operator or of a module.
    pub(super) fn stage_task(&self, stage: Stage, hook: HookId) -> HookTask {
        let context = self.hooks.get(&hook).map(|config| BindingContext::stage(stage, config));
        HookTask {
            labels: HookLabels {
                binding: stage.key(),
                binding_name: stage.key().to_owned(),
                queue: "main".to_owned(),
                activation: self.converge.activation(),
            },
            contexts: context.into_iter().collect(),
            allow_failure: false,
            hook,
        }
    }

    /// Starts a hook that is a step of the head of a lane.
    pub(super) fn start_stage_hook(&mut self, lane: &Lane, stage: Stage, hook: HookId) {
        let task = self.stage_task(stage, hook);
        self.start_hook(lane, task);
    }

    /// Starts a hook as a job of the head of a lane.
    fn start_hook(&mut self, lane: &Lane, task: HookTask) {
        let HookTask {
            hook,
            labels,
            contexts,
            allow_failure,
        } = task;
        self.tell(Notice::HookStarted {
            hook: hook.clone(),
            labels: labels.clone(),
        });
        let version = self.hooks.get(&hook).map_or(ConfigVersion::V1, |config| config.version);
        let globals = self.globals_for(lane, &hook.owner);
        let run = HookRun {
            version,
            contexts,
            values: self.values.hook_values_under(&globals, &hook.owner),
            config_values: self.values.config_values_under(&globals, &hook.owner),
            deadline: self.policy.hook_deadline,
            labels: labels.clone(),
            hook: hook.clone(),
        };
        let doing = Doing {
            hook,
            labels,
            allow_failure,
        };
        self.doing.insert(lane.clone(), doing);
        self.start_lane_job(lane, Job::RunHook(run));
    }

    /// The global values that a hook sees: those of the run that it is a step of, else those of now.
    fn globals_for(&self, lane: &Lane, owner: &Owner) -> Globals {
        let in_run = self
            .queues
            .head(lane)
            .is_some_and(|head| matches!(head.task, Task::ModuleRun { .. }));
        let of_run = owner
            .module()
            .filter(|_| in_run)
            .and_then(|name| self.modules.get(name)?.globals.clone());
        of_run.unwrap_or_else(|| self.values.globals())
    }

    /// A hook ran and what it patched is in force.
    pub(super) fn hook_succeeded(&mut self, lane: &Lane, usage: Usage, change: &Change) {
        let Some(doing) = self.doing.remove(lane) else { return };
        self.tell(Notice::HookSucceeded {
            hook: doing.hook.clone(),
            labels: doing.labels,
            usage,
        });
        self.queues.succeeded(lane);
        self.spoken.insert(doing.hook.clone());
        self.take_flags(&change.flags);
        self.hook_over(lane, &doing.hook, change.values_changed);
    }

    /// What a hook said about modules' flags counts from now on.
    fn take_flags(&mut self, flags: &[FlagOp]) {
        let mut changed = false;
        for flag in flags {
            if let Some(unit) = self.modules.get_mut(&flag.module)
                && unit.dynamic != flag.opinion
            {
                unit.dynamic = flag.opinion;
                changed = true;
            }
        }
        if changed {
            self.reassess(Reason::DynamicUpdate, std::collections::BTreeSet::new());
        }
    }

    /// The head of the lane has its hook behind it.
    fn hook_over(&mut self, lane: &Lane, hook: &HookId, values_changed: bool) {
        let Some(head) = self.queues.head(lane) else { return };
        match &head.task {
            Task::Hook(task) => {
                let scheduled = task.labels.binding == "schedule";
                self.queues.finish(lane);
                if !values_changed || !scheduled {
                    return;
                }
                match &hook.owner {
                    Owner::Global => self.request_converge(Reason::ScheduleChange, false),
                    Owner::Module(name) => self.rerun(name, RunReason::ScheduleChange),
                }
            }
            Task::Converge(_) => self.all_hook_succeeded(),
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module } => {
                let module = module.clone();
                self.step_succeeded(&module);
                self.queues.resume(lane);
            }
            Task::Purge { .. } => {}
        }
    }

    /// A hook failed, or what it patched was refused.
    pub(super) fn hook_failed(&mut self, lane: &Lane, failure: Failure) {
        let Some(Doing {
            hook,
            labels,
            allow_failure,
        }) = self.doing.remove(lane)
        else {
            return;
        };
        let whose = if hook.owner == Owner::Global {
            "global"
        } else {
            "module"
        };
        let failure = failure.within(format_args!("{whose} hook '{}' failed", hook.name));
        if failure.class != Class::Defect && allow_failure {
            let notice = Notice::HookFailed {
                hook: hook.clone(),
                labels,
                failure,
                allowed: true,
                attempts: 1,
                retry_in: None,
            };
            self.tell(notice);
            self.hook_over(lane, &hook, false);
            return;
        }
        let (attempts, retry_in) = match self.queues.head(lane).map(|head| head.task.clone()) {
            Some(Task::ModuleRun { .. } | Task::ModuleDelete { .. }) => {
                let attempts = self.queues.head(lane).map_or(0, |head| head.failures) + 1;
                let notice = Notice::HookFailed {
                    hook,
                    labels,
                    failure: failure.clone(),
                    allowed: false,
                    attempts,
                    retry_in: None,
                };
                self.tell(notice);
                self.lane_failed(lane, failure);
                return;
            }
            Some(Task::Hook(_) | Task::Converge(_) | Task::Purge { .. }) | None => {
                self.back_off(lane, failure.report.clone())
            }
        };
        let retry_in = Some(retry_in);
        self.tell(Notice::HookFailed {
            hook,
            labels,
            failure,
            allowed: false,
            attempts,
            retry_in,
        });
    }
}
