//! From an empty value to the first converge: what must be known before anything may run, and the chores that find
//! it out. A chore is retried until it succeeds, and says by name what it waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Operator;
use super::config::reading::Readings;
use super::effect::{Job, Notice};
use super::event::{ConfigRead, SavedState};
use super::jobs::Chore;
use super::modules::Unit;
use super::policy::Mode;
use super::query::Waiting;
use super::standing::Standing;
use super::task::{Lane, Reason, Task};
use super::ticket::AskFor;
use crate::failure::{Class, Failure};
use crate::hook::config::{HookConfig, Stage};
use crate::module::Inventory;
use crate::name::{HookId, HookName, Owner};
use crate::time::{Backoff, Tick};

/// What start-up has found out so far.
#[derive(Debug, Default)]
pub(super) struct Startup {
    /// The directories were read.
    pub(super) known: bool,
    /// Every directory was read to its end.
    pub(super) inventory_complete: bool,
    has_global_hooks: bool,
    chores: BTreeMap<Chore, Progress>,
    state: Option<SavedState>,
    /// What was in force in the life before counts again, and so do readings of the ConfigMap, each in turn: an early one
    /// may hold the last good text of a key.
    pub(super) restored: bool,
    /// The start-up tasks are in the queue.
    pub(super) begun: bool,
}

#[derive(Debug, Clone)]
enum Progress {
    Running { failures: u32, error: Option<String> },
    Backoff { until: Tick, failures: u32, error: String },
    Done,
}

impl Startup {
    /// It has not failed in this life.
    pub(super) fn is_first_try(&self, chore: Chore) -> bool {
        match self.chores.get(&chore) {
            None => true,
            Some(Progress::Running { failures, .. }) => *failures == 0,
            Some(Progress::Backoff { .. } | Progress::Done) => false,
        }
    }

    pub(super) fn is_done(&self, chore: Chore) -> bool {
        matches!(self.chores.get(&chore), Some(Progress::Done))
    }

    /// The global hooks have said what they want, if there are any.
    fn knows_global_hooks(&self) -> bool {
        !self.has_global_hooks || self.is_done(Chore::ConfigureGlobalHooks)
    }

    /// The API server answers: what waits for it need not wait for its time.
    fn wake(&mut self, now: Tick) {
        for (chore, progress) in &mut self.chores {
            if let Progress::Backoff { until, .. } = progress
                && chore.asks_api_server()
            {
                *until = now.min(*until);
            }
        }
    }

    /// Nobody needs it any more, so that a delay of it is waited for by nobody.
    pub(super) fn give_up(&mut self, chore: Chore) {
        if matches!(self.chores.get(&chore), Some(Progress::Backoff { .. })) {
            self.chores.remove(&chore);
        }
    }

    pub(super) fn timeout(&self) -> Option<(Tick, Waiting)> {
        self.chores
            .iter()
            .filter_map(|(chore, progress)| match progress {
                Progress::Backoff { until, .. } => Some((*until, Waiting::Step(chore.describe().to_owned()))),
                Progress::Running { .. } | Progress::Done => None,
            })
            .min_by_key(|(until, _)| *until)
    }

    /// What holds us up, by name.
    pub(super) fn waiting(&self, mode: Mode, readings: &Readings) -> Vec<String> {
        let mut waiting = Vec::new();
        if !self.known {
            let directories = match mode {
                Mode::Addons => "the modules directories are being read",
                Mode::Hooks => "the hooks directory is being read",
            };
            waiting.push(directories.to_owned());
        }
        if mode == Mode::Addons && readings.is_empty() && !self.begun {
            waiting.push("the ConfigMap has not been read yet".to_owned());
        }
        for (chore, progress) in self.chores.iter().filter(|(chore, _)| !chore.is_aside()) {
            match progress {
                Progress::Running { .. } => waiting.push(chore.describe().to_owned()),
                Progress::Backoff { error, failures, .. } => {
                    waiting.push(format!("{}: failed {failures} times: {error}", chore.describe()));
                }
                Progress::Done => {}
            }
        }
        waiting
    }
}

