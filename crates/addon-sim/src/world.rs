//! The world outside of the operator: directories, the `ConfigMap`, releases, the state Secret, and failures.
//!
//! It knows only its own state. Must never ask the operator anything.

mod cluster;
mod edits;
mod hooks;
pub mod jobs;
mod releases;
mod sections;
mod sources;
mod values_file;
mod webhooks;

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::module::health::{HealthSettings, OnFailure};
use addon_core::module::{Inventory, Module};
use addon_core::operator::event::SavedState;
use names::ModuleName;
use serde_json::{Value, json};
use values_schema::schema::Schemas;

pub use cluster::ConfigMap;
pub use edits::{CONFIG_MAP, EDITS, UNSOUND, Wanted, wanted_edit};
pub use hooks::Misdeed;
pub use jobs::{document, job_name, owner_name};
pub use releases::{Ledger, Release};
pub use values_file::COMMON_FILE;
pub use webhooks::{Question, Webhooks, asked_of, review_of};

use crate::action::{Action, CommonFile, Misreading};
use crate::dice::Dice;
use crate::flat::Flat;
use crate::monitors::Objects;
use crate::schema::SchemaSpec;
use crate::setup::{HookSpec, ModuleSpec, Setup};
use crate::sources::Shelf;
use crate::trial::Trial;

/// The whole world.
#[derive(Debug, Clone)]
pub struct World {
    seed: u64,
    /// The time in microseconds since the beginning of the world.
    pub clock: u64,
    /// The directories.
    pub setup: Setup,
    /// The part of the common values file that exists.
    pub common: CommonFile,
    /// Modules whose directories vanished.
    removed: BTreeMap<String, ModuleSpec>,
    /// The `ConfigMap`.
    pub config: ConfigMap,
    /// Releases by name.
    pub releases: BTreeMap<String, Release>,
    /// The facts about releases that checks need.
    pub ledger: Ledger,
    /// Objects that hooks may watch, by kind.
    pub objects: BTreeMap<String, Objects>,
    /// Modules in the registry, by name.
    pub shelves: BTreeMap<String, Shelf>,
    /// Whether the registry answers.
    pub registry_answers: bool,
    /// The published webhooks.
    pub webhooks: Webhooks,
    /// The version of the object that changed last.
    version: u64,
    /// The trial of the version that runs.
    pub trial: Trial,
    /// The state Secret, if it exists.
    pub secret: Option<SavedState>,
    /// The error in the reading of the directories at the next start.
    pub misread: Option<Misreading>,
    /// Whether the directories have changed since the operator read them, even if they were changed back.
    pub disturbed: bool,
    /// By name of work, the number of its next runs that fail.
    faults: BTreeMap<String, u32>,
    /// By name of an event, how often the event happened.
    counts: BTreeMap<String, u64>,
    /// The number of runs of each hook, which decides about its first failures.
    runs: BTreeMap<String, u32>,
    /// Whether nothing fails any more.
    healed: bool,
}

impl World {
    /// The world at the beginning of a run.
    pub fn new(seed: u64, setup: &Setup) -> Self {
        let releases = setup
            .releases
            .iter()
            .map(|spec| (spec.name.clone(), Release::found(spec)));
        Self {
            seed,
            clock: 0,
            config: ConfigMap::new(setup.config.clone()),
            releases: releases.collect(),
            ledger: Ledger::default(),
            setup: setup.clone(),
            common: CommonFile::Whole,
            removed: BTreeMap::new(),
            objects: BTreeMap::new(),
            shelves: sources::shelves(setup),
            registry_answers: true,
            webhooks: Webhooks::default(),
            version: 0,
            trial: Trial::new(setup.trial.as_ref()),
            secret: None,
            misread: None,
            disturbed: false,
            faults: setup.faults.clone(),
            counts: BTreeMap::new(),
            runs: BTreeMap::new(),
            healed: false,
        }
    }

    /// The random numbers for the next event of this name.
    pub fn dice(&mut self, name: &str) -> Dice {
        let count = self.counts.entry(name.to_owned()).or_default();
        *count += 1;
        Dice::named(self.seed, name, *count)
    }

    /// A module on disk.
    pub fn module(&self, name: &str) -> Option<&ModuleSpec> {
        self.setup.modules.iter().find(|module| module.name == name)
    }

    /// The hooks of an owner, `global` or a module.
    pub fn hooks(&self, owner: &str) -> &[HookSpec] {
        if owner == "global" {
            return &self.setup.global_hooks;
        }
        self.files(owner)
            .map(|module| module.hooks.as_slice())
            .unwrap_or_default()
    }

    /// Applies an action to disk, cluster and faults. Other actions are played by the runner.
    pub fn suffer(&mut self, action: &Action) {
        let before = self.config.data.clone().unwrap_or_default();
        self.undergo(action);
        self.note_edits(&before);
    }

