//! The common values file: its contents about modules, and the part of it that exists.

use addon_core::module::outline::{ValuesFile, ValuesFiles};

use super::{World, module_name};
use crate::action::CommonFile;
use crate::setup::{ModuleSpec, key_of};

/// The path of the file.
pub const COMMON_FILE: &str = "modules/values.yaml";

impl World {
    /// The modules that the existing part of the file mentions.
    fn spoken_of(&self) -> &[String] {
        let all = &self.setup.common;
        match self.common {
            CommonFile::Whole => all,
            CommonFile::Gone => &[],
            CommonFile::Cut(left) => &all[..left.min(all.len())],
        }
    }

    /// The modules as a reading of the directories finds them.
    pub fn modules_on_disk(&self) -> Vec<ModuleSpec> {
        let said = self.spoken_of();
        let is_unsaid = |name: &String| self.setup.common.contains(name) && !said.contains(name);
        let mut modules = self.setup.modules.clone();
        for module in modules.iter_mut().filter(|module| is_unsaid(&module.name)) {
            module.enabled = None;
            module.values.clear();
        }
        modules
    }

    /// Whether the world has a common values file that is missing or empty now.
    pub fn is_common_file_gone(&self) -> bool {
        !self.setup.common.is_empty() && self.spoken_of().is_empty()
    }

    pub(super) fn values_files(&self) -> ValuesFiles {
        if self.setup.common.is_empty() {
            return ValuesFiles::default();
        }
        let said = (!self.is_common_file_gone()).then(|| {
            let modules = self.spoken_of().iter().filter_map(|name| self.module(name));
            let modules: Vec<&ModuleSpec> = modules.collect();
            let flags = modules
                .iter()
                .filter_map(|module| Some((module_name(&module.name), module.enabled?)));
            let valued = modules.iter().filter(|module| !module.values.is_empty());
            ValuesFile {
                flags: flags.collect(),
                sections: valued.map(|module| key_of(&module.name)).collect(),
            }
        });
        [(COMMON_FILE.to_owned(), said)].into()
    }
}
