//! One run of a module: its steps in order, each a job, until the module is ready or a step fails.

use std::time::Duration;

use super::Operator;
use super::effect::{Job, Notice};
use super::event::Synced;
use super::lanes::Admission;
use super::modules::{Release, Run, Turn};
use super::task::{Lane, Reason, RunReason, Task};
use crate::failure::{Class, Failure};
use crate::hook::config::{HookConfig, Stage};
use crate::module::lifecycle::Step;
use crate::name::{HookId, HookName, ModuleName, Owner};
use crate::values::vetted::Vetting;
use crate::values::{Globals, HookDocument, NotForHelm};

impl Operator {
    /// Lets the run at the head of a module's lane go on. False if it must wait for a slot.
    pub(super) fn advance_run(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.modules.get(name).is_some_and(|unit| unit.enabled) {
            self.lanes.finish(lane);
            return true;
        }
        // What the hooks before all modules set and who is switched off is for all runs alike; the converge lets them run.
        let to_come = self.modules.get(name).is_some_and(|unit| unit.turn.is_to_come());
        let begins = self.lanes.head(lane).is_some_and(|head| !head.begun);
        if begins && to_come {
            // It hung, and was to begin anew. Its turn brings another one.
            self.lanes.finish(lane);
            return true;
        }
        if begins && self.converge.assesses_by_itself() {
            return false;
        }
        let mut anew = false;
        if self.lanes.begin_head(&mut self.cx, lane) {
            let given_up = |unit: &super::modules::Unit| unit.life.is_deleting();
            if self.modules.get(name).is_some_and(given_up) {
                // A removal that did not come to its end is followed by a new life all the same.
                let owner = Owner::Module(name.clone());
                self.end_hooks(&owner, "their module begins a new life");
                let _ = self.values.forget_patches(&owner);
            }
            anew = self.apply_deferred(name);
            let run = Run::begin(self.cx.now.tick, self.values.globals());
            if let Some(unit) = self.modules.get_mut(name) {
                unit.life.begin_run();
                unit.run = Some(run);
            }
            self.watch_again(name);
        }
        let moved = self.take_steps(lane, name).unwrap_or_else(|| {
            self.run_succeeded(lane, name);
            true
        });
        // Who is to be assessed anew must not wait for the next event, be the run held up or not.
        moved || anew
    }

    /// Takes the steps of a run or of a removal as far as they go without a job, and starts the job of the next one.
    /// `None` when the last step is behind the module, false if the job must wait for a slot.
    pub(super) fn take_steps(&mut self, lane: &Lane, name: &ModuleName) -> Option<bool> {
        loop {
            let step = self.next_step(name);
            if let Some(run) = self.modules.get_mut(name).and_then(|unit| unit.run.as_mut()) {
                run.step.clone_from(&step);
            }
            match step {
                Step::EnsureCrds => {
                    self.start_crds(lane, vec![name.clone()]);
                    return Some(true);
                }
                Step::Configure if self.takes_warm_answer(name) => {}
                Step::Configure if !self.has_hooks(name) => {
                    self.hooks_configured(&Owner::Module(name.clone()), Vec::new());
                    self.step_succeeded(name);
                }
                Step::Configure => return Some(self.start_configure(lane, name)),
                Step::Hook(stage, hook) => return Some(self.start_step_hook(lane, name, stage, hook)),
                Step::Watch(hook) => {
                    self.start_module_monitors(lane, name, hook);
                    return Some(true);
                }
                Step::FirstRun(monitor) => {
                    if let Some(moved) = self.start_first_run(lane, name, monitor) {
                        return Some(moved);
                    }
                }
                Step::AwaitFirstRuns => {
                    self.await_first_runs(lane, name);
                    return Some(true);
                }
                Step::EnsureConversions => return Some(self.start_own_conversions(lane, name)),
                Step::Release => return Some(self.start_release(lane, name)),
                Step::Uninstall => return Some(self.start_uninstall(lane, name)),
                Step::Done => return None,
            }
        }
    }

    fn has_hooks(&self, name: &ModuleName) -> bool {
        self.modules.get(name).is_some_and(|unit| unit.found.has_hooks)
    }

    /// Passes over what has nothing to do and names the module's next step.
    pub(super) fn next_step(&mut self, name: &ModuleName) -> Step {
        let facts = self.facts(name);
        self.modules
            .get_mut(name)
            .map_or(Step::Done, |unit| unit.life.step(&unit.order, facts))
    }

