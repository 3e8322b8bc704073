//! The part of a reading of the directories that counts before a release is removed: the modules, and the contents of
//! the common values files. Paths are only texts here; no file is opened.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Inventory;
use crate::name::ModuleName;

/// The contents of the common values file of a modules directory, as far as they matter when the file is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuesFile {
    /// Its flags.
    #[serde(default)]
    pub flags: BTreeMap<ModuleName, bool>,
    /// Its other keys, which are sections of values.
    #[serde(default)]
    pub sections: BTreeSet<String>,
}

/// The common values files by their paths, `None` for one that is missing or empty.
pub type ValuesFiles = BTreeMap<String, Option<ValuesFile>>;

/// The part of a reading that has to be the same when the directories are read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The modules, with their flags in files.
    pub modules: BTreeMap<ModuleName, Option<bool>>,
    /// The values files of the modules directories.
    pub values_files: ValuesFiles,
    /// Every directory was read to its end without an error.
    pub complete: bool,
}

impl Inventory {
    /// The part of it that has to be the same when the directories are read again.
    pub fn outline(&self) -> Outline {
        let modules = self.modules.iter();
        Outline {
            modules: modules.map(|module| (module.name.clone(), module.enabled)).collect(),
            values_files: self.values_files.clone(),
            complete: self.complete,
        }
    }
}
