//! The way of kubernetes bindings: the monitors of a hook are started, and then the hook runs once for all existing objects.

use std::collections::BTreeMap;
use std::time::Duration;

use names::{HookId, HookName, ModuleName, MonitorId, Owner, QueueName};

use crate::failure::Failure;
use crate::module::first_runs::FirstRuns;
use crate::operator::Operator;
use crate::operator::effect::{Job, Notice};
use crate::operator::lanes::Admission;
use crate::operator::monitors::Served;
use crate::operator::policy::Mode;
use crate::operator::task::{HookTask, Lane, Task, Trigger};
use crate::operator::ticket::{AtHead, WatchFor};
use crate::operator::warmth::Warm;

impl Operator {
    /// Advances the task that starts the monitors of a hook without a module.
    pub(super) fn advance_enable_kubernetes(&mut self, lane: &Lane, hook: &HookId) -> bool {
        if self.reviews.awaits_publication() {
            return false;
        }
        self.lanes.begin_head(&mut self.cx, lane);
        self.start_monitors(lane, hook);
        true
    }

    /// Advances the task that enables the schedules of a hook without a module.
    pub(super) fn advance_enable_schedules(&mut self, lane: &Lane, hook: HookId) -> bool {
        self.lanes.begin_head(&mut self.cx, lane);
        self.lanes.finish(&self.cx, lane);
        self.schedules.enable(&mut self.cx, &self.bindings, hook);
        true
    }

    /// Advances the task that waits for first runs in other queues.
    pub(super) fn advance_await(&mut self, lane: &Lane) -> bool {
        self.lanes.begin_head(&mut self.cx, lane);
        if self.monitors.awaited().len() == 0 {
            self.lanes.finish(&self.cx, lane);
        } else {
            self.lanes.park(&self.cx, lane);
        }
        true
    }

    fn start_monitors(&mut self, lane: &Lane, hook: &HookId) {
        let warm = self.warmth.take_monitors(lane, hook);
        if warm != Warm::Nothing {
            self.lanes.running(&self.cx, lane);
            self.monitors.tell_of_unread(&self.bindings, hook);
            if warm == Warm::Ready {
                self.monitors_finished(lane, hook, Ok(()), Duration::ZERO);
            }
            return;
        }
        let bindings = self.bindings.get(hook).map(|config| config.kubernetes.clone());
        let monitors = self.monitors.name(hook, bindings.unwrap_or_default());
        self.monitors.tell_of_unread(&self.bindings, hook);
        self.lanes.running(&self.cx, lane);
        let hook = hook.clone();
        let wanted_by = WatchFor::Head(AtHead(lane.clone()), hook.clone());
        self.jobs.begin(&mut self.cx, wanted_by, |ticket| Job::StartMonitors {
            hook,
            monitors,
            ticket,
        });
    }

    /// Starts the monitors of a module's hook, as a step of its run.
    pub(super) fn start_module_monitors(&mut self, lane: &Lane, module: &ModuleName, hook: HookName) {
        let owner = Owner::Module(module.clone());
        self.start_monitors(lane, &HookId { owner, name: hook });
    }

    pub(super) fn monitors_finished(
        &mut self,
        lane: &Lane,
        hook: &HookId,
        result: Result<(), Failure>,
        took: Duration,
    ) {
        match result {
            Ok(()) => {
                let hook = hook.clone();
                self.monitors_started(lane, &hook);
                self.cx.tell(Notice::MonitorsStarted { hook, took });
            }
            Err(failure) => self.monitors_failed(lane, hook, failure),
        }
    }

    fn monitors_failed(&mut self, lane: &Lane, hook: &HookId, failure: Failure) {
        self.monitors.forget(hook);
        let told = self.cx.policy.mode.told(hook);
        let failure = failure.within(format_args!("start the monitors of {told}"));
        self.lane_failed(lane, failure.clone());
        let head = self.lanes.head(lane);
        let attempts = head.map_or(0, |head| head.failures);
        let retry_in = head.map_or(Duration::ZERO, |head| head.wait(self.cx.now.tick));
        self.cx.tell(Notice::MonitorsFailed {
            hook: hook.clone(),
            failure,
            attempts,
            retry_in,
        });
    }

