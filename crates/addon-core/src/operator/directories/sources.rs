//! The common values files: their contents when a converge last finished, and whether they still exist.
//!
//! A file that existed and is now missing or empty is lost. It does not count as a decision: a module that it switched on
//! stays on, a module that it held values for is not run, and neither is removed unless the ConfigMap switches it off.

use std::collections::{BTreeMap, BTreeSet};

use names::{GLOBAL_KEY, ModuleName};

use crate::failure::{Class, Failure};
use crate::module::outline::{ValuesFile, ValuesFiles};
use crate::operator::modules::Modules;

/// The known outlines of the values files.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Sources {
    /// The outlines as they were read in this life.
    found: ValuesFiles,
    /// The outlines in the state Secret; `None` if it has none.
    kept: Option<ValuesFiles>,
    /// `wanted`: the outlines to write to the state Secret. `keeping`: the outlines that a job is writing there.
    wanted: Option<ValuesFiles>,
    keeping: Option<ValuesFiles>,
    /// The lost files, each with the modules that depend on it.
    lost: BTreeMap<String, Vec<ModuleName>>,
    /// The keys of the sections in lost files, by file. They are needed for a module that comes from a registry after
    /// the loss was found.
    said: BTreeMap<String, BTreeSet<String>>,
    /// Modules that had values in a values file that is lost.
    without_values: Vec<ModuleName>,
}

impl Sources {
    pub(super) fn found(&mut self, files: ValuesFiles) {
        self.found = files;
    }

    /// The lost file that would decide about this module.
    pub(in crate::operator) fn lost_for(&self, module: &ModuleName) -> Option<&str> {
        let mut lost = self.lost.iter();
        let known = lost.find(|(_, modules)| modules.contains(module));
        let key = module.values_key();
        let is_later = |keys: &BTreeSet<String>| keys.contains(&key) || keys.contains(GLOBAL_KEY);
        let later = || self.said.iter().find(|(_, keys)| is_later(keys));
        let file = known.map(|(file, _)| file).or_else(|| Some(later()?.0));
        file.map(String::as_str)
    }

    /// Whether the module's only fault is that a lost file held values of it.
    pub(in crate::operator) fn lacks_values(&self, module: &ModuleName) -> bool {
        self.without_values.contains(module)
    }

    /// A file that is missing or empty while the state Secret has no outlines, so that it is unknown whether the file
    /// ever had contents.
    pub(in crate::operator) fn unheard(&self) -> Option<&str> {
        let mut absent = self.found.iter().filter(|(_, said)| said.is_none());
        let (file, _) = absent.find(|_| self.kept.is_none())?;
        Some(file)
    }

    /// Whether the state Secret may lack the outlines that it should hold.
    pub(in crate::operator) fn unsaved(&self) -> bool {
        // After a save without an answer it is unknown whether the Secret was written.
        self.wanted.is_some() && (self.wanted != self.kept || self.keeping.is_some())
    }

    pub(in crate::operator) fn begin_save(&mut self) -> ValuesFiles {
        self.keeping.clone_from(&self.wanted);
        self.keeping.clone().unwrap_or_default()
    }

    pub(in crate::operator) fn saved(&mut self) {
        self.kept = self.keeping.take();
    }

    /// Notes that the API server refused the save.
    pub(in crate::operator) fn not_saved(&mut self) {
        self.keeping = None;
    }

    /// The files that the operator waits for, as texts for people.
    pub(in crate::operator) fn waiting(&self) -> impl Iterator<Item = String> {
        let files = self.lost.keys();
        files.map(|file| format!("{file}, which is missing or empty, to be there again"))
    }

    /// Notes the loss of a file: keeps the flags of the modules that no other file decides about, and breaks the modules
    /// that had values in it.
    fn lose(&mut self, file: &str, said: &ValuesFile, modules: &mut Modules) {
        // If the directory of the file is not configured any more, the file was moved elsewhere. That is no loss.
        let is_left = !self.found.contains_key(file);
        let present: Vec<ValuesFile> = self.found.values().flatten().cloned().collect();
        let is_lost = |key: &str| {
            let stands = |other: &ValuesFile| other.sections.contains(key);
            said.sections.contains(key) && !(is_left && present.iter().any(stands))
        };
        if !is_left {
            let flags = said.flags.keys().map(ModuleName::values_key);
            let keys = said.sections.iter().cloned().chain(flags).collect();
            self.said.insert(file.to_owned(), keys);
        }
        let lost = self.lost.entry(file.to_owned()).or_default();
        for unit in modules.iter_mut() {
            let name = unit.name().clone();
            let flag = said.flags.get(&name);
            let flag = flag.filter(|_| !is_left || unit.found().enabled.is_none());
            if let Some(flag) = flag {
                unit.keep_flag(*flag);
            }
            let lacks_values = is_lost(&name.values_key()) || is_lost(GLOBAL_KEY);
            if lacks_values && unit.found().broken.is_none() {
                unit.breaks(without(file, &name));
                self.without_values.push(name.clone());
            }
            if flag.is_some() || lacks_values {
                lost.push(name);
            }
        }
    }
}

/// The reason for which a module is not run without a file.
fn without(file: &str, module: &ModuleName) -> Failure {
    let report = format!("{file} is missing or empty, and it held values of module '{module}'");
    Failure::new(Class::Invalid, report)
        .hint("put the file back and start the operator again; if it is to say nothing, let it hold {}")
}

impl Sources {
    /// Compares the files with their outlines in the state Secret. Returns the lost files, each with the modules that
    /// depend on it.
    #[must_use]
    pub(in crate::operator) fn restore(
        &mut self,
        modules: &mut Modules,
        kept: Option<ValuesFiles>,
    ) -> BTreeMap<String, Vec<ModuleName>> {
        for (file, said) in kept.iter().flatten() {
            let is_there = matches!(self.found.get(file), Some(Some(_)));
            if let Some(said) = said.as_ref().filter(|_| !is_there) {
                self.lose(file, said, modules);
            }
        }
        self.kept = kept;
        self.lost.retain(|_, modules| !modules.is_empty());
        self.lost.clone()
    }

    /// Notes that a converge has finished, so that the current outlines are to be saved.
    pub(in crate::operator) fn remember(&mut self) {
        let mut wanted = self.found.clone();
        for file in self.lost.keys() {
            let said = self.kept.as_ref().and_then(|kept| kept.get(file));
            wanted.insert(file.clone(), said.cloned().flatten());
        }
        self.wanted = (!wanted.is_empty()).then_some(wanted);
    }
}
