//! The registry with modules: its versions, and the failures of those that are bad.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::{HookRun, Job};

use super::{World, document};
use crate::setup::{ModuleSpec, Setup};
use crate::sources::{FilesSpec, Quality, Shelf, version_in};

/// The stages of hooks whose failure ends a run of their module.
const OF_RUN: [&str; 3] = ["onStartup", "beforeHelm", "afterHelm"];

pub(super) fn shelves(setup: &Setup) -> BTreeMap<String, Shelf> {
    let shelf = |spec: &crate::sources::SourceSpec| (spec.module.name.clone(), Shelf::new(spec));
    setup.sources.iter().map(shelf).collect()
}

impl World {
    /// The files of a module: its directory, or what all versions in the registry share.
    pub fn files(&self, name: &str) -> Option<&ModuleSpec> {
        let shelf = || self.shelves.get(name).map(|shelf| &shelf.module);
        self.module(name).or_else(shelf)
    }

    /// The same world with other directories.
    #[must_use]
    pub fn with_setup(&self, setup: Setup) -> Self {
        Self { setup, ..self.clone() }
    }

    /// The files of all modules, with and without a directory.
    pub fn all_files(&self) -> impl Iterator<Item = &ModuleSpec> {
        let shelves = self.shelves.values().map(|shelf| &shelf.module);
        let apart = shelves.filter(|module| self.module(&module.name).is_none());
        self.setup.modules.iter().chain(apart)
    }

    pub(super) fn publish(&mut self, module: &str, files: &FilesSpec) {
        if let Some(shelf) = self.shelves.get_mut(module) {
            shelf.versions.push(files.clone());
        }
    }

    pub(super) fn lose_copies(&mut self, module: &str) {
        if let Some(shelf) = self.shelves.get_mut(module) {
            shelf.copies.clear();
        }
    }

    /// The failure of a job that works with files of a bad version.
    pub(super) fn fault_of_files(&self, job: &Job) -> Option<Failure> {
        let (module, values, fails) = match job {
            Job::SyncRelease { module, values, .. } => (module, values, Quality::FailsHelm),
            Job::RunHook(
                HookRun {
                    hook, labels, values, ..
                },
                _,
            ) if OF_RUN.contains(&labels.cause.key()) => (hook.owner.module()?, values, Quality::FailsHooks),
            _ => return None,
        };
        let shelf = self.shelves.get(module.as_str())?;
        let version = version_in(module.as_str(), &document(values))?;
        (shelf.quality(version) == fails)
            .then(|| Failure::new(Class::HookFailed, format!("version {version} of {module} cannot work")))
    }
}
