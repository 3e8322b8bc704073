//! One module. Its fields change only by the methods below. Each is named after the event that it notes.

use clock::Tick;
use names::{ModuleName, MonitorId};

use super::{Hold, Release, Run, Turn};
use crate::failure::{Class, Failure};
use crate::module::Module;
use crate::module::first_runs::FirstRuns;
use crate::module::lifecycle::{Facts, HookOrder, Lifecycle, ModuleStep};
use crate::operator::event::SyncAction;
use crate::values::{Globals, Version};

/// A module with the state of its lifecycle, of its turn and of its run.
#[derive(Debug, Clone)]
pub(in crate::operator) struct Unit {
    found: Module,
    life: Lifecycle,
    order: HookOrder,
    /// Whether the hooks have been configured since the module was last switched on.
    hooks_known: bool,
    /// Whether the CRDs have been installed since the module was last switched on.
    crds_ensured: bool,
    /// Whether the chart's conversion webhooks have been published since a converge took the module up.
    conversions_ensured: bool,
    /// Whether the last converge took the module up.
    enabled: bool,
    turn: Turn,
    /// The run that is under way or will be retried.
    run: Option<Run>,
    last_failure: Option<String>,
    /// The remedies of the last failure.
    hints: Vec<String>,
    /// Warnings about objects of the release.
    remarks: Vec<String>,
    /// The number of failed runs or removals since the last success. Runs that were given up for a new run count, too.
    failures: u32,
    /// How many of them were faults.
    faults: u32,
    /// Whether the upgrade of the release waits for a person.
    upgrade_held: bool,
    /// The version of the module's values that was last found fit for helm.
    fits: Option<Version>,
    /// Whether the module has got other files since its last run began.
    renewed: bool,
}

/// The facts about a failed attempt.
#[derive(Debug)]
#[must_use]
pub(in crate::operator) struct FailedAttempt {
    pub(in crate::operator) began: Tick,
    /// The step of the run that failed.
    pub(in crate::operator) step: ModuleStep,
    /// The start of the helm job, if helm was running.
    pub(in crate::operator) helm_began: Option<Tick>,
}

/// The state of the module.
impl Unit {
    pub(super) fn new(found: Module) -> Self {
        Self {
            found,
            life: Lifecycle::Disabled,
            order: HookOrder::default(),
            hooks_known: false,
            crds_ensured: false,
            conversions_ensured: false,
            enabled: false,
            turn: Turn::Out,
            run: None,
            last_failure: None,
            hints: Vec::new(),
            remarks: Vec::new(),
            failures: 0,
            faults: 0,
            upgrade_held: false,
            fits: None,
            renewed: false,
        }
    }

    pub(in crate::operator) fn name(&self) -> &ModuleName {
        &self.found.name
    }

    /// The module as it was found on disk.
    pub(in crate::operator) fn found(&self) -> &Module {
        &self.found
    }

    pub(in crate::operator) fn life(&self) -> &Lifecycle {
        &self.life
    }

    /// The hooks in the order in which they run.
    pub(in crate::operator) fn order(&self) -> &HookOrder {
        &self.order
    }

    /// Whether the last converge took the module up.
    pub(in crate::operator) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(in crate::operator) fn turn(&self) -> &Turn {
        &self.turn
    }

    pub(in crate::operator) fn last_failure(&self) -> Option<&String> {
        self.last_failure.as_ref()
    }

    /// The remedies of the last failure, a sentence each.
    pub(in crate::operator) fn hints(&self) -> &[String] {
        if self.last_failure.is_some() { &self.hints } else { &[] }
    }

    /// Warnings about objects of the release.
    pub(in crate::operator) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The number of faults among the failures in a row.
    pub(in crate::operator) fn faults(&self) -> u32 {
        self.faults
    }

    /// The number of failures in a row, of runs or removals.
    pub(in crate::operator) fn failures(&self) -> u32 {
        self.failures
    }

    /// The global values that the run uses, if one is under way.
    pub(in crate::operator) fn globals_of_run(&self) -> Option<&Globals> {
        self.run.as_ref().map(|run| &run.globals)
    }

    /// Whether the upgrade of the release waits for a person.
    pub(in crate::operator) fn is_upgrade_held(&self) -> bool {
        self.upgrade_held
    }

    /// Whether the values of this version are known to be fit for helm.
    pub(in crate::operator) fn fits(&self, version: Version) -> bool {
        self.fits == Some(version)
    }

