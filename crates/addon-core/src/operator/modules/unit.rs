//! One module. Its fields change only by the methods below, each of which is named after what has happened to it.

use super::{Hold, Release, Run, Turn};
use crate::failure::{Class, Failure};
use crate::module::Module;
use crate::module::first_runs::FirstRuns;
use crate::module::lifecycle::{Facts, HookOrder, Lifecycle, ModuleStep};
use crate::name::{ModuleName, MonitorId};
use crate::operator::event::SyncAction;
use crate::time::Tick;
use crate::values::{Globals, Version};

/// One module.
#[derive(Debug)]
pub(in crate::operator) struct Unit {
    found: Module,
    life: Lifecycle,
    order: HookOrder,
    /// Its hooks have been configured since it was last switched on.
    hooks_known: bool,
    /// Its CRDs have been put into the cluster since it was last switched on.
    crds_ensured: bool,
    /// The conversion webhooks of its chart have been put into the cluster since a converge took it up.
    conversions_ensured: bool,
    /// It is among those that the last converge took up.
    enabled: bool,
    turn: Turn,
    /// The run under way, or the one that is tried again.
    run: Option<Run>,
    last_failure: Option<String>,
    /// Failures of its runs or of its removal since it last succeeded, also of such that were given up for a new one.
    failures: u32,
    /// Its upgrade waits for a person.
    upgrade_held: bool,
    /// The version of its values of which it is known that helm may get them.
    fits: Option<Version>,
}

/// What a run leaves when an attempt fails.
#[derive(Debug)]
#[must_use]
pub(in crate::operator) struct FailedAttempt {
    pub(in crate::operator) began: Tick,
    /// The step that failed.
    pub(in crate::operator) step: ModuleStep,
    /// Since when helm was at work, if it was.
    pub(in crate::operator) helm_began: Option<Tick>,
}

/// What is known of a module.
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
            failures: 0,
            upgrade_held: false,
            fits: None,
        }
    }

    pub(in crate::operator) fn name(&self) -> &ModuleName {
        &self.found.name
    }

    /// What was found of it on disk.
    pub(in crate::operator) fn found(&self) -> &Module {
        &self.found
    }

    pub(in crate::operator) fn life(&self) -> &Lifecycle {
        &self.life
    }

    /// Its hooks, in the order in which they run.
    pub(in crate::operator) fn order(&self) -> &HookOrder {
        &self.order
    }

    /// The last converge took it up.
    pub(in crate::operator) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(in crate::operator) fn turn(&self) -> &Turn {
        &self.turn
    }

    pub(in crate::operator) fn last_failure(&self) -> Option<&String> {
        self.last_failure.as_ref()
    }

    /// Failures in a row, of its runs or of its removal.
    pub(in crate::operator) fn failures(&self) -> u32 {
        self.failures
    }

    /// The global values as its run found them, if one is under way.
    pub(in crate::operator) fn globals_of_run(&self) -> Option<&Globals> {
        self.run.as_ref().map(|run| &run.globals)
    }

    /// Its upgrade waits for a person.
    pub(in crate::operator) fn is_upgrade_held(&self) -> bool {
        self.upgrade_held
    }

    /// It is known that helm may get its values of this version.
    pub(in crate::operator) fn fits(&self, version: Version) -> bool {
        self.fits == Some(version)
    }

    /// It takes part and has succeeded.
    pub(in crate::operator) fn has_passed(&self) -> bool {
        self.enabled && self.turn == Turn::Passed
    }

    /// Its run has left a release.
    pub(in crate::operator) fn is_released(&self) -> bool {
        self.turn == Turn::Passed && self.found.has_chart
    }

    /// It is to run, or something of it is still there.
    pub(in crate::operator) fn is_concerned(&self) -> bool {
        self.enabled || self.life != Lifecycle::Disabled
    }

    /// There are CRDs that nobody has looked after since it was switched on.
    pub(in crate::operator) fn needs_crds(&self) -> bool {
        self.found.has_crds && !self.crds_ensured
    }

    /// There are conversion webhooks that nobody has looked after since a converge took it up.
    pub(in crate::operator) fn lacks_conversions(&self) -> bool {
        self.found.has_chart && self.found.has_conversions && !self.conversions_ensured
    }
}

/// What happens to a module before and between its runs.
impl Unit {
    /// A file that is lost said this of it.
    pub(in crate::operator) fn keep_flag(&mut self, flag: bool) {
        self.found.enabled = Some(flag);
    }

    /// It cannot be run as it lies on disk.
    pub(in crate::operator) fn breaks(&mut self, failure: Failure) {
        self.found.broken = Some(failure);
    }

    /// Its hooks told what they bind to.
    pub(in crate::operator) fn hooks_told(&mut self, order: HookOrder) {
        self.order = order;
        self.hooks_known = true;
    }

    /// A converge takes it up, or leaves it out.
    pub(in crate::operator) fn take_up(&mut self, wanted: bool) {
        self.enabled = wanted;
        self.conversions_ensured = false;
        self.turn = if wanted { Turn::Waiting } else { Turn::Out };
    }

