//! A module as found on disk, without the parts that no decision needs. Paths, files and charts stay in the shell.

pub mod description;
pub mod enabling;
pub mod first_runs;
pub mod graph;
pub mod health;
pub mod lifecycle;
pub mod outline;

use names::ModuleName;
use serde_json::{Map, Value};
use values_schema::schema::Schemas;

use self::health::HealthSettings;
use self::outline::ValuesFiles;
use crate::failure::Failure;

/// One module of the modules directories.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// The name, from the directory `NNN-name`.
    pub name: ModuleName,
    /// The order number. Lower numbers run first.
    pub order: u32,
    /// The module's values from files: the common `values.yaml`, overlaid by the module's own.
    pub values: Value,
    /// The schemas of the module's values. The operator moves the values and the schemas into its store of values.
    pub schemas: Schemas,
    /// The flag `fooEnabled` in the common `values.yaml` files.
    pub enabled: Option<bool>,
    /// Whether the module has a chart to install.
    pub has_chart: bool,
    /// Whether the module has CRDs, which must be installed before any part of the module runs.
    pub has_crds: bool,
    /// Whether the module's templates mention conversion webhooks, which must be published before its release.
    pub has_conversions: bool,
    /// Whether the module has an executable `enabled` script.
    pub has_enabled_script: bool,
    /// Whether the module has files that may be hooks.
    pub has_hooks: bool,
    /// Whether the module names a service account, which its hooks and its release use.
    pub has_account: bool,
    /// The modules that this module depends on, from `module.yaml`.
    pub depends_on: Vec<ModuleName>,
    /// The module's own settings for the health of its objects.
    pub health: HealthSettings,
    /// The error that makes the module's files unusable. With an error, the module is not run, and none of its objects
    /// is removed.
    pub broken: Option<Failure>,
}

impl Module {
    /// A module of which no file is known: it has a name and an order number, and nothing else.
    pub fn without_files(name: ModuleName, order: u32) -> Self {
        Self {
            name,
            order,
            values: Value::Object(Map::new()),
            schemas: Schemas::default(),
            enabled: None,
            has_chart: false,
            has_crds: false,
            has_conversions: false,
            has_enabled_script: false,
            has_hooks: false,
            has_account: false,
            depends_on: Vec::new(),
            health: HealthSettings::default(),
            broken: None,
        }
    }
}

/// The number of one reading of a module's directory. A later reading has a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edition(pub u64);

/// The place from which the files of one reading come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A modules directory.
    Directory,
    /// The registry that the module's source names.
    Source {
        /// Whether earlier files of this source worked, so that the operator can return to those files.
        has_former: bool,
    },
}

/// The contents of the modules directories and of the global hooks directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// The `global` sections of all common `values.yaml` files, merged in directory order.
    pub global_values: Value,
    /// The schemas of the global values.
    pub global_schemas: Schemas,
    /// Whether there are files that may be global hooks.
    pub has_global_hooks: bool,
    /// All modules, without duplicate names.
    pub modules: Vec<Module>,
    /// The outline of the common `values.yaml` of each modules directory.
    pub values_files: ValuesFiles,
    /// Whether every directory was read to its end without an error. Only then may an absent module count as removed.
    pub complete: bool,
}