    /// Whether the module is enabled and its run has succeeded.
    pub(in crate::operator) fn has_passed(&self) -> bool {
        self.enabled && self.turn == Turn::Passed
    }

    /// Whether the module's last run succeeded, or this life has seen none. The module may wait for its next turn.
    pub(in crate::operator) fn is_well(&self) -> bool {
        let did_well = self.life == Lifecycle::Disabled || self.life.released().is_some();
        !self.enabled || did_well || self.has_passed()
    }

    /// Whether the module's run has succeeded and left a release.
    pub(in crate::operator) fn is_released(&self) -> bool {
        self.turn == Turn::Passed && self.found.has_chart
    }

    /// Whether the module is on, or the removal of the module has not ended yet.
    pub(in crate::operator) fn is_concerned(&self) -> bool {
        self.enabled || self.life != Lifecycle::Disabled
    }

    /// Whether the module has CRDs that were not installed since it was switched on.
    pub(in crate::operator) fn needs_crds(&self) -> bool {
        self.found.has_crds && !self.crds_ensured
    }

    /// Whether the chart has conversion webhooks that were not published since a converge took the module up.
    pub(in crate::operator) fn lacks_conversions(&self) -> bool {
        self.found.has_chart && self.found.has_conversions && !self.conversions_ensured
    }
}

/// Events before and between runs.
impl Unit {
    /// Keeps the flag that a lost values file had for the module.
    pub(in crate::operator) fn keep_flag(&mut self, flag: bool) {
        self.found.enabled = Some(flag);
    }

    /// Notes that the module cannot be run as it lies on disk.
    pub(in crate::operator) fn breaks(&mut self, failure: Failure) {
        self.found.broken = Some(failure);
    }

    /// Notes that the module begins a new life with these files. A run or a removal under way begins anew.
    pub(in crate::operator) fn renew(&mut self, found: Module) {
        self.life.begin_anew();
        self.found = found;
        self.hooks_known = false;
        self.crds_ensured = false;
        self.conversions_ensured = false;
        self.run = None;
        self.last_failure = None;
        (self.failures, self.faults) = (0, 0);
        self.upgrade_held = false;
        self.fits = None;
        self.renewed = true;
    }

    /// Whether the module has got other files since its last run began.
    pub(in crate::operator) fn is_renewed(&self) -> bool {
        self.renewed
    }

    /// Notes the bindings of the module's hooks.
    pub(in crate::operator) fn hooks_told(&mut self, order: HookOrder) {
        self.order = order;
        self.hooks_known = true;
    }

    /// Notes that a converge takes the module up, or leaves it out.
    pub(in crate::operator) fn take_up(&mut self, wanted: bool) {
        self.enabled = wanted;
        self.conversions_ensured = false;
        self.turn = if wanted { Turn::Waiting } else { Turn::Out };
    }

    /// Forgets that CRDs were installed in an earlier life of the module.
    pub(in crate::operator) fn forget_old_crds(&mut self) {
        if self.life.is_over() {
            self.crds_ensured = false;
        }
    }

    pub(in crate::operator) fn crds_ensured(&mut self) {
        self.crds_ensured = true;
    }

    pub(in crate::operator) fn conversions_ensured(&mut self) {
        self.conversions_ensured = true;
    }

    /// Notes that the module cannot run for now.
    pub(in crate::operator) fn hold(&mut self, hold: Hold) {
        self.turn = Turn::Held(hold);
    }

    /// Makes the module wait for the end of a trial. That is no failure of the module.
    pub(in crate::operator) fn wait_for_trial(&mut self, reason: String) {
        (self.failures, self.faults) = (0, 0);
        self.hold(Hold {
            reason,
            need: None,
            is_own_fault: false,
            is_for_trial: true,
        });
    }

    /// Notes that the run is in the module's lane.
    pub(in crate::operator) fn run_queued(&mut self) {
        self.turn = Turn::Running;
    }

    /// Notes that the run hangs and that other modules go on.
    pub(in crate::operator) fn left_behind(&mut self) {
        self.turn = Turn::Late;
    }

    /// Notes that the run waits for a task in another queue that failed and is retried. Other modules go on.
    pub(in crate::operator) fn held_up(&mut self, report: String) {
        if self.turn.is_under_way() {
            self.turn = Turn::Failed;
        }
        self.last_failure = Some(report);
        self.hints.clear();
    }
}

