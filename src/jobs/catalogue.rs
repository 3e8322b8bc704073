//! Where hooks, scripts and charts lie. Decisions know only their names; jobs look up the place.

use std::collections::BTreeMap;
use std::path::PathBuf;

use addon_core::failure::{Class, Failure};
use addon_core::name::{HookId, ModuleName, Owner};

use crate::disk::{Chart, Found, HookFile};

/// What was found on disk, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    global_hooks: Vec<HookFile>,
    modules: BTreeMap<ModuleName, ModuleFiles>,
}

/// The files of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFiles {
    /// Its directory, links resolved.
    pub dir: PathBuf,
    /// What may be its hooks.
    pub hooks: Vec<HookFile>,
    /// Its enabled script.
    pub enabled_script: Option<PathBuf>,
    /// Its chart.
    pub chart: Option<Chart>,
    /// Its files with CRDs.
    pub crds: Vec<PathBuf>,
}

impl Catalogue {
    /// The places of what was found.
    pub fn of(found: &Found) -> Self {
        let modules = found.modules.iter().map(|module| {
            let files = ModuleFiles {
                dir: module.path.clone(),
                hooks: module.hooks.clone(),
                enabled_script: module.enabled_script.clone(),
                chart: module.chart,
                crds: module.crds.clone(),
            };
            (module.name.clone(), files)
        });
        Self {
            global_hooks: found.global_hooks.clone(),
            modules: modules.collect(),
        }
    }

    /// The files of a module that was found.
    pub fn module(&self, name: &ModuleName) -> Result<&ModuleFiles, Failure> {
        self.modules.get(name).ok_or_else(|| gone(&format!("module '{name}'")))
    }

    /// What may be hooks of the owner, in the order of their paths.
    pub fn hooks(&self, owner: &Owner) -> Result<&[HookFile], Failure> {
        match owner {
            Owner::Global => Ok(&self.global_hooks),
            Owner::Module(name) => Ok(&self.module(name)?.hooks),
        }
    }

    /// One of them.
    pub fn hook(&self, hook: &HookId) -> Result<&HookFile, Failure> {
        let hooks = self.hooks(&hook.owner)?;
        hooks
            .iter()
            .find(|file| file.name == hook.name)
            .ok_or_else(|| gone(&hook.to_string()))
    }
}

fn gone(what: &str) -> Failure {
    Failure::new(Class::Invalid, format!("{what} is not on disk any more"))
        .hint("put its files back, or switch the module off before they are removed")
}
