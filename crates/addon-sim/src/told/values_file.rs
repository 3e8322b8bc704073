//! The contents of the common values file, now and before the file was lost.

use std::collections::BTreeSet;

use addon_core::operator::event::SavedState;

use super::Told;
use crate::setup::ModuleSpec;
use crate::world::COMMON_FILE;

/// The common values file, as a life knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct CommonValues {
    /// Whether the file is missing or empty.
    gone: bool,
    /// Whether it is unknown if the file ever had contents.
    unheard: bool,
    /// Modules whose values the file had when a converge last finished. They are not run without these values.
    without: BTreeSet<String>,
}

impl Told {
    /// Notes the first reading of the directories.
    pub fn inventory(&mut self, modules: Vec<ModuleSpec>, seen: &BTreeSet<String>, complete: bool, gone: bool) {
        if self.modules.is_some() {
            return;
        }
        let modules = modules.into_iter().filter(|module| seen.contains(&module.name));
        let modules = modules.map(|module| (module.name.clone(), module)).collect();
        self.supply.directories_read(&modules);
        self.modules = Some((modules, complete));
        (self.common.gone, self.common.unheard) = (gone, gone);
    }

    /// Applies the last known contents of the common values file if it is gone.
    pub(super) fn compare_common_file(&mut self, state: &SavedState) {
        let Some((modules, complete)) = self.modules.as_mut().filter(|_| self.common.gone) else {
            return;
        };
        let kept = state.values_files.as_ref();
        self.common.unheard = kept.is_none();
        let Some(said) = kept.and_then(|kept| kept.get(COMMON_FILE)?.as_ref()) else {
            return;
        };
        for spec in modules.values_mut() {
            let flag = said.flags.iter().find(|(name, _)| name.as_str() == spec.name);
            if let Some((_, flag)) = flag {
                (spec.enabled, *complete) = (Some(*flag), false);
            }
            if said.sections.contains(&spec.key()) {
                *complete = false;
                self.common.without.insert(spec.name.clone());
            }
        }
    }

    /// Whether the common values file was missing or empty when this life began.
    pub fn is_common_file_gone(&self) -> bool {
        self.common.gone
    }

    /// Modules that had values in the lost file.
    pub fn without_values(&self) -> &BTreeSet<String> {
        &self.common.without
    }

    /// Whether the contents of the common values file are known. If it may be lost, it decides nothing.
    pub(super) fn common_file_spoke(&self) -> bool {
        !self.common.unheard
    }

    /// Notes that the outlines of the values files were saved.
    pub fn values_files_saved(&mut self) {
        self.common.unheard = false;
    }
}