    fn undergo(&mut self, action: &Action) {
        match action {
            Action::Edit { key, text } => self.config.edit(key, text.clone()),
            Action::DeleteConfigMap => self.config.delete(),
            Action::ApplyConfigMap { data } => self.config.apply(data.clone()),
            Action::MakeConfigMap { data } => self.config.make(data),
            Action::ReplaceConfigMap { data } => {
                self.config.delete();
                self.config.apply(data.clone());
            }
            Action::Fault { what, times } => {
                self.faults.insert(what.clone(), *times);
            }
            Action::Remove(name) => {
                self.disturbed = true;
                if let Some(index) = self.setup.modules.iter().position(|module| module.name == *name) {
                    self.removed.insert(name.clone(), self.setup.modules.remove(index));
                }
            }
            Action::Restore(name) => self.setup.modules.extend(self.removed.remove(name)),
            Action::Alter {
                module,
                values,
                enabled,
                broken,
            } => self.alter(module, values, *enabled, *broken),
            Action::CommonFile(left) => {
                self.disturbed = true;
                self.common = *left;
            }
            Action::ConfirmUpgrade(name) => self.confirm_upgrade(name),
            Action::Misread(how) => self.misread = Some(how.clone()),
            Action::Foreign(name) => {
                self.releases.entry(name.clone()).or_insert_with(Release::foreign);
            }
            Action::RemoveForeign(name) => {
                self.releases.retain(|known, release| known != name || release.ours);
            }
            Action::Damage { release, harm } => self.harm(release, *harm),
            Action::Object { kind, name, gone } => {
                let objects = self.objects.entry(kind.clone()).or_default();
                if *gone {
                    objects.remove(name);
                } else {
                    self.version += 1;
                    objects.insert(name.clone(), self.version);
                }
            }
            Action::Publish { module, files } => self.publish(module, files),
            Action::RegistryAnswers(answers) => self.registry_answers = *answers,
            Action::LoseCopies(module) => self.lose_copies(module),
            Action::TouchWebhooks { takes: true } => self.webhooks.take_away(),
            Action::WatchDelay(_)
            | Action::TouchWebhooks { takes: false }
            | Action::Ambush(_)
            | Action::Meddle(_)
            | Action::Coalesce
            | Action::Ask { .. }
            | Action::Want { .. }
            | Action::Redeliver
            | Action::Confirm(_)
            | Action::ConfirmLoss
            | Action::SetClock(_)
            | Action::ReadAgain(_)
            | Action::Reread(_)
            | Action::Kill
            | Action::DeleteState
            | Action::Depose
            | Action::Judge
            | Action::Shutdown => {}
        }
    }

    fn alter(&mut self, module: &str, values: &Flat, enabled: Option<bool>, broken: bool) {
        self.disturbed = true;
        if let Some(spec) = self.setup.modules.iter_mut().find(|spec| spec.name == module) {
            spec.values.clone_from(values);
            spec.enabled = enabled;
            spec.broken = broken;
        }
    }

    /// Ends all failures.
    pub fn heal(&mut self) {
        self.healed = true;
        self.faults.clear();
        self.misread = None;
        // After an ignored failure the next run comes only with the schedule, which takes too long, or with a change of
        // an object.
        let hooks = |owner: &str, hooks: &[HookSpec]| -> Vec<String> {
            let passing = hooks.iter().filter(|hook| {
                let watches = hook.watches.iter().any(|watch| watch.allow_failure);
                watches || hook.schedules.iter().any(|schedule| schedule.allow_failure)
            });
            passing.map(|hook| format!("hook/{owner}/{}", hook.name)).collect()
        };
        let mut over = hooks("global", &self.setup.global_hooks);
        over.extend(self.all_files().flat_map(|module| hooks(&module.name, &module.hooks)));
        self.runs.extend(over.into_iter().map(|name| (name, u32::MAX / 2)));
    }

    /// A reading of the directories.
    pub fn inventory(&self, misreading: Option<&Misreading>) -> Inventory {
        let seen = |module: &&ModuleSpec| match misreading {
            None => true,
            Some(Misreading::Empty) => false,
            Some(Misreading::Incomplete(lost)) => !lost.contains(&module.name),
        };
        let on_disk = self.modules_on_disk();
        let modules = on_disk.iter().filter(seen).map(found).collect();
        Inventory {
            global_values: flat_value(&self.setup.global),
            global_schemas: Schemas::default(),
            has_global_hooks: !self.setup.global_hooks.is_empty(),
            modules,
            values_files: self.values_files(),
            complete: !matches!(misreading, Some(Misreading::Incomplete(_))),
        }
    }

    /// Whether work of this name fails this time.
    fn fails(&mut self, what: &str) -> bool {
        match self.faults.get_mut(what) {
            Some(0) | None => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn fault(&mut self, what: &str, class: Class) -> Result<(), Failure> {
        if self.fails(what) {
            Err(Failure::new(class, format!("{what} was told to fail")))
        } else {
            Ok(())
        }
    }
}

/// A flat document as values.
pub fn flat_value(flat: &Flat) -> Value {
    json!(flat)
}

/// The name of a module in the simulator.
pub fn module_name(name: &str) -> ModuleName {
    ModuleName::parse(name).expect("names of simulated modules are sound")
}

/// A module as the operator reads it from disk.
pub fn found(spec: &ModuleSpec) -> Module {
    Module {
        name: module_name(&spec.name),
        order: spec.order,
        values: flat_value(&spec.values),
        schemas: spec.schema.as_ref().map(SchemaSpec::load).unwrap_or_default(),
        enabled: spec.enabled,
        has_chart: spec.chart,
        has_crds: spec.crds,
        has_conversions: spec.conversions,
        has_enabled_script: spec.script.is_some(),
        has_hooks: !spec.hooks.is_empty(),
        has_account: false,
        depends_on: spec.needs.iter().map(|need| module_name(need)).collect(),
        health: HealthSettings {
            on_failure: if spec.returns {
                OnFailure::Return
            } else {
                OnFailure::Keep
            },
            ..HealthSettings::default()
        },
        broken: spec
            .broken
            .then(|| Failure::new(Class::Invalid, "values.yaml is not YAML")),
    }
}