impl Operator {
    /// The directories are read once in a life; a second reading is not taken over.
    pub(super) fn take_inventory(&mut self, inventory: Inventory) {
        if self.startup.known {
            return;
        }
        self.startup.known = true;
        self.rereading.begin(inventory.outline());
        self.sources.found(inventory.values_files);
        // Empty directories say nothing about modules that are gone: rather a mount is missing.
        self.startup.inventory_complete = inventory.complete && !inventory.modules.is_empty();
        self.startup.has_global_hooks = inventory.has_global_hooks;
        let schemas = self.values.set_schemas(&Owner::Global, inventory.global_schemas);
        let files = schemas.and_then(|_| self.values.set_static(&Owner::Global, inventory.global_values));
        if let Err(rejected) = files {
            self.startup.inventory_complete = false;
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
            self.modules.insert(module.name.clone(), Unit::new(module));
        }
    }

    /// Keeps readings of the ConfigMap until everything else is known; later ones act at once.
    pub(super) fn config_read(&mut self, read: ConfigRead) {
        if self.startup.restored {
            self.config_changed(read);
            self.advance_commits();
            return;
        }
        if self.config.readings.is_empty() {
            self.startup.wake(self.cx.now.tick);
        }
        if self.standing == Standing::Standby {
            self.warmth.hear(&read);
        }
        self.config.readings.keep(read);
    }

