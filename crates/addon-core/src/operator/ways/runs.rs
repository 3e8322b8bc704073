//! The way of a run: its steps in order, each a job, until the module is ready or a step fails.

use std::time::Duration;

use names::{HookId, HookName, ModuleName, Owner};

use crate::failure::{Class, Failure};
use crate::hook::config::{HookConfig, Stage};
use crate::module::lifecycle::ModuleStep;
use crate::operator::Operator;
use crate::operator::effect::{Job, Notice};
use crate::operator::lanes::Admission;
use crate::operator::task::{Lane, RunReason, Slot, Task};
use crate::operator::warmth::Warm;

impl Operator {
    /// Advances the run at the head of a module's lane. False if it must wait for a slot.
    pub(super) fn advance_run(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        let begins = self.lanes.begins(lane);
        // The module may have to wait for files since the run was queued.
        let lacks_files = begins && self.supply.lack(name).is_some();
        if lacks_files || !self.modules.is_enabled(name) {
            self.lanes.finish(&self.cx, lane);
            return true;
        }
        // A run must not begin before its turn in the converge: it needs the values that the hooks before all modules
        // set, and the verdicts.
        let to_come = self.modules.get(name).is_some_and(|unit| unit.turn().is_to_come());
        if begins && to_come {
            // The run took too long and was to begin anew. The module's turn brings another run.
            self.lanes.finish(&self.cx, lane);
            return true;
        }
        if begins && self.converge.assesses_by_itself() {
            return false;
        }
        let mut anew = false;
        if self.lanes.begin_head(&mut self.cx, lane) {
            if self.modules.get(name).is_some_and(|unit| unit.life().is_deleting()) {
                // An unfinished removal ends the life of the module, too, so the run begins a new life.
                let owner = Owner::Module(name.clone());
                self.end_hooks(&owner, "their module begins a new life");
                let _ = self.values.forget_patches(&owner);
            }
            self.loops.run_begins(name);
            anew = self.apply_deferred(name);
            let globals = self.values.globals();
            if let Some(unit) = self.modules.get_mut(name) {
                unit.begin_run(self.cx.now.tick, globals);
            }
            self.watch_again(name);
        }
        let moved = self.take_steps(lane, name).unwrap_or_else(|| {
            self.run_succeeded(lane, name);
            true
        });
        // A section that was applied just now may need a new round of verdicts at once, even if the run itself waits.
        moved || anew
    }

    /// Does the steps of a run or of a removal that need no job, and starts the job of the next step. `None` after the
    /// last step, false if the job must wait for a slot.
    pub(super) fn take_steps(&mut self, lane: &Lane, name: &ModuleName) -> Option<bool> {
        loop {
            let facts = self.survey().facts(name);
            let unit = self.modules.get_mut(name);
            match unit.map_or(ModuleStep::Done, |unit| unit.next_step(facts)) {
                ModuleStep::EnsureCrds => {
                    self.start_crds(lane, vec![name.clone()]);
                    return Some(true);
                }
                ModuleStep::Configure => match self.known_hooks(name) {
                    Some(hooks) => {
                        self.hooks_configured(&Owner::Module(name.clone()), hooks);
                        self.modules.step_succeeded(name);
                    }
                    None => return Some(self.start_configure(lane, name)),
                },
                ModuleStep::Hook(stage, hook) => return Some(self.start_step_hook(lane, name, stage, hook)),
                ModuleStep::Watch(hook) => {
                    self.start_module_monitors(lane, name, hook);
                    return Some(true);
                }
                ModuleStep::FirstRun(monitor) => {
                    if let Some(moved) = self.start_first_run(lane, name, monitor) {
                        return Some(moved);
                    }
                }
                ModuleStep::AwaitFirstRuns => {
                    self.await_first_runs(lane, name);
                    return Some(true);
                }
                ModuleStep::EnsureConversions => return Some(self.start_own_conversions(lane, name)),
                ModuleStep::Release => return Some(self.start_release(lane, name)),
                ModuleStep::Uninstall => return Some(self.start_uninstall(lane, name.to_string())),
                ModuleStep::Done => return None,
            }
        }
    }

    /// The configurations of a module's hooks if they are known without a job: the module has no hooks, or a standby has
    /// asked them.
    fn known_hooks(&mut self, name: &ModuleName) -> Option<Vec<(HookName, HookConfig)>> {
        let has_hooks = self.modules.get(name).is_some_and(|unit| unit.found().has_hooks);
        let warm = self.warmth.take_answer(name);
        warm.or_else(|| (!has_hooks).then(Vec::new))
    }