    /// Takes the start of a hook's monitors: puts its first runs into their queues.
    fn monitors_started(&mut self, lane: &Lane, hook: &HookId) {
        let started = self.monitors.watch(hook);
        let mut runs = FirstRuns::default();
        for id in started {
            let Some(Served { binding, .. }) = self.monitors.binding_of(&self.bindings, id) else {
                continue;
            };
            let (queue, waits) = (binding.queue.clone(), binding.wait_for_synchronization);
            if self.cx.policy.mode == Mode::Hooks || queue == QueueName::main() {
                runs.own.push_back(id);
                continue;
            }
            if waits {
                runs.elsewhere.insert(id);
            }
            if let Some(task) = self.first_run(lane, id, &queue) {
                self.lanes
                    .push_hook(&mut self.cx, &self.bindings, &Lane::Named(queue), task);
            }
        }
        match hook.owner.module() {
            None => {
                self.lanes.finish(&self.cx, lane);
                let main = QueueName::main();
                let own = runs.own.iter().filter_map(|id| self.first_run(lane, *id, &main));
                let own = own.map(Task::Hook).collect();
                self.lanes.push_front(&self.cx, lane, own);
                self.monitors.await_first_runs(runs.elsewhere);
            }
            Some(module) => {
                if let Some(unit) = self.modules.get_mut(module) {
                    unit.watched(runs);
                }
                self.lanes.succeeded(lane);
                self.lanes.resume(lane);
            }
        }
    }

    /// The run of the hook for the objects that a monitor found. The trigger is the task at the head of the lane.
    fn first_run(&self, lane: &Lane, id: MonitorId, queue: &QueueName) -> Option<HookTask> {
        let run = self.lanes.head(lane).and_then(|head| head.task.run_reason());
        let terms = self.run_terms(run.map_or(Trigger::Startup, Trigger::Run));
        self.monitors.first_run(&self.bindings, terms, id, queue)
    }

    /// Starts the first run of a monitor's hook, as a step of its module's run, combined with the following first runs
    /// where that is allowed. `None` if there is nothing to run, false if the run must wait for a slot.
    pub(super) fn start_first_run(&mut self, lane: &Lane, module: &ModuleName, id: MonitorId) -> Option<bool> {
        let main = QueueName::main();
        let Some(mut task) = self.first_run(lane, id, &main) else {
            // The monitor was stopped, and the code that stopped it does the next steps.
            if let Some(unit) = self.modules.get_mut(module) {
                unit.first_run_over(id);
            }
            return None;
        };
        if task.is_skipped {
            self.first_run_over(&task.first_runs, &BTreeMap::new());
            return None;
        }
        match self.lanes.admit(&self.cx, &self.jobs, &self.bindings, lane, &task.hook) {
            Admission::Now => {}
            Admission::NoSlot => return Some(false),
            Admission::Later => return Some(true),
        }
        for next in self.own_first_runs(module).into_iter().skip(1) {
            let Some(next) = self
                .first_run(lane, next, &main)
                .filter(|next| self.belongs(&task, next))
            else {
                break;
            };
            task.absorb(next);
        }
        self.start_hook(lane, task);
        Some(true)
    }

    /// Parks a module's run until first runs in other queues are over. If one of these failed, the other modules go on.
    pub(super) fn await_first_runs(&mut self, lane: &Lane, module: &ModuleName) {
        self.lanes.park(&self.cx, lane);
        let unit = self.modules.get(module);
        let awaited = unit.map(|unit| unit.life().first_runs_elsewhere()).unwrap_or_default();
        let survey = self.survey();
        let failed = awaited
            .into_iter()
            .find_map(|id| survey.queued_first_run(id)?.error.clone());
        if let (Some(report), Some(unit)) = (failed, self.modules.get_mut(module)) {
            unit.held_up(report);
        }
    }

    fn own_first_runs(&self, module: &ModuleName) -> Vec<MonitorId> {
        let unit = self.modules.get(module);
        unit.map(|unit| unit.life().own_first_runs()).unwrap_or_default()
    }
}
