//! Where hooks, scripts and charts lie. Decisions know only their names; jobs look up the place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::batch::Call;
use addon_core::module::description::AccountName;
use addon_core::name::{HookId, HookName, ModuleName, Owner};

use crate::disk::{Chart, Found, HookFile};

/// The files found on disk, by name, and the hooks that executables have listed since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    global_hooks: Vec<HookFile>,
    modules: BTreeMap<ModuleName, ModuleFiles>,
    /// Hooks that share their executable with others, once it has listed them.
    batches: BTreeMap<HookId, Program>,
}

/// How one hook is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its executable.
    pub path: PathBuf,
    /// Which of several hooks of that executable it is; nothing if it is the only one.
    pub call: Option<Call>,
}

/// The files of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFiles {
    /// Its directory, links resolved.
    pub dir: PathBuf,
    /// The files that may be its hooks.
    pub hooks: Vec<HookFile>,
    /// Its enabled script.
    pub enabled_script: Option<PathBuf>,
    /// Its chart.
    pub chart: Option<Chart>,
    /// Its files with CRDs.
    pub crds: Vec<PathBuf>,
    /// Its service account, if not that of the operator.
    pub service_account: Option<AccountName>,
}

impl Catalogue {
    /// The paths of the found files.
    pub fn of(found: &Found) -> Self {
        let modules = found.modules.iter().map(|module| {
            let files = ModuleFiles {
                dir: module.path.clone(),
                hooks: module.hooks.clone(),
                enabled_script: module.enabled_script.clone(),
                chart: module.chart,
                crds: module.crds.clone(),
                service_account: module.service_account.clone(),
            };
            (module.name.clone(), files)
        });
        Self {
            global_hooks: found.global_hooks.clone(),
            modules: modules.collect(),
            batches: BTreeMap::new(),
        }
    }

    /// The files of a module that was found.
    pub fn module(&self, name: &ModuleName) -> Result<&ModuleFiles, Failure> {
        self.modules.get(name).ok_or_else(|| gone(&format!("module '{name}'")))
    }

    /// The files of a module, if there is one of that name.
    pub fn module_named(&self, name: &str) -> Option<&ModuleFiles> {
        let mut modules = self.modules.iter();
        modules
            .find(|(module, _)| module.as_str() == name)
            .map(|(_, files)| files)
    }

    /// The service account of the module of that name, if not that of the operator.
    pub fn account(&self, module: &str) -> Option<AccountName> {
        self.module_named(module)?.service_account.clone()
    }

    /// The directory of the owner, if it is a module.
    pub fn dir(&self, owner: &Owner) -> Result<Option<&Path>, Failure> {
        let module = owner.module().map(|name| self.module(name)).transpose()?;
        Ok(module.map(|files| files.dir.as_path()))
    }

    /// The files that may be hooks of the owner, in the order of their paths.
    pub fn hooks(&self, owner: &Owner) -> Result<&[HookFile], Failure> {
        match owner {
            Owner::Global => Ok(&self.global_hooks),
            Owner::Module(name) => Ok(&self.module(name)?.hooks),
        }
    }

    /// How one of the owner's hooks is started.
    pub fn hook(&self, hook: &HookId) -> Result<Program, Failure> {
        if let Some(program) = self.batches.get(hook) {
            return Ok(program.clone());
        }
        let mut files = self.hooks(&hook.owner)?.iter();
        let file = files.find(|file| file.name == hook.name);
        let file = file.ok_or_else(|| gone(&hook.to_string()))?;
        Ok(Program {
            path: file.path.clone(),
            call: None,
        })
    }

    /// Takes over the hooks that the owner's executables list now.
    pub fn learn(&mut self, owner: &Owner, batches: impl IntoIterator<Item = (HookName, Program)>) {
        self.batches.retain(|hook, _| hook.owner != *owner);
        let batches = batches.into_iter().map(|(name, program)| {
            let owner = owner.clone();
            (HookId { owner, name }, program)
        });
        self.batches.extend(batches);
    }
}

fn gone(what: &str) -> Failure {
    Failure::new(Class::Invalid, format!("{what} is no longer on disk"))
        .hint("put its files back, or switch the module off before they are removed")
}
