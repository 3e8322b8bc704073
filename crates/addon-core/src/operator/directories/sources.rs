//! The common values files: what they said when a converge last finished, and whether they are still there.
//!
//! One that was there and is missing, or holds nothing, has said nothing: what it switched on stays on, what it held values
//! for is not run without them, and nothing of either is removed unless the ConfigMap says so.

use std::collections::BTreeMap;

use crate::failure::{Class, Failure};
use crate::module::outline::{ValuesFile, ValuesFiles};
use crate::name::{GLOBAL_KEY, ModuleName};
use crate::operator::modules::Modules;

/// The knowledge of the values files.
#[derive(Debug, Default)]
pub(in crate::operator) struct Sources {
    /// As they were read in this life.
    found: ValuesFiles,
    /// Their outlines in the state Secret; `None` if there are none.
    kept: Option<ValuesFiles>,
    /// The outlines that it is to hold, and those on their way there.
    wanted: Option<ValuesFiles>,
    keeping: Option<ValuesFiles>,
    /// The files that were lost, with the modules that depend on them.
    lost: BTreeMap<String, Vec<ModuleName>>,
    /// Modules of which a lost file held values.
    without_values: Vec<ModuleName>,
}

impl Sources {
    pub(super) fn found(&mut self, files: ValuesFiles) {
        self.found = files;
    }

    /// The file without which it is not known what is to become of the module.
    pub(in crate::operator) fn lost_for(&self, module: &ModuleName) -> Option<&str> {
        let mut lost = self.lost.iter();
        lost.find(|(_, modules)| modules.contains(module))
            .map(|(file, _)| file.as_str())
    }

    /// A lost file held values of the module, and nothing else is wrong with it.
    pub(in crate::operator) fn lacks_values(&self, module: &ModuleName) -> bool {
        self.without_values.contains(module)
    }

    /// A file that is missing or empty, while nobody knows whether it ever was another way.
    pub(in crate::operator) fn unheard(&self) -> Option<&str> {
        let mut absent = self.found.iter().filter(|(_, said)| said.is_none());
        let (file, _) = absent.find(|_| self.kept.is_none())?;
        Some(file)
    }

    /// Something of what is to be kept does not stand in the state Secret.
    pub(in crate::operator) fn unsaved(&self) -> bool {
        // Of a save without an answer nobody knows whether it was carried out.
        self.wanted.is_some() && (self.wanted != self.kept || self.keeping.is_some())
    }

    pub(in crate::operator) fn begin_save(&mut self) -> ValuesFiles {
        self.keeping.clone_from(&self.wanted);
        self.keeping.clone().unwrap_or_default()
    }

    pub(in crate::operator) fn saved(&mut self) {
        self.kept = self.keeping.take();
    }

    /// The API server said no to the save.
    pub(in crate::operator) fn not_saved(&mut self) {
        self.keeping = None;
    }

    /// The reason of the wait, in words.
    pub(in crate::operator) fn waiting(&self) -> impl Iterator<Item = String> {
        let files = self.lost.keys();
        files.map(|file| format!("{file}, which is missing or empty, to be there again"))
    }

    /// It is not there any more; whatever else is said by files that are there counts.
    fn lose(&mut self, file: &str, said: &ValuesFile, modules: &mut Modules) {
        // A directory that is not looked at any more has been left behind by whoever moved its file elsewhere.
        let is_left = !self.found.contains_key(file);
        let present: Vec<ValuesFile> = self.found.values().flatten().cloned().collect();
        let is_lost = |key: &str| {
            let stands = |other: &ValuesFile| other.sections.contains(key);
            said.sections.contains(key) && !(is_left && present.iter().any(stands))
        };
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

/// Why a module is not run without a file.
fn without(file: &str, module: &ModuleName) -> Failure {
    let report = format!("{file} is missing or empty, and it held values of module '{module}'");
    Failure::new(Class::Invalid, report)
        .hint("put the file back and start the operator again; if it is to say nothing, let it hold {}")
}

impl Sources {
    /// Compares the files with what they said when a converge last finished. Returns those that are lost, each with the modules
    /// that depend on it.
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

    /// A converge has finished, so what the files say is in force from now on.
    pub(in crate::operator) fn remember(&mut self) {
        let mut wanted = self.found.clone();
        for file in self.lost.keys() {
            let said = self.kept.as_ref().and_then(|kept| kept.get(file));
            wanted.insert(file.clone(), said.cloned().flatten());
        }
        self.wanted = (!wanted.is_empty()).then_some(wanted);
    }
}