    /// The module's step went well; the next one may come.
    pub(super) fn step_succeeded(&mut self, name: &ModuleName) {
        if let Some(unit) = self.modules.get_mut(name) {
            let release = unit.run.as_ref().map(|run| run.release.version());
            unit.life.succeeded(release.unwrap_or_default());
        }
    }

    fn start_configure(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if self.takes_warm_question(lane, name) {
            return true;
        }
        if !self.jobs.hook_slot(&self.cx.policy) {
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
        match self.lanes.admit(&self.cx, &self.jobs, &self.bindings, (lane, &id)) {
            Admission::Now => {}
            Admission::NoSlot => return false,
            Admission::Later => return true,
        }
        self.start_stage_hook(lane, stage, id);
        true
    }

    fn start_own_conversions(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.jobs.helm_slot(&self.cx.policy) {
            return false;
        }
        let globals = self.globals_of_run(name);
        let Some(conversions) = self.conversions_of(name, &globals) else {
            return self.start_release(lane, name);
        };
        self.lanes.start_job(&mut self.cx, &mut self.jobs, lane, |ticket| {
            Job::EnsureConversions(vec![conversions], ticket)
        });
        true
    }

    fn start_release(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        if !self.jobs.helm_slot(&self.cx.policy) {
            return false;
        }
        let owner = Owner::Module(name.clone());
        let has_chart = self.modules.get(name).is_some_and(|unit| unit.found.has_chart);
        let vetting = match self.vetting_for_helm(name) {
            Ok(vetting) => vetting.filter(|_| has_chart),
            Err(unfit) if has_chart => {
                self.run_failed(lane, name, Failure::of(Class::Invalid, &unfit));
                return true;
            }
            Err(_) => None,
        };
        let Some(values) = self.release_values(name) else {
            return false;
        };
        let version = self.values.version(&owner);
        let began = self.cx.now.tick;
        if let Some(run) = self.modules.get_mut(name).and_then(|unit| unit.run.as_mut()) {
            run.release = Release::UnderWay { began, version };
        }
        let asked = self.values.config_values_under(&self.globals_of_run(name), &owner);
        let (maintenance, config) = (self.config.maintenance(name), self.config_trace(name));
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::SyncRelease {
                module: name.clone(),
                values,
                asked,
                vetting,
                maintenance,
                config,
                ticket,
            });
        true
    }

    /// Whether helm may get the module's values. A check that takes long is left to the job that hands them to helm.
    pub(super) fn vetting_for_helm(&self, name: &ModuleName) -> Result<Option<Box<Vetting>>, NotForHelm> {
        let owner = Owner::Module(name.clone());
        let known = self.modules.get(name).and_then(|unit| unit.fits);
        if known == Some(self.values.version(&owner)) {
            return Ok(None);
        }
        let Some(vetting) = self.values.vetting_for_helm(&owner) else {
            return Ok(None);
        };
        if vetting.takes_long() {
            return Ok(Some(Box::new(vetting)));
        }
        vetting.for_helm().map(|()| None)
    }

    /// What the module's release is given.
    pub(super) fn release_values(&self, name: &ModuleName) -> Option<HookDocument> {
        self.modules.get(name)?;
        let globals = self.globals_of_run(name);
        Some(self.values.hook_values_under(&globals, &Owner::Module(name.clone())))
    }

    /// The global values as the module's run found them.
    pub(super) fn globals_of_run(&self, name: &ModuleName) -> Globals {
        let run = self.modules.get(name).and_then(|unit| unit.run.as_ref());
        run.map_or_else(|| self.values.globals(), |run| run.globals.clone())
    }

    /// The hooks of a module answered, for a run or for a removal.
    pub(super) fn module_configured(&mut self, lane: &Lane, hooks: Vec<(HookName, HookConfig)>) {
        let Some(name) = self.lanes.module_at(lane) else { return };
        self.hooks_configured(&Owner::Module(name.clone()), hooks);
        self.step_succeeded(&name);
        self.lanes.resume(lane);
    }

    pub(super) fn release_synced(&mut self, lane: &Lane, synced: &Synced, took: Duration) {
        let Some(name) = self.lanes.module_at(lane) else { return };
        if synced.revision > 0 {
            self.removal.exists(name.as_str());
        }
        if !synced.adopted.is_empty() {
            self.cx.tell(Notice::ObjectsAdopted {
                module: name.clone(),
                objects: synced.adopted.clone(),
            });
        }
        let activation = self.converge.activation();
        let action = synced.action;
        self.cx.tell(Notice::HelmFinished {
            module: name.clone(),
            action,
            took,
            activation,
        });
        if let Some(unit) = self.modules.get_mut(&name) {
            unit.released(action);
        }
        self.step_succeeded(&name);
        self.lanes.resume(lane);
    }