    /// What may be found out while somebody else leads, so that less is left to do when we do.
    pub(super) fn advance_standby(&mut self) {
        if self.startup.known && self.startup.has_global_hooks {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        if self.startup.knows_global_hooks() && self.warmth.has_time() {
            self.warm_up();
        }
    }

    pub(super) fn advance_startup(&mut self) {
        if !self.startup.known {
            return;
        }
        if self.cx.policy.mode == Mode::Hooks {
            self.advance_startup_alone();
            return;
        }
        self.run_chore(Chore::LoadState);
        self.run_chore(Chore::ListReleases);
        if self.startup.has_global_hooks {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        self.settle_sections();
        if self.startup.begun {
            self.look_for_losses();
            self.keep_state();
            return;
        }
        if !self.startup.restored {
            if !self.startup.knows_global_hooks() || self.config.readings.is_empty() || self.awaits_sections() {
                return;
            }
            let Some(SavedState {
                last_good,
                made,
                values_files,
                trial_sections: _,
            }) = self.startup.state.take()
            else {
                return;
            };
            self.startup.restored = true;
            self.restore_sources(values_files);
            self.config.restore(last_good, made);
            self.take_readings();
        }
        if !self.config.readings.is_empty() {
            return;
        }
        self.startup.begun = true;
        self.begin();
        self.look_for_losses();
        self.keep_state();
    }

    fn advance_startup_alone(&mut self) {
        if self.startup.has_global_hooks {
            self.run_chore(Chore::ConfigureGlobalHooks);
        }
        if self.startup.knows_global_hooks() && !self.startup.begun {
            self.begin_alone();
        }
    }

    /// Writes the state if it differs from what is kept, and forgets a failed attempt that has become pointless.
    fn keep_state(&mut self) {
        if self.config.unsaved() {
            self.run_chore(Chore::SaveState);
        } else {
            self.startup.give_up(Chore::SaveState);
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

    /// Starts a chore that has not been done, and one whose delay is over.
    pub(super) fn run_chore(&mut self, chore: Chore) {
        let (failures, error) = match self.startup.chores.get(&chore) {
            None => (0, None),
            Some(Progress::Backoff { until, failures, error }) if *until <= self.cx.now.tick => {
                (*failures, Some(error.clone()))
            }
            Some(Progress::Done) if matches!(chore, Chore::SaveState | Chore::SaveValuesFiles) => (0, None),
            Some(Progress::Running { .. } | Progress::Backoff { .. } | Progress::Done) => return,
        };
        match chore {
            Chore::LoadState => self.jobs.begin(&mut self.cx, (), Job::LoadState),
            Chore::SaveState => {
                let (last_good, made) = self.config.begin_save();
                self.jobs.begin(&mut self.cx, (), |ticket| Job::SaveState {
                    last_good,
                    made,
                    ticket,
                })
            }
            Chore::SaveValuesFiles => {
                let files = self.sources.begin_save();
                self.jobs
                    .begin(&mut self.cx, (), |ticket| Job::SaveValuesFiles(files, ticket))
            }
            Chore::ReadDirectories => self.jobs.begin(&mut self.cx, (), Job::ReadDirectories),
            Chore::ListReleases => self.jobs.begin(&mut self.cx, (), Job::ListReleases),
            Chore::WatchReleases => {
                let expected = self.released();
                self.jobs
                    .begin(&mut self.cx, (), |ticket| Job::WatchReleases { expected, ticket })
            }
            Chore::SettleSections => match self.probation.settles_by() {
                Some(ruling) => self
                    .jobs
                    .begin(&mut self.cx, (), |ticket| Job::SettleSections(ruling, ticket)),
                None => return,
            },
            Chore::ConfigureGlobalHooks => self.jobs.begin(&mut self.cx, AskFor::Start, |ticket| {
                Job::ConfigureHooks(Owner::Global, ticket)
            }),
        };
        self.startup.chores.insert(chore, Progress::Running { failures, error });
    }

    /// The job of a chore ended; `take` takes in what it found.
    pub(super) fn chore_finished<T>(
        &mut self,
        chore: Chore,
        result: Result<T, Failure>,
        take: impl FnOnce(&mut Self, T),
    ) {
        match result {
            Ok(found) => {
                take(self, found);
                self.startup.chores.insert(chore, Progress::Done);
                if chore == Chore::ReadDirectories {
                    self.directories_confirmed();
                }
            }
            Err(failure) if self.cx.policy.mode == Mode::Hooks => self.give_up(failure),
            Err(failure) => self.chore_failed(chore, failure),
        }
    }

    pub(super) fn state_loaded(&mut self, state: SavedState) {
        self.probation.take_noted(state.trial_sections.keys());
        self.startup.state = Some(state);
    }

    pub(super) fn state_saved(&mut self, left_out: Vec<String>) {
        self.config.saved();
        self.sections_left_out(left_out);
    }

    pub(super) fn global_hooks_configured(&mut self, hooks: Vec<(HookName, HookConfig)>) {
        self.hooks_configured(&Owner::Global, hooks);
        if self.standing == Standing::Standby {
            self.global_hooks_answered();
        }
    }

    fn chore_failed(&mut self, chore: Chore, failure: Failure) {
        match chore {
            Chore::SaveState if failure.class == Class::Refused => self.config.not_saved(),
            Chore::SaveValuesFiles if failure.class == Class::Refused => self.sources.not_saved(),
            _ => {}
        }
        let (failures, last) = match self.startup.chores.remove(&chore) {
            Some(Progress::Running { failures, error }) => (failures, error),
            Some(Progress::Backoff { .. } | Progress::Done) | None => (0, None),
        };
        let retry_in = Backoff::delay(failures, self.cx.draw());
        let until = self.cx.now.tick + retry_in;
        let error = failure.report.clone();
        self.startup.chores.insert(
            chore,
            Progress::Backoff {
                until,
                failures: failures + 1,
                error,
            },
        );
        self.cx.tell(Notice::StepFailed {
            step: chore.describe().to_owned(),
            again: last.as_ref() == Some(&failure.report),
            failure,
            retry_in,
        });
    }

    /// The hooks of an owner answered; their bindings are known from now on.
    pub(super) fn hooks_configured(&mut self, owner: &Owner, hooks: Vec<(HookName, HookConfig)>) {
        self.stop_monitors(owner);
        let id = |name| HookId {
            owner: owner.clone(),
            name,
        };
        let hooks: Vec<_> = hooks.into_iter().map(|(name, config)| (id(name), config)).collect();
        let count = |config: &HookConfig| config.stages.len() + config.schedules.len() + config.kubernetes.len();
        let bindings = hooks.iter().map(|(id, config)| (id.clone(), count(config))).collect();
        self.bindings.replace(owner, hooks);
        self.order_hooks(owner);
        self.schedules.rebuild(&self.cx, &self.bindings);
        self.cx.tell(Notice::HooksConfigured {
            owner: owner.clone(),
            bindings,
        });
    }
}
