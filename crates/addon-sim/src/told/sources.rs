//! The modules that come from registries, as a life was told of them: which are named, which have files, and which were taken
//! out.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::module::Origin;
use addon_core::operator::event::SavedState;

use super::Told;
use crate::setup::{ModuleSpec, Setup};
use crate::sources::{self, Named, ORDER, SOURCES};

/// The modules that come from registries.
#[derive(Debug, Clone, Default)]
pub(super) struct Supply {
    /// The modules that the applied key names.
    named: Named,
    /// Modules whose files in use came from a registry.
    files: BTreeSet<String>,
    /// Modules whose last files came from a registry, allowed or not.
    fetched: BTreeSet<String>,
    /// Modules that exist only because the key names them, and never had files.
    empty: BTreeSet<String>,
    /// Modules with a directory whose source is gone, and whose directory was not read since.
    returning: BTreeSet<String>,
    /// Modules without a directory whose source is gone.
    withdrawn: BTreeSet<String>,
    /// Modules that had no files in this life when people took out their sources. That confirms their removal.
    ended: BTreeSet<String>,
    /// The modules that the key named in the life before.
    before: Named,
    /// Whether no work had begun before this step, so that the life before can be compared.
    compares: bool,
    /// The directories, as they were read last.
    directories: BTreeMap<String, ModuleSpec>,
    /// Whether the first reading of the directories found a module.
    found_any: bool,
}

impl Supply {
    pub(super) fn state(&mut self, state: &SavedState) {
        let text = state.last_good.as_ref().and_then(|texts| texts.get(SOURCES));
        self.before = text.and_then(|text| sources::read(text)).unwrap_or_default();
    }

    pub(super) fn may_confirm(&mut self, compares: bool) {
        self.compares = compares;
    }

    pub(super) fn directories_read(&mut self, modules: &BTreeMap<String, ModuleSpec>) {
        self.directories.clone_from(modules);
        self.found_any = !modules.is_empty();
    }

    pub(super) fn took_up(&mut self, spec: &ModuleSpec, origin: Origin) {
        self.empty.remove(&spec.name);
        self.returning.remove(&spec.name);
        self.withdrawn.remove(&spec.name);
        self.ended.remove(&spec.name);
        match origin {
            Origin::Directory => {
                self.files.remove(&spec.name);
                self.fetched.remove(&spec.name);
                self.directories.insert(spec.name.clone(), spec.clone());
            }
            Origin::Source { .. } => {
                self.files.insert(spec.name.clone());
                self.fetched.insert(spec.name.clone());
            }
        }
    }
}

impl Told {
    /// Takes the sources of the applied key.
    pub(super) fn take_sources(&mut self) {
        let text = self.config.get(SOURCES);
        let now = text.and_then(|text| sources::read(text)).unwrap_or_default();
        let Some((modules, _)) = &mut self.modules else { return };
        let supply = &mut self.supply;
        if supply.compares {
            let gone = supply.before.keys().filter(|name| !now.contains_key(*name));
            supply
                .ended
                .extend(gone.filter(|name| !modules.contains_key(*name)).cloned());
        }
        let before = std::mem::replace(&mut supply.named, now.clone());
        for (name, order) in now.iter().filter(|(name, _)| !before.contains_key(*name)) {
            supply.withdrawn.remove(name);
            supply.returning.remove(name);
            supply.ended.remove(name);
            if !modules.contains_key(name) {
                supply.empty.insert(name.clone());
            }
            let spec = modules.entry(name.clone()).or_insert_with(|| ModuleSpec {
                name: name.clone(),
                order: order.unwrap_or(ORDER),
                ..ModuleSpec::default()
            });
            spec.broken |= !supply.files.contains(name);
        }
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            supply.files.remove(name);
            if supply.fetched.contains(name) {
                if supply.directories.contains_key(name) {
                    supply.returning.insert(name.clone());
                    modules.entry(name.clone()).and_modify(|spec| spec.broken = true);
                } else {
                    // The files that were in use can be used, even if the source was named again without new files.
                    supply.withdrawn.insert(name.clone());
                    modules.entry(name.clone()).and_modify(|spec| spec.broken = false);
                }
            } else if supply.empty.remove(name) {
                modules.remove(name);
                supply.ended.insert(name.clone());
            } else if let Some(spec) = supply.directories.get(name) {
                modules.insert(name.clone(), spec.clone());
            }
        }
    }

    /// The modules that the applied key names, each with its order number.
    pub fn named(&self) -> &Named {
        &self.supply.named
    }

    /// Whether a source names the module.
    pub fn names(&self, module: &str) -> bool {
        self.supply.named.contains_key(module)
    }

    /// Whether the key is broken and was never good, so that any module may have a source.
    pub fn are_sources_unknown(&self) -> bool {
        self.broken.contains(SOURCES) && !self.config.contains_key(SOURCES)
    }

    /// Whether the files in use came from a registry.
    pub fn has_files_of_source(&self, module: &str) -> bool {
        self.supply.files.contains(module)
    }

    /// Whether the module has no files that it may use.
    pub fn lacks_files(&self, module: &str) -> bool {
        let waits = self.names(module) && !self.has_files_of_source(module);
        waits || self.supply.returning.contains(module)
    }

    /// Whether people took the source of this module out, so that it is removed.
    pub fn is_withdrawn(&self, module: &str) -> bool {
        self.supply.withdrawn.contains(module)
    }

    /// Modules whose removal is confirmed, because people took out their sources.
    pub fn ended(&self) -> &BTreeSet<String> {
        &self.supply.ended
    }

    /// Whether the first reading of the directories found a module. Empty directories are not complete.
    pub fn found_any_directory(&self) -> bool {
        self.supply.found_any
    }

    /// The directories, as they were read last.
    pub fn directories(&self) -> &BTreeMap<String, ModuleSpec> {
        &self.supply.directories
    }

    /// A world with the files that its modules are to have in the end: directories, or the files that came from a registry.
    pub fn with_sources(&self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        setup.modules.retain(|module| !self.names(&module.name));
        for name in self.supply.named.keys() {
            if let Some(spec) = self.knows(name) {
                let mut spec = spec.clone();
                spec.enabled = spec.enabled.or(Some(true));
                setup.modules.push(spec);
            }
        }
        // The script of a directory is not asked for files that have yet to come.
        for spec in setup.modules.iter_mut().filter(|spec| self.lacks_files(&spec.name)) {
            spec.script = None;
        }
        setup
    }
}