    fn start_configure(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if self.warmth.take_question(lane, name) == Warm::UnderWay {
            self.lanes.running(&self.cx, lane);
            return true;
        }
        if !self.lanes.finds_slot(&self.cx, &self.jobs, lane, Slot::Hook) {
            return false;
        }
        let owner = Owner::Module(name.clone());
        self.lanes.start_job(&mut self.cx, &mut self.jobs, lane, |ticket| {
            Job::ConfigureHooks(owner, ticket)
        });
        true
    }

    /// Starts a hook that is a step of a run or of a removal.
    fn start_step_hook(&mut self, lane: &Lane, name: &ModuleName, stage: Stage, hook: HookName) -> bool {
        let id = HookId {
            owner: Owner::Module(name.clone()),
            name: hook,
        };
        match self.lanes.admit(&self.cx, &self.jobs, &self.bindings, lane, &id) {
            Admission::Now => {}
            Admission::NoSlot => return false,
            Admission::Later => return true,
        }
        self.start_stage_hook(lane, stage, id);
        true
    }

    fn start_own_conversions(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.lanes.finds_slot(&self.cx, &self.jobs, lane, Slot::Helm) {
            return false;
        }
        let globals = self.survey().globals_of_run(name);
        let Some(conversions) = self.conversions_of(name, &globals) else {
            return self.start_release(lane, name);
        };
        self.lanes.start_job(&mut self.cx, &mut self.jobs, lane, |ticket| {
            Job::EnsureConversions(vec![conversions], ticket)
        });
        true
    }

    fn start_release(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.lanes.finds_slot(&self.cx, &self.jobs, lane, Slot::Helm) {
            return false;
        }
        let owner = Owner::Module(name.clone());
        let has_chart = self.modules.get(name).is_some_and(|unit| unit.found().has_chart);
        let vetting = match self.vetting_for_helm(name) {
            Ok(vetting) => vetting.filter(|_| has_chart),
            Err(unfit) if has_chart => {
                self.run_failed(lane, name, Failure::of(Class::Invalid, &unfit));
                return true;
            }
            Err(_) => None,
        };
        let Some(values) = self.survey().release_values(name) else {
            return false;
        };
        let version = self.values.version(&owner);
        let began = self.cx.now.tick;
        if let Some(unit) = self.modules.get_mut(name) {
            unit.release_begins(began, version);
        }
        let asked = self
            .values
            .config_values_under(&self.survey().globals_of_run(name), &owner);
        let (maintenance, config) = (self.config.maintenance(name), self.config.trace(&self.values, name));
        let unhealthy = self.survey().unhealthy_to_leave(name);
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::SyncRelease {
                module: name.clone(),
                values,
                asked,
                vetting,
                maintenance,
                config,
                unhealthy,
                ticket,
            });
        true
    }

    fn run_succeeded(&mut self, lane: &Lane, name: &ModuleName) {
        self.lanes.succeeded(lane);
        let task = self.lanes.finish(&self.cx, lane);
        self.apply_what_nothing_holds(name);
        let version = self.values.version(&Owner::Module(name.clone()));
        let activation = self.converge.activation();
        let now = self.cx.now.tick;
        let (hooks, lineage) = self.loops.take_changers(lane);
        let is_slowed = self.longest_wait(&hooks).is_some();
        let Some(unit) = self.modules.get_mut(name) else {
            return;
        };
        // Modules behind this one wait for the second run that its own hooks caused, but not for a third one.
        let reason = task.as_ref().and_then(Task::run_reason);
        let (changed, run) = unit.succeed(version, is_slowed || reason == Some(RunReason::AfterHelmChange));
        self.cx.tell(Notice::ModuleReady {
            module: name.clone(),
            action: run.as_ref().and_then(|run| run.release.action()),
            took: run.map_or(Duration::ZERO, |run| now - run.began),
            activation,
        });
        self.drifts.ran(name, now);
        self.supply.has_run(name);
        self.settle_files(name);
        if changed {
            self.rerun_for(name, RunReason::AfterHelmChange, &hooks, lineage);
        }
        self.release_held();
        self.recovered();
    }

    pub(super) fn start_uninstall(&mut self, lane: &Lane, release: String) -> bool {
        if !self.lanes.finds_slot(&self.cx, &self.jobs, lane, Slot::Helm) {
            return false;
        }
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::DeleteRelease {
                release,
                ticket,
            });
        true
    }

    /// Ends a life of the module: drops the tasks of its hooks in all queues.
    pub(super) fn end_hooks(&mut self, owner: &Owner, reason: &'static str) {
        self.lanes.forsake_hooks(owner);
        self.loops.drop_hooks(|task| task.hook.owner == *owner);
        let of_owner = |task: &Task| task.as_hook().is_some_and(|task| task.hook.owner == *owner);
        self.lanes.drop_tasks(&mut self.cx, reason, of_owner);
    }
}
