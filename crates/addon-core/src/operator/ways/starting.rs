//! The way from an operator that knows nothing to the first converge, and to the shutdown: the facts that must be known
//! before any work, and the tasks in `main` at the start.

use std::time::Duration;

use names::{HookId, Owner};

use crate::failure::{Class, Failure};
use crate::hook::config::Stage;
use crate::module::Inventory;
use crate::module::outline::ValuesFiles;
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Notice;
use crate::operator::event::{ConfigRead, SavedState};
use crate::operator::policy::Mode;
use crate::operator::task::{Lane, Reason, Task};

impl Operator {
    /// Takes the directories, once in a life. A later reading is not taken over.
    pub(super) fn take_inventory(&mut self, inventory: Inventory) {
        if self.directories.are_known() {
            return;
        }
        let outline = inventory.outline();
        // Empty directories rather mean that a mount is missing, so they are no evidence that modules are gone.
        let complete = inventory.complete && !inventory.modules.is_empty();
        self.directories.found(outline, inventory.values_files, complete);
        self.startup.found(inventory.has_global_hooks);
        let schemas = self.values.set_schemas(&Owner::Global, inventory.global_schemas);
        let files = schemas.and_then(|_| self.values.set_static(&Owner::Global, inventory.global_values));
        if let Err(rejected) = files {
            self.directories.fall_short();
            let failure = Failure::of(Class::Invalid, &rejected);
            self.cx.tell(Notice::StepFailed {
                step: "take over the global values of files".to_owned(),
                failure,
                again: false,
                retry_in: Duration::MAX,
            });
        }
        for mut module in inventory.modules {
            let owner = Owner::Module(module.name.clone());
            let (schemas, files) = (std::mem::take(&mut module.schemas), std::mem::take(&mut module.values));
            if let Err(rejected) = self.values.renew_files(&owner, schemas, files) {
                module.broken.get_or_insert(Failure::of(Class::Invalid, &rejected));
            }
            self.modules.add(module);
        }
    }

    /// Keeps readings of the ConfigMap until everything else is known. Later readings are applied at once.
    pub(super) fn config_read(&mut self, read: ConfigRead) {
        if self.startup.is_restored() {
            self.config_changed(read);
            self.advance_commits();
            return;
        }
        if !self.config.has_readings() {
            self.chores.wake(self.cx.now.tick);
        }
        if self.standing.is_standby() {
            self.warmth.hear(&read);
        }
        self.config.keep_reading(read);
    }

    /// Makes the preparations of a standby, so that less work is left when this replica leads.
    pub(super) fn advance_standby(&mut self) {
        if self.directories.are_known() && self.startup.has_global_hooks() {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        if self.startup.knows_global_hooks(&self.chores) && self.warmth.has_time() {
            self.warm_up();
        }
    }

    pub(super) fn advance_startup(&mut self) {
        if !self.directories.are_known() {
            return;
        }
        if self.cx.policy.mode == Mode::Hooks {
            self.advance_startup_alone();
            return;
        }
        self.run_chore(Chore::LoadState);
        self.run_chore(Chore::ListReleases);
        if self.startup.has_global_hooks() {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        self.settle_sections();
        if self.startup.has_begun() {
            self.look_for_losses();
            self.keep_state();
            return;
        }
        if !self.startup.is_restored() {
            if !self.startup.knows_global_hooks(&self.chores) || !self.config.has_readings() || self.awaits_sections() {
                return;
            }
            let Some(SavedState {
                last_good,
                made,
                values_files,
                trial_sections: _,
                given,
            }) = self.startup.restore()
            else {
                return;
            };
            self.restore_sources(values_files);
            self.stand_ins.restore(given);
            self.config.restore(last_good, made);
            self.take_readings();
        }
        if self.config.has_readings() || self.supply.awaits_copies() {
            return;
        }
        self.startup.begin();
        self.begin();
        self.look_for_losses();
        self.keep_state();
    }

    fn advance_startup_alone(&mut self) {
        if self.startup.has_global_hooks() {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        if self.startup.knows_global_hooks(&self.chores) && !self.startup.has_begun() {
            self.begin_alone();
        }
    }

    /// Queues the global hooks of the start and the first converge, because everything is known.
    fn begin(&mut self) {
        for hook in self.bindings.global_hooks(Stage::OnStartup) {
            let task = self.stage_task(Stage::OnStartup, hook);
            self.lanes.push(&self.cx, Lane::Global, Task::Hook(task));
        }
        self.enable_global_hooks();
        self.lanes.push(&self.cx, Lane::Global, Task::Converge(Reason::Startup));
    }

    /// Writes the state Secret if it differs from the applied texts, and drops a failed attempt that is no longer needed.
    fn keep_state(&mut self) {
        if self.config.unsaved() {
            self.run_chore(Chore::SaveState);
        } else {
            self.chores.give_up(Chore::SaveState);
        }
    }

    /// Queues the start without modules: start-up hooks by their order numbers, then the monitors and schedules, hook by hook.
    pub(super) fn begin_alone(&mut self) {
        self.startup.begin();
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

    /// Queues the steps before the first converge: the schedules, then the monitors of the global hooks and their first runs.
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

    /// Looks for lost configurations, once all sources are known.
    fn look_for_losses(&mut self) {
        if self.startup.has_begun() && self.removal.is_listed() {
            self.config
                .look_for_losses(&mut self.cx, &self.values, self.removal.traces());
        }
    }

    /// Compares the values files with their outlines in the state Secret.
    fn restore_sources(&mut self, kept: Option<ValuesFiles>) {
        let lost = self.directories.sources_mut().restore(&mut self.modules, kept);
        for (file, modules) in lost {
            self.directories.fall_short();
            self.cx.tell(Notice::ValuesFileLost { file, modules });
        }
    }

    /// Writes the outlines of the values files if the state Secret lacks them.
    pub(super) fn keep_sources(&mut self) {
        if self.directories.sources().unsaved() {
            self.run_chore(Chore::SaveValuesFiles);
        } else {
            self.chores.give_up(Chore::SaveValuesFiles);
        }
    }

    /// Writes the values that global hooks have given if the state Secret lacks them.
    pub(super) fn keep_given(&mut self) {
        if self.stand_ins.unsaved() {
            self.run_chore(Chore::SaveGiven);
        } else {
            self.chores.give_up(Chore::SaveGiven);
        }
    }

    /// Begins to lead.
    pub(super) fn lead(&mut self) {
        self.standing.lead();
        self.warmth.end(&mut self.jobs);
    }

    /// Begins the shutdown: running jobs get the grace period.
    pub(super) fn stop(&mut self) {
        if self.standing.is_stopping() {
            return;
        }
        self.standing.stop(&self.cx);
        self.reviews.close(&mut self.cx);
        let running = self.jobs.len();
        self.cx.tell(Notice::ShuttingDown { running });
    }

    /// Begins the shutdown with no grace period, because another replica may lead soon.
    pub(super) fn stop_at_once(&mut self) {
        self.stop();
        self.standing.shorten(&self.cx);
    }
}
