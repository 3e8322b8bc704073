//! The way from an empty value to the first converge, and to the end: what must be known before anything may run, and what is in
//! `main` at the start.

use std::time::Duration;

use crate::failure::{Class, Failure};
use crate::hook::config::Stage;
use crate::module::Inventory;
use crate::module::outline::ValuesFiles;
use crate::name::{HookId, Owner};
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Notice;
use crate::operator::event::{ConfigRead, SavedState};
use crate::operator::policy::Mode;
use crate::operator::task::{Lane, Reason, Task};

impl Operator {
    /// The directories are read once in a life; a second reading is not taken over.
    pub(super) fn take_inventory(&mut self, inventory: Inventory) {
        if self.directories.are_known() {
            return;
        }
        let outline = inventory.outline();
        // Empty directories say nothing about modules that are gone: rather a mount is missing.
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
            let schemas = self.values.set_schemas(&owner, std::mem::take(&mut module.schemas));
            if let Err(rejected) = schemas.and_then(|_| self.values.set_static(&owner, module.values.clone())) {
                module.broken.get_or_insert(Failure::of(Class::Invalid, &rejected));
            }
            self.modules.add(module);
        }
    }

    /// Keeps readings of the ConfigMap until everything else is known; later ones act at once.
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

    /// What may be found out while somebody else leads, so that less is left to do when we do.
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
            }) = self.startup.restore()
            else {
                return;
            };
            self.restore_sources(values_files);
            self.config.restore(last_good, made);
            self.take_readings();
        }
        if self.config.has_readings() {
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

    /// Everything is known: the global hooks that run at start, and then the first converge.
    fn begin(&mut self) {
        for hook in self.bindings.global_hooks(Stage::OnStartup) {
            let task = self.stage_task(Stage::OnStartup, hook);
            self.lanes.push(&self.cx, Lane::Global, Task::Hook(task));
        }
        self.enable_global_hooks();
        self.lanes.push(&self.cx, Lane::Global, Task::Converge(Reason::Startup));
    }

    /// Writes the state if it differs from what is kept, and forgets a failed attempt that has become pointless.
    fn keep_state(&mut self) {
        if self.config.unsaved() {
            self.run_chore(Chore::SaveState);
        } else {
            self.chores.give_up(Chore::SaveState);
        }
    }

    /// The hooks said what they bind to: start-up by the order numbers, then hook by hook what each watches and when it
    /// runs.
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

    /// Once all is known that tells of it: was there a configuration that nobody has any more?
    fn look_for_losses(&mut self) {
        if self.startup.has_begun() && self.removal.is_listed() {
            self.config
                .look_for_losses(&mut self.cx, &self.values, self.removal.traces());
        }
    }

    /// Compares the values files with what they said when a converge last finished.
    fn restore_sources(&mut self, kept: Option<ValuesFiles>) {
        let lost = self.directories.sources_mut().restore(&mut self.modules, kept);
        for (file, modules) in lost {
            self.directories.fall_short();
            self.cx.tell(Notice::ValuesFileLost { file, modules });
        }
    }

    /// Writes what the values files say if it is not kept.
    pub(super) fn keep_sources(&mut self) {
        if self.directories.sources().unsaved() {
            self.run_chore(Chore::SaveValuesFiles);
        } else {
            self.chores.give_up(Chore::SaveValuesFiles);
        }
    }

    /// It is our turn from now on.
    pub(super) fn lead(&mut self) {
        self.standing.lead();
        self.warmth.end(&mut self.jobs);
    }

    /// We are to end: what runs has its grace.
    pub(super) fn stop(&mut self) {
        if self.standing.is_stopping() {
            return;
        }
        self.standing.stop(&self.cx);
        self.reviews.close(&mut self.cx);
        let running = self.jobs.len();
        self.cx.tell(Notice::ShuttingDown { running });
    }

    /// Somebody else may lead soon: what runs gets no time.
    pub(super) fn stop_at_once(&mut self) {
        self.stop();
        self.standing.shorten(&self.cx);
    }
}
