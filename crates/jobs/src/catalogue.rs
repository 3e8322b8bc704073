//! The paths of hooks, scripts and charts. The core knows only names; jobs look up the paths here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::batch::Call;
use addon_core::module::description::AccountName;
use addon_core::module::health::HealthSettings;
use disk::{Chart, Found, FoundModule, HookFile};
use names::replaceable::Replaceable;
use names::{HookId, HookName, ModuleName, Owner};

/// The files found on disk, by name, and the hooks that executables have listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    global_hooks: Vec<HookFile>,
    modules: BTreeMap<ModuleName, ModuleFiles>,
    /// Hooks of batch executables, once the executables have listed them.
    batches: BTreeMap<HookId, Program>,
    /// The executables that check the settings of their owner, once they have declared that they do.
    checks: BTreeMap<Owner, Vec<PathBuf>>,
}

/// The executable of a hook, and the call that selects the hook in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The path of the executable.
    pub path: PathBuf,
    /// The arguments that select one of several hooks; none for an executable with a single hook.
    pub call: Option<Call>,
}

/// The files of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFiles {
    /// The directory of the module, with links resolved.
    pub dir: PathBuf,
    /// Files that may be hooks.
    pub hooks: Vec<HookFile>,
    pub enabled_script: Option<PathBuf>,
    pub chart: Option<Chart>,
    /// Files with CRDs.
    pub crds: Vec<PathBuf>,
    /// The service account of the module; none for the operator's.
    pub service_account: Option<AccountName>,
    /// The objects of its release that may be made anew if an upgrade cannot change them.
    pub replace: Vec<Replaceable>,
    /// The settings for the health of its objects.
    pub health: HealthSettings,
    /// The version of the chart, if it has one.
    pub version: Option<String>,
    /// Variables of the module's source, for its hooks and for helm. A variable of the operator takes precedence over
    /// one with the same name.
    pub env: Vec<(OsString, OsString)>,
}

impl ModuleFiles {
    /// The files of a module that was found.
    pub fn of(module: &FoundModule) -> Self {
        Self {
            dir: module.path.clone(),
            hooks: module.hooks.clone(),
            enabled_script: module.enabled_script.clone(),
            chart: module.chart,
            crds: module.crds.clone(),
            service_account: module.service_account.clone(),
            replace: module.replace.clone(),
            health: module.health.clone(),
            version: module.version.clone(),
            env: Vec::new(),
        }
    }
}

impl Catalogue {
    /// The catalogue of the files that were found.
    pub fn of(found: &Found) -> Self {
        let modules = found.modules.iter();
        let modules = modules.map(|module| (module.name.clone(), ModuleFiles::of(module)));
        Self {
            global_hooks: found.global_hooks.clone(),
            modules: modules.collect(),
            batches: BTreeMap::new(),
            checks: BTreeMap::new(),
        }
    }

    /// The files of a module.
    pub fn module(&self, name: &ModuleName) -> Result<&ModuleFiles, Failure> {
        self.modules.get(name).ok_or_else(|| gone(&format!("module '{name}'")))
    }

    /// All modules with their files.
    pub fn modules(&self) -> impl Iterator<Item = (&ModuleName, &ModuleFiles)> {
        self.modules.iter()
    }

    /// The files of the module with this name, if it exists.
    pub fn module_named(&self, name: &str) -> Option<&ModuleFiles> {
        let mut modules = self.modules.iter();
        modules
            .find(|(module, _)| module.as_str() == name)
            .map(|(_, files)| files)
    }

    /// The service account of the module with this name, if it is not the operator's.
    pub fn account(&self, module: &str) -> Option<AccountName> {
        self.module_named(module)?.service_account.clone()
    }

    /// Uses these files for the module from now on. Its executables have to list their hooks anew.
    pub fn take_up(&mut self, name: &ModuleName, files: ModuleFiles) {
        self.learn(&Owner::Module(name.clone()), [], Vec::new());
        self.modules.insert(name.clone(), files);
    }

    /// The directory of an owner, if it is a module.
    pub fn dir(&self, owner: &Owner) -> Result<Option<&Path>, Failure> {
        let module = owner.module().map(|name| self.module(name)).transpose()?;
        Ok(module.map(|files| files.dir.as_path()))
    }

    /// The variables of the source of the module with this name.
    pub fn env(&self, module: &str) -> Vec<(OsString, OsString)> {
        let files = self.module_named(module);
        files.map(|files| files.env.clone()).unwrap_or_default()
    }

    /// The files that may be hooks of an owner, sorted by path.
    pub fn hooks(&self, owner: &Owner) -> Result<&[HookFile], Failure> {
        match owner {
            Owner::Global => Ok(&self.global_hooks),
            Owner::Module(name) => Ok(&self.module(name)?.hooks),
        }
    }

    /// The executable and the call of a hook.
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

    /// The executables that check the settings of an owner.
    pub fn checks(&self, owner: &Owner) -> &[PathBuf] {
        self.checks.get(owner).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sets the hooks that an owner's executables have listed, and the executables that check the owner's settings.
    pub fn learn(
        &mut self,
        owner: &Owner,
        batches: impl IntoIterator<Item = (HookName, Program)>,
        checks: Vec<PathBuf>,
    ) {
        self.checks.insert(owner.clone(), checks);
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