/// Events in runs.
impl Unit {
    pub(in crate::operator) fn begin_run(&mut self, now: Tick, globals: Globals) {
        self.life.begin_run();
        self.renewed = false;
        self.run = Some(Run::begin(now, globals));
    }

    /// Skips steps without work and returns the next step.
    pub(in crate::operator) fn next_step(&mut self, facts: Facts) -> ModuleStep {
        let step = self.life.step(&self.order, facts);
        if let Some(run) = &mut self.run {
            run.step.clone_from(&step);
        }
        step
    }

    /// Notes that the current step succeeded, so that the next one may come.
    pub(in crate::operator) fn step_succeeded(&mut self) {
        let release = self.run.as_ref().map(|run| run.release.version());
        self.life.succeeded(release.unwrap_or_default());
    }

    /// Notes that the monitors of a hook are watching, and which first runs it needs.
    pub(in crate::operator) fn watched(&mut self, runs: FirstRuns) {
        self.life.watched(runs);
    }

    /// Notes that the first run for a monitor is over.
    pub(in crate::operator) fn first_run_over(&mut self, monitor: MonitorId) {
        self.life.first_run_over(monitor);
    }

    /// Notes that the module's monitors begin anew.
    pub(in crate::operator) fn watch_again(&mut self) {
        self.life.watch_again();
    }

    /// Notes that the release job starts, with the module's values of this version.
    pub(in crate::operator) fn release_begins(&mut self, began: Tick, version: Version) {
        if let Some(run) = &mut self.run {
            run.release = Release::UnderWay { began, version };
        }
    }

    /// Notes that the release of the current run is in the state of its values, with warnings about its objects.
    pub(in crate::operator) fn released(&mut self, action: SyncAction, remarks: Vec<String>) {
        self.remarks = remarks;
        let Some(run) = &mut self.run else { return };
        let version = run.release.version();
        run.release = Release::Synced { action, version };
        self.fits = self.found.has_chart.then_some(version);
    }

    /// Notes the end of a run, at this version of the values. True if the module's own hooks have changed the values
    /// since the release, so that another run has to follow. Modules behind this one wait for that run, except when the
    /// run that ended was itself a second run (`asked`).
    pub(in crate::operator) fn succeed(&mut self, version: Version, asked: bool) -> (bool, Option<Run>) {
        let changed = self.life.released().is_some_and(|released| released != version);
        self.turn = if changed && !asked { Turn::Running } else { Turn::Passed };
        self.last_failure = None;
        (self.failures, self.faults) = (0, 0);
        self.upgrade_held = false;
        (changed, self.run.take())
    }

    /// Notes that an attempt failed. The next attempt uses the current global values.
    pub(in crate::operator) fn attempt_failed(&mut self, now: Tick, globals: Globals) -> FailedAttempt {
        let run = self.run.get_or_insert_with(|| Run::begin(now, globals.clone()));
        let began = run.began;
        let (step, helm_began) = run.fail(globals);
        FailedAttempt {
            began,
            step,
            helm_began,
        }
    }

    /// Notes that the run begins anew because this step failed.
    pub(in crate::operator) fn run_failed(&mut self, step: &ModuleStep, failure: &Failure) {
        self.life.begin_run();
        if !self.turn.is_to_come() {
            self.turn = Turn::Failed;
        }
        self.note_failure(failure);
        // A failure before the release step says nothing about the upgrade.
        let is_held = matches!(failure.class, Class::Held | Class::Blocked);
        self.upgrade_held = is_held || self.upgrade_held && *step != ModuleStep::Release;
    }

    pub(in crate::operator) fn drop_run(&mut self) {
        self.run = None;
    }

    pub(in crate::operator) fn begin_delete(&mut self) {
        self.life.begin_delete(self.hooks_known);
    }

    /// Notes that a step of the module's removal failed.
    pub(in crate::operator) fn delete_failed(&mut self, failure: &Failure) {
        self.note_failure(failure);
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.last_failure = Some(failure.report.clone());
        self.hints.clone_from(&failure.hints);
        self.failures = self.failures.saturating_add(1);
        self.faults += u32::from(failure.class.is_fault());
    }

    /// Notes that nothing of the module is left in the cluster.
    pub(in crate::operator) fn deleted(&mut self) {
        self.life = Lifecycle::Disabled;
        self.remarks.clear();
        self.hooks_known = false;
        self.crds_ensured = false;
        self.last_failure = None;
        (self.failures, self.faults) = (0, 0);
        self.upgrade_held = false;
    }
}
