//! Hooks without modules: what is in `main` at the start, in the order in which it is done, and nothing else to wait for.

use super::Operator;
use super::effect::Effect;
use super::task::{Lane, Task};
use crate::failure::Failure;
use crate::hook::config::Stage;
use crate::name::HookId;

impl Operator {
    /// The hooks said what they bind to: start-up by the order numbers, then hook by hook what each watches and when it
    /// runs.
    pub(super) fn begin_alone(&mut self) {
        self.startup.begun = true;
        let startup = self.bindings.global_hooks(Stage::OnStartup).into_iter();
        let mut tasks: Vec<Task> = startup
            .map(|hook| Task::Hook(self.stage_task(Stage::OnStartup, hook)))
            .collect();
        for hook in self.bindings.iter().map(|(hook, _)| hook) {
            tasks.extend(self.enabling_kubernetes(hook));
            tasks.extend(self.enabling_schedules(hook));
        }
        self.push_all(tasks);
    }

    /// What is done before the first converge: schedules first, then what the hooks watch, and all of them have run for
    /// what is there.
    pub(super) fn enable_global_hooks(&mut self) {
        let mut tasks: Vec<Task> = self
            .bindings
            .iter()
            .map(|(hook, _)| hook)
            .filter_map(|hook| self.enabling_schedules(hook))
            .collect();
        let kubernetes: Vec<Task> = self
            .bindings
            .iter()
            .map(|(hook, _)| hook)
            .filter_map(|hook| self.enabling_kubernetes(hook))
            .collect();
        if !kubernetes.is_empty() {
            tasks.extend(kubernetes);
            tasks.push(Task::AwaitFirstRuns);
        }
        self.push_all(tasks);
    }

    fn enabling_kubernetes(&self, hook: &HookId) -> Option<Task> {
        let config = self.bindings.get(hook)?;
        (!config.kubernetes.is_empty()).then(|| Task::EnableKubernetes(hook.clone()))
    }

    fn enabling_schedules(&self, hook: &HookId) -> Option<Task> {
        let config = self.bindings.get(hook)?;
        (!config.schedules.is_empty()).then(|| Task::EnableSchedules(hook.clone()))
    }

    fn push_all(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            self.lanes.push(&self.cx, Lane::Global, task);
        }
    }

    /// The configuration of a hook cannot be had: hooks alone do not start without one of them.
    pub(super) fn give_up(&mut self, failure: Failure) {
        self.stop_now();
        self.cx.effect(Effect::GiveUp(failure));
    }
}
