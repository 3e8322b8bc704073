//! The ways of failures: the head of a lane failed at something other than a hook, and is retried after a delay.

use names::ModuleName;

use crate::failure::{Class, Failure};
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::operator::task::{Lane, Task};

impl Operator {
    /// Takes a failure of the head of a lane at something other than a hook.
    pub(super) fn lane_failed(&mut self, lane: &Lane, failure: Failure) {
        match self.lanes.head(lane).map(|head| head.task.clone()) {
            Some(Task::ModuleRun { module, .. }) => self.run_failed(lane, &module, failure),
            Some(Task::ModuleDelete { module, .. }) => self.delete_failed(lane, &module, failure),
            Some(Task::Purge { release }) => self.purge_failed(lane, release, failure),
            Some(Task::Converge(_) | Task::Hook(_) | Task::EnableKubernetes(_)) => {
                self.lanes.back_off(&mut self.cx, lane, &failure);
            }
            Some(Task::EnableSchedules(_) | Task::AwaitFirstRuns) | None => {}
        }
    }

    /// Takes the failure of a step of a run: the run starts over after a delay, in its own lane, and other modules go on.
    pub(super) fn run_failed(&mut self, lane: &Lane, name: &ModuleName, failure: Failure) {
        let (now, activation) = (self.cx.now.tick, self.converge.activation());
        let globals = self.values.globals();
        let Some(unit) = self.modules.get_mut(name) else { return };
        let attempt = unit.attempt_failed(now, globals);
        if attempt.helm_began.is_some() {
            self.removal.may_exist(name.as_str());
            if failure.class == Class::TimedOut {
                self.removal.forget_foreign(name.as_str());
            }
        }
        let (attempts, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        self.apply_what_nothing_holds(name);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.run_failed(&attempt.step, &failure);
        }
        let judged = self.supply.failed(name, &failure);
        self.judge_files(name, judged);
        self.cx.tell(Notice::ModuleFailed {
            module: name.clone(),
            step: attempt.step.describe(),
            failure,
            took: now - attempt.began,
            helm: attempt.helm_began.map(|began| now - began),
            activation,
            attempts,
            retry_in,
        });
    }

    fn delete_failed(&mut self, lane: &Lane, name: &ModuleName, failure: Failure) {
        let (_, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.delete_failed(&failure);
        }
        // The module's section may have caused the failure, and a mended section may be waiting.
        self.apply_what_nothing_holds(name);
        self.cx.tell(Notice::ModuleDeleteFailed {
            module: name.clone(),
            failure,
            retry_in,
        });
    }

    fn purge_failed(&mut self, lane: &Lane, release: String, failure: Failure) {
        let (_, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        self.cx.tell(Notice::PurgeFailed {
            release,
            failure,
            retry_in,
        });
        // While helm was running, a source may have named a module of this name, or the sources may have become unknown.
        let (modules, are_unknown) = (&self.modules, self.config.are_sources_unknown());
        let may_have_module = |release: &str| are_unknown || modules.of_release(release).is_some();
        let reason = "their release may have a module again";
        self.lanes.drop_purges(&mut self.cx, reason, may_have_module);
    }
}
