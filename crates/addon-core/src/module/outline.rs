//! The outline of the directories: the modules, and the contents of the common values files. A release is removed only if
//! two readings have the same outline. Paths are only texts here; no file is opened.

use std::collections::{BTreeMap, BTreeSet};

use names::ModuleName;
use serde::{Deserialize, Serialize};

use super::Inventory;

/// The outline of a modules directory's common values file, which is needed when the file is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuesFile {
    /// The flags in the file.
    #[serde(default)]
    pub flags: BTreeMap<ModuleName, bool>,
    /// The other keys of the file, which are sections of values.
    #[serde(default)]
    pub sections: BTreeSet<String>,
}

/// The outlines of the common values files by path; `None` for a missing or empty file.
pub type ValuesFiles = BTreeMap<String, Option<ValuesFile>>;

/// The parts of a reading that have to be equal in the second reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The modules, with their flags in values files.
    pub modules: BTreeMap<ModuleName, Option<bool>>,
    /// The outlines of the modules directories' values files.
    pub values_files: ValuesFiles,
    /// Whether every directory was read to its end without an error.
    pub complete: bool,
}

impl Inventory {
    /// The outline of the modules directories as they were read.
    pub fn outline(&self) -> Outline {
        let modules = self.modules.iter();
        Outline {
            modules: modules.map(|module| (module.name.clone(), module.enabled)).collect(),
            values_files: self.values_files.clone(),
            complete: self.complete,
        }
    }
}
