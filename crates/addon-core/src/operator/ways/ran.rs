//! The ways of a hook that has ended: its changes are followed up and the head of its lane goes on, or it has failed and
//! is retried.

use std::collections::{BTreeMap, BTreeSet};

use names::{ModuleName, MonitorId, Owner};

use crate::failure::{Class, Failure};
use crate::hook::cause::Cause;
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::operator::event::Usage;
use crate::operator::lanes::{Doing, Fate};
use crate::operator::loops::Lineage;
use crate::operator::policy::Mode;
use crate::operator::task::{Lane, Reason, RunReason, Task};
use crate::values::Change;
use crate::values::patch::FlagOp;

impl Operator {
    /// Whether the output of the hook must be dropped, because its module was switched off or its life ended while the
    /// hook ran. The module's next life must not get that output. Only a hook task, or a run that hung, can end so
    /// late.
    pub(super) fn came_too_late(&self, lane: &Lane) -> bool {
        let is_late = |doing: &Doing| doing.fate == Fate::Over || !self.modules.take_changes(&doing.hook);
        self.is_disowned(lane) || self.lanes.stands_by_itself(lane) && self.lanes.doing(lane).is_some_and(is_late)
    }

    /// Whether the lane's run belongs to a module that is not enabled any more: the run hung and has only now ended its step.
    fn is_disowned(&self, lane: &Lane) -> bool {
        let Some(Task::ModuleRun { module, .. }) = self.lanes.head(lane).map(|head| &head.task) else {
            return false;
        };
        !self.modules.is_enabled(module)
    }

    /// Takes the success of a hook whose patches are committed.
    pub(super) fn hook_succeeded(&mut self, lane: &Lane, usage: Usage, change: &Change) {
        let Some(doing) = self.lanes.end_hook(lane) else { return };
        self.cx.tell(Notice::HookSucceeded {
            hook: doing.hook.clone(),
            labels: doing.labels.clone(),
            usage,
        });
        self.lanes.succeeded(lane);
        self.bindings.spoke(doing.hook.clone());
        if doing.hook.owner == Owner::Global {
            self.stand_ins.succeeded(&doing.hook.name, self.cx.now.wall);
        }
        self.take_flags(&change.flags);
        let is_awaited = self.is_step_of_start(&doing);
        self.first_run_over(&doing.first_runs, &doing.read);
        let lineage = self.loops.hook_over(lane, change.values_changed, self.cx.now.tick);
        self.hook_over(lane, &doing, (change.values_changed && !is_awaited).then_some(lineage));
    }

    /// Fails a hook whose config patch was committed. The consequences of the patch follow now, because the next run of
    /// the hook will find nothing to change.
    pub(super) fn hook_half_succeeded(&mut self, lane: &Lane, change: &Change, failure: Failure) {
        let follows = self.lanes.doing(lane).filter(|_| change.values_changed).cloned();
        let follows = follows.filter(|doing| self.lanes.stands_by_itself(lane) && !self.is_step_of_start(doing));
        let lineage = self.loops.hook_over(lane, change.values_changed, self.cx.now.tick);
        self.take_flags(&change.flags);
        self.hook_counts_as_failed(lane, failure);
        if let Some(doing) = follows {
            self.follow_change(&doing, lineage);
        }
    }

    /// Whether this was a first run before the module's release. The release will include the values that the hook set.
    fn is_step_of_start(&self, doing: &Doing) -> bool {
        let unit = doing.hook.owner.module().and_then(|name| self.modules.get(name));
        !doing.first_runs.is_empty() && unit.is_some_and(|unit| !unit.life().takes_events())
    }

    /// Applies the flags of modules that a hook has set.
    pub(super) fn take_flags(&mut self, flags: &[FlagOp]) {
        let mut changed = Vec::new();
        for flag in flags {
            // A flag of a module that is not on disk counts if the module comes later.
            let is_new = self.verdicts.hear_hook(&flag.module, flag.opinion);
            if is_new && self.modules.contains(&flag.module) {
                changed.push(&flag.module);
            }
        }
        for module in &changed {
            // The module's section may have waited for a removal that will not come any more.
            self.apply_what_nothing_holds(module);
        }
        if !changed.is_empty() {
            self.reassess(Reason::DynamicUpdate, BTreeSet::new());
        }
    }

    /// Advances the head of the lane after its hook. `changed`: the lineage of the hook's changes of values, if there are any.
    fn hook_over(&mut self, lane: &Lane, doing: &Doing, changed: Option<Lineage>) {
        let Some(head) = self.lanes.head(lane) else { return };
        match &head.task {
            Task::Hook(_) => {
                self.lanes.finish(&self.cx, lane);
                match (changed, lane, doing.labels.cause) {
                    (None, ..) => {}
                    // The converge that this run belongs to went on without it.
                    (Some(lineage), Lane::Aside(_), Cause::Stage(_)) => {
                        self.converge_for(Reason::DynamicUpdate, &[doing.hook.clone()].into(), lineage);
                    }
                    (Some(lineage), ..) => self.follow_change(doing, lineage),
                }
            }
            Task::Converge(_) => {
                self.converge.hook_succeeded();
                self.lanes.resume(&Lane::Global);
            }
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module, .. } => {
                let module = module.clone();
                // If this was a first run, its end has already been passed on to the module.
                if doing.first_runs.is_empty() {
                    self.modules.step_succeeded(&module);
                }
                self.lanes.resume(lane);
            }
            Task::EnableKubernetes(_) | Task::EnableSchedules(_) | Task::AwaitFirstRuns | Task::Purge { .. } => {}
        }
    }

    /// Runs a module or asks for a converge because a hook task changed values.
    fn follow_change(&mut self, doing: &Doing, lineage: Lineage) {
        let (reason, run_reason) = match doing.labels.cause {
            Cause::Schedule => (Reason::ScheduleChange, RunReason::ScheduleChange),
            Cause::Objects => (Reason::KubernetesChange, RunReason::KubernetesChange),
            Cause::Stage(_) | Cause::Validating | Cause::Mutating | Cause::Conversion => return,
        };
        let hooks = BTreeSet::from([doing.hook.clone()]);
        match &doing.hook.owner {
            Owner::Global if self.cx.policy.mode == Mode::Hooks => {}
            Owner::Global => self.converge_for(reason, &hooks, lineage),
            Owner::Module(name) => self.rerun_for(name, run_reason, &hooks, lineage),
        }
    }

    /// Fails the hook of a lane. The failure names the hook.
    pub(super) fn hook_counts_as_failed(&mut self, lane: &Lane, failure: Failure) {
        let Some(doing) = self.lanes.end_hook(lane) else {
            return;
        };
        self.loops.hook_over(lane, false, self.cx.now.tick);
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
            self.hook_over(lane, &doing, None);
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

    /// Takes the failure of a first run in another queue: its module waits, and other modules go on.
    fn first_run_holds_up(&mut self, module: &ModuleName, ids: &[MonitorId], report: String) {
        let unit = self.modules.get_mut(module);
        if let Some(unit) = unit.filter(|unit| ids.iter().any(|id| unit.life().awaits(*id))) {
            unit.held_up(report);
            // A mended section must reach the hook, although the module's run has not ended.
            self.apply_deferred(module);
        }
    }
}