    /// A module succeeded outside of a converge: if it was the last one lacking, the hooks after all modules run again.
    pub(super) fn recovered(&mut self) {
        let lacking = self
            .modules
            .values()
            .any(|unit| unit.enabled && unit.turn != Turn::Passed);
        if self.converge.active.is_none() && self.converge.lacking_at_end && !lacking {
            self.converge.lacking_at_end = false;
            let is_queued = self.lanes.tasks(&Lane::Global).any(|entry| entry.task.is_converge());
            if !is_queued {
                self.lanes
                    .push(&self.cx, Lane::Global, Task::Converge(Reason::Recovered));
            }
        }
    }

    /// Runs a module once more because something of its own changed, unless a run that will see it is waiting already.
    pub(super) fn rerun(&mut self, name: &ModuleName, reason: RunReason) {
        let Some(unit) = self.modules.get(name).filter(|unit| unit.enabled) else {
            return;
        };
        if unit.turn.is_to_come() {
            return;
        }
        let lane = Lane::Module(name.clone());
        if self.lanes.behind_head(&lane).any(|entry| entry.task.is_run()) {
            return;
        }
        if let Some(head) = self
            .lanes
            .head(&lane)
            .filter(|head| head.task.is_run() && !head.is_active())
        {
            if head.begun {
                self.lanes.resume(&lane);
            }
            return;
        }
        let task = Task::ModuleRun {
            module: name.clone(),
            reason,
        };
        self.lanes.push(&self.cx, lane, task);
    }

    fn run_succeeded(&mut self, lane: &Lane, name: &ModuleName) {
        self.lanes.succeeded(lane);
        let task = self.lanes.finish(lane);
        self.apply_what_nothing_holds(name);
        let version = self.values.version(&Owner::Module(name.clone()));
        let activation = self.converge.activation();
        let now = self.cx.now.tick;
        let Some(unit) = self.modules.get_mut(name) else {
            return;
        };
        let changed = unit.life.released().is_some_and(|released| released != version);
        // Those behind it wait for the run that its own hooks asked for, but not for one that such a run asks for.
        let reason = task.as_ref().and_then(Task::run_reason);
        let asked = reason == Some(RunReason::AfterHelmChange);
        unit.turn = if changed && !asked { Turn::Running } else { Turn::Passed };
        let run = unit.run.take();
        unit.last_failure = None;
        unit.failures = 0;
        unit.upgrade_held = false;
        self.cx.tell(Notice::ModuleReady {
            module: name.clone(),
            action: run.as_ref().and_then(|run| run.release.action()),
            took: run.map_or(Duration::ZERO, |run| now - run.began),
            activation,
        });
        self.drifts.ran(name, now);
        if changed {
            self.rerun(name, RunReason::AfterHelmChange);
        }
        self.release_held();
        self.recovered();
    }

    /// A step of a run failed: the run starts over after a while, in its own lane; the others go on.
    pub(super) fn run_failed(&mut self, lane: &Lane, name: &ModuleName, failure: Failure) {
        let (now, activation) = (self.cx.now.tick, self.converge.activation());
        let globals = self.values.globals();
        let Some(unit) = self.modules.get_mut(name) else { return };
        let run = unit.run.get_or_insert_with(|| Run::begin(now, globals.clone()));
        let began = run.began;
        let (step, helm_began) = run.fail(globals);
        if helm_began.is_some() {
            self.removal.may_exist(name.as_str());
            if failure.class == Class::TimedOut {
                self.removal.forget_foreign(name.as_str());
            }
        }
        let (attempts, retry_in) = self.lanes.back_off(&mut self.cx, lane, &failure);
        self.apply_what_nothing_holds(name);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.life.begin_run();
            if !unit.turn.is_to_come() {
                unit.turn = Turn::Failed;
            }
            unit.last_failure = Some(failure.report.clone());
            unit.failures = unit.failures.saturating_add(1);
            // A failure on the way to the release says nothing of the upgrade.
            unit.upgrade_held = failure.class == Class::Held || unit.upgrade_held && step != Step::Release;
        }
        self.cx.tell(Notice::ModuleFailed {
            module: name.clone(),
            step: step.describe(),
            failure,
            took: now - began,
            helm: helm_began.map(|began| now - began),
            activation,
            attempts,
            retry_in,
        });
    }
}
