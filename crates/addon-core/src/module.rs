//! A module as found on disk, reduced to what decisions need. Paths, files and charts stay in the shell.

pub mod description;
pub mod enabling;
pub mod first_runs;
pub mod graph;
pub mod lifecycle;
pub mod outline;

use serde_json::Value;

use self::outline::ValuesFiles;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::values::schema::Schemas;

/// One module of the modules directories.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// Its name, from the directory `NNN-name`.
    pub name: ModuleName,
    /// Its order number; lower ones run first.
    pub order: u32,
    /// Its static section: the common `values.yaml` overlaid by its own.
    pub values: Value,
    /// The schemas of its values.
    pub schemas: Schemas,
    /// The flag `fooEnabled` of the common `values.yaml` files.
    pub enabled: Option<bool>,
    /// There is something for helm to install.
    pub has_chart: bool,
    /// There are CRDs that must be in the cluster before anything of it runs.
    pub has_crds: bool,
    /// Its templates speak of conversion webhooks, which must be in the cluster before its release.
    pub has_conversions: bool,
    /// There is an executable `enabled` script.
    pub has_enabled_script: bool,
    /// There are files that may be hooks.
    pub has_hooks: bool,
    /// Its hooks and its release act as a service account that it names.
    pub has_account: bool,
    /// The modules it needs, from `module.yaml`.
    pub depends_on: Vec<ModuleName>,
    /// The fault that makes its files unusable. It is not run, and nothing of it is deleted.
    pub broken: Option<Failure>,
}

/// The contents of the modules directories and of the global hooks directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// The `global` sections of all common `values.yaml` files, merged in directory order.
    pub global_values: Value,
    /// The schemas of the global values.
    pub global_schemas: Schemas,
    /// There are files that may be global hooks.
    pub has_global_hooks: bool,
    /// All modules, each name once.
    pub modules: Vec<Module>,
    /// The common `values.yaml` of each modules directory.
    pub values_files: ValuesFiles,
    /// Every directory was read to its end without an error. Only then may an absent module count as removed.
    pub complete: bool,
}