    /// The CRDs of a life that is over are no longer those of the next one.
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

    /// It cannot run for now.
    pub(in crate::operator) fn hold(&mut self, hold: Hold) {
        self.turn = Turn::Held(hold);
    }

    /// It waits for the end of a trial, which is no failure of its own.
    pub(in crate::operator) fn wait_for_trial(&mut self, reason: String) {
        self.failures = 0;
        self.hold(Hold {
            reason,
            need: None,
            is_own_fault: false,
            is_for_trial: true,
        });
    }

    /// Its run stands in its lane.
    pub(in crate::operator) fn run_queued(&mut self) {
        self.turn = Turn::Running;
    }

    /// Its run hangs, and nobody waits for it any longer.
    pub(in crate::operator) fn left_behind(&mut self) {
        self.turn = Turn::Late;
    }

    /// Its run waits for something that failed and is tried again elsewhere: nobody else waits for it.
    pub(in crate::operator) fn held_up(&mut self, report: String) {
        if self.turn.is_under_way() {
            self.turn = Turn::Failed;
        }
        self.last_failure = Some(report);
    }
}

/// What happens to a module in its runs.
impl Unit {
    pub(in crate::operator) fn begin_run(&mut self, now: Tick, globals: Globals) {
        self.life.begin_run();
        self.run = Some(Run::begin(now, globals));
    }

    /// Passes over what has nothing to do and names the next step.
    pub(in crate::operator) fn next_step(&mut self, facts: Facts) -> ModuleStep {
        let step = self.life.step(&self.order, facts);
        if let Some(run) = &mut self.run {
            run.step.clone_from(&step);
        }
        step
    }

    /// The step under way went well; the next one may come.
    pub(in crate::operator) fn step_succeeded(&mut self) {
        let release = self.run.as_ref().map(|run| run.release.version());
        self.life.succeeded(release.unwrap_or_default());
    }

    /// The monitors of a hook watch, and these are the runs that are to be made first.
    pub(in crate::operator) fn watched(&mut self, runs: FirstRuns) {
        self.life.watched(runs);
    }

    /// The first run of a monitor is over.
    pub(in crate::operator) fn first_run_over(&mut self, monitor: MonitorId) {
        self.life.first_run_over(monitor);
    }

    /// Its monitors begin anew.
    pub(in crate::operator) fn watch_again(&mut self) {
        self.life.watch_again();
    }

    /// The job of the release is about to start, with its values of this version.
    pub(in crate::operator) fn release_begins(&mut self, began: Tick, version: Version) {
        if let Some(run) = &mut self.run {
            run.release = Release::UnderWay { began, version };
        }
    }

    /// The release of the run under way is as the values want it.
    pub(in crate::operator) fn released(&mut self, action: SyncAction) {
        let Some(run) = &mut self.run else { return };
        let version = run.release.version();
        run.release = Release::Synced { action, version };
        self.fits = self.found.has_chart.then_some(version);
    }

    /// A run has come to its end, while the values are of this version. True if its own hooks have changed them since its release,
    /// so that another run has to follow. Those behind it wait for that one, unless this run was one already (`asked`).
    pub(in crate::operator) fn succeed(&mut self, version: Version, asked: bool) -> (bool, Option<Run>) {
        let changed = self.life.released().is_some_and(|released| released != version);
        self.turn = if changed && !asked { Turn::Running } else { Turn::Passed };
        self.last_failure = None;
        self.failures = 0;
        self.upgrade_held = false;
        (changed, self.run.take())
    }

    /// An attempt failed. The next one sees the global values of now.
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

    /// The run begins anew after this step failed.
    pub(in crate::operator) fn run_failed(&mut self, step: &ModuleStep, failure: &Failure) {
        self.life.begin_run();
        if !self.turn.is_to_come() {
            self.turn = Turn::Failed;
        }
        self.note_failure(failure);
        // A failure on the way to the release says nothing of the upgrade.
        self.upgrade_held = failure.class == Class::Held || self.upgrade_held && *step != ModuleStep::Release;
    }

    /// Its run is given up.
    pub(in crate::operator) fn drop_run(&mut self) {
        self.run = None;
    }

    pub(in crate::operator) fn begin_delete(&mut self) {
        self.life.begin_delete(self.hooks_known);
    }

    /// A step of its removal failed.
    pub(in crate::operator) fn delete_failed(&mut self, failure: &Failure) {
        self.note_failure(failure);
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.last_failure = Some(failure.report.clone());
        self.failures = self.failures.saturating_add(1);
    }

    /// Nothing of it is left.
    pub(in crate::operator) fn deleted(&mut self) {
        self.life = Lifecycle::Disabled;
        self.hooks_known = false;
        self.crds_ensured = false;
        self.last_failure = None;
        self.failures = 0;
        self.upgrade_held = false;
    }
}
