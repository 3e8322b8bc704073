//! The way past global hooks that fail or hang before all modules: the values of their last good runs serve for them, and
//! their tasks wait in lanes of their own.
//!
//! Must never go past a hook in strict order, on trial, or if nothing is known of its values.

use std::time::Duration;

use names::{HookId, Owner};

use crate::failure::{Class, Failure};
use crate::hook::cause::Cause;
use crate::hook::config::Stage;
use crate::operator::Operator;
use crate::operator::effect::{Notice, StandIn};
use crate::operator::policy::Mode;
use crate::operator::task::{HookTask, Lane, Task};

impl Operator {
    /// Goes past all global hooks that hold the modules up for too long. True if it went past a hook.
    pub(super) fn pass_failing_hooks(&mut self) -> bool {
        self.end_stand_ins();
        let mut progress = false;
        while let Some(hook) = self.survey().hook_to_pass() {
            if !self.stand_in(&hook) {
                return progress;
            }
            self.go_past(hook);
            progress = true;
        }
        progress
    }

    /// Lets the values of the hook's last good run serve for it. False if these cannot be taken over.
    fn stand_in(&mut self, hook: &HookId) -> bool {
        let before = self.stand_ins.of_before(&hook.name);
        let flags = match before.map(|given| self.values.take_over(&given)) {
            None => Vec::new(),
            Some(Ok(change)) => change.flags,
            Some(Err(rejected)) => {
                self.stand_ins.forget(&hook.name);
                self.cx.tell(Notice::StepFailed {
                    step: format!(
                        "go on with the values of the last good run of {}",
                        Mode::Addons.told(hook)
                    ),
                    failure: Failure::of(Class::Invalid, &rejected),
                    again: false,
                    retry_in: Duration::MAX,
                });
                return false;
            }
        };
        if let Some(as_of) = self.stand_ins.serve(&hook.name) {
            let error = self.survey().error_of(hook).map(str::to_owned);
            self.cx.tell(Notice::StandIn(StandIn::Serves {
                hook: hook.clone(),
                as_of,
                error,
            }));
        }
        self.take_flags(&flags);
        true
    }

    /// Lets the converge go on without this hook, which runs in its own lane behind the tasks that wait there.
    pub(super) fn run_aside(&mut self, stage: Stage, hook: HookId) {
        self.converge.hook_succeeded();
        let lane = Lane::Aside(hook.name.clone());
        let is_such = |task: &HookTask| task.labels.cause == Cause::Stage(stage);
        let waiting = self.lanes.tasks(&lane).filter(|entry| !entry.is_active());
        if waiting.filter_map(|entry| entry.task.as_hook()).any(is_such) {
            return;
        }
        let task = self.stage_task(stage, hook);
        self.lanes.push(&self.cx, lane, Task::Hook(task));
    }

    /// Moves the hook out of the way of the modules.
    fn go_past(&mut self, hook: HookId) {
        let aside = Lane::Aside(hook.name.clone());
        let runs = self.lanes.is_running(&Lane::Global);
        match self.lanes.head(&Lane::Global).map(|head| &head.task) {
            Some(Task::Converge(_)) if runs => self.move_step_aside(hook),
            Some(Task::Hook(_)) if runs => {
                if self.lanes.move_head(&Lane::Global, &aside) {
                    self.move_run_aside(hook);
                }
            }
            Some(Task::Converge(_)) => {
                self.run_aside(Stage::BeforeAll, hook);
                self.lanes.succeeded(&Lane::Global);
                self.lanes.resume(&Lane::Global);
            }
            Some(Task::AwaitFirstRuns) => {
                self.monitors.await_no_run_of(&hook);
                self.lanes.wake_parked(&Lane::Global, Task::awaits_first_runs);
            }
            Some(Task::Hook(_) | Task::EnableKubernetes(_)) => {
                if let Some(task) = self.lanes.finish(&self.cx, &Lane::Global) {
                    self.lanes.push(&self.cx, aside, task);
                }
            }
            Some(
                Task::EnableSchedules(_) | Task::ModuleRun { .. } | Task::ModuleDelete { .. } | Task::Purge { .. },
            )
            | None => {}
        }
    }

    /// Lets the converge go on without the hook that it runs. The run goes on in the hook's own lane.
    fn move_step_aside(&mut self, hook: HookId) {
        let aside = Lane::Aside(hook.name.clone());
        let task = self.stage_task(Stage::BeforeAll, hook.clone());
        self.lanes.push_front(&self.cx, &aside, vec![Task::Hook(task)]);
        self.lanes.begin_head(&mut self.cx, &aside);
        self.lanes.running(&self.cx, &aside);
        self.move_run_aside(hook);
        self.converge.hook_succeeded();
        self.lanes.succeeded(&Lane::Global);
        self.lanes.resume(&Lane::Global);
    }

    fn move_run_aside(&mut self, hook: HookId) {
        let aside = Lane::Aside(hook.name.clone());
        self.loops.run_moves(&Lane::Global, &aside);
        if let Some(job) = self.lanes.move_run(&Lane::Global, &aside) {
            self.cx.tell(Notice::StandIn(StandIn::Moves { hook, job }));
        }
    }

    fn end_stand_ins(&mut self) {
        for hook in self.stand_ins.end(|hook| self.lanes.is_aside(hook)) {
            self.lanes.close(&Lane::Aside(hook.clone()));
            let hook = HookId {
                owner: Owner::Global,
                name: hook,
            };
            self.cx.tell(Notice::StandIn(StandIn::Ends { hook }));
        }
    }
}
