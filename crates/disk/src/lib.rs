//! Modules and hooks in directories: the contents of the modules directories and of the directory of global hooks.
//!
//! Must never decide what a finding means for the cluster, and never run anything. An unreadable path never counts as
//! absent: it is reported as a gap.
//!
//! ```text
//!   Layout (the directories) --> read --> Found
//!                                 |         modules, global hooks, values, schemas, flags
//!        look: one path           |         problems: a gap, or a fault of a file
//!        description, values,     |
//!        chart, crds, hooks,  ----+
//!        schemas, manifest
//! ```
//!
//! Begin with `read`, and with `Found::is_complete`: it says whether a module that was not found is certainly absent.

mod chart;
pub mod crds;
mod description;
mod enabled;
mod hooks;
mod ignored;
mod look;
pub mod manifest;
mod problem;
pub mod record;
mod schemas;
pub mod tree;
mod values;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use addon_core::module::description::{AccountName, Restoring};
use addon_core::module::health::HealthSettings;
use addon_core::module::outline::{Outline, ValuesFiles};
use names::replaceable::Replaceable;
use names::{ModuleName, parse_module_dir};
use serde_json::Value;
use settings::MissingValues;
use values_schema::schema::Schemas;

pub use chart::{CONVERSION_WEBHOOK, Chart, ChartError, chart_digest, chart_mentions, chart_version};
pub use hooks::HookFile;
pub use problem::{Fault, Problem, Severity};
pub use values::Layer;

use hooks::Root;
use manifest::Manifest;
use values::Common;

/// The directories, and the rules for reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// In the order of precedence: of two modules with one name, the first counts.
    pub modules_dirs: Vec<PathBuf>,
    pub global_hooks_dir: PathBuf,
    /// The order of modules whose directory name has no number.
    pub unnumbered_order: u32,
    pub missing_values: MissingValues,
    /// Prefixes of file names that do not count as CRDs.
    pub crd_filters: Vec<String>,
}

/// All that a reading of the directories has found.
#[derive(Debug, Default)]
pub struct Found {
    pub global_values: Value,
    pub global_schemas: Schemas,
    pub global_hooks: Vec<HookFile>,
    /// The flags in the values files of the modules directories. If two files have one flag, the later file counts.
    pub flags: BTreeMap<ModuleName, bool>,
    /// The common values file of each modules directory; an unreadable one counts as absent here.
    pub values_files: ValuesFiles,
    /// The modules by order and name.
    pub modules: Vec<FoundModule>,
    /// Problems that concern no single module, or one whose name is unknown.
    pub problems: Vec<Problem>,
}

impl Found {
    /// Whether a module that was not found is certainly absent. An empty directory proves nothing unless its manifest
    /// says that it is empty on purpose, because a volume that is not mounted looks the same.
    pub fn is_complete(&self) -> bool {
        self.problems
            .iter()
            .all(|problem| problem.severity == Severity::Warning)
    }

    /// The facts that have to be equal when the directories are read again.
    pub fn outline(&self) -> Outline {
        let flag = |module: &FoundModule| (module.name.clone(), self.flags.get(&module.name).copied());
        Outline {
            modules: self.modules.iter().map(flag).collect(),
            values_files: self.values_files.clone(),
            complete: self.is_complete(),
        }
    }

    /// Problems that forbid a start. A later reading with one of them must not replace an earlier reading.
    pub fn fatal(&self) -> impl Iterator<Item = &Problem> {
        self.problems
            .iter()
            .filter(|problem| problem.severity == Severity::Fatal)
    }
}

/// A module. Files that could not be read are left out and listed in `faults`.
#[derive(Debug)]
pub struct FoundModule {
    pub name: ModuleName,
    pub order: u32,
    /// The directory of the module, with links resolved.
    pub path: PathBuf,
    /// The module's section of the common values file, with the module's own values file merged over.
    pub values: Value,
    pub schemas: Schemas,
    pub hooks: Vec<HookFile>,
    pub enabled_script: Option<PathBuf>,
    pub chart: Option<Chart>,
    /// Whether the chart's templates may contain conversion webhooks.
    pub has_conversions: bool,
    pub version: Option<String>,
    /// The files with CRDs, sorted by path.
    pub crds: Vec<PathBuf>,
    pub depends_on: Vec<ModuleName>,
    /// Which drift of its release is reverted, if the module sets this itself.
    pub drift: Option<Restoring>,
    /// The service account of its hooks and its release, if it is not the operator's.
    pub service_account: Option<AccountName>,
    /// The objects of its release that may be made anew if an upgrade cannot change them.
    pub replace: Vec<Replaceable>,
    pub health: HealthSettings,
    /// Why the module can be neither run nor removed: a fact about it, such as its flag, is unknown.
    pub faults: Vec<Problem>,
}

impl FoundModule {
    pub fn is_broken(&self) -> bool {
        !self.faults.is_empty()
    }
}

/// Whether a path leads to an executable file.
pub fn is_executable(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|found| hooks::is_executable(&found))
}

/// Reads the directories of modules and global hooks. It blocks, so async code runs it on a blocking thread.
pub fn read(layout: &Layout) -> Found {
    let mut found = Found {
        global_values: Value::Object(serde_json::Map::new()),
        ..Found::default()
    };
    let mut warnings = Vec::new();
    let hooks = Root::global(&layout.global_hooks_dir).and_then(|root| hooks::find(&root, &mut warnings));
    match hooks {
        Ok(hooks) => found.global_hooks = hooks,
        Err(problem) => found.problems.push(problem),
    }
    found.problems.append(&mut warnings);
    found.global_schemas = schemas::read(&layout.global_hooks_dir, &mut found.problems);
    let mut bad_flags = Vec::new();
    for dir in &layout.modules_dirs {
        read_modules_dir(layout, dir, &mut found, &mut bad_flags);
    }
    for (name, problem) in bad_flags {
        match found.modules.iter_mut().find(|module| module.name == name) {
            Some(module) => module.faults.push(problem),
            None => found.problems.push(Problem {
                severity: Severity::Warning,
                ..problem
            }),
        }
    }
    found
        .modules
        .sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
    found
}

/// Reads the directory of one module that lies in no modules directory. Its values are those of the common values files
/// and its own, with `more` merged over. It blocks too.
pub fn read_alone(
    layout: &Layout,
    name: &ModuleName,
    order: u32,
    path: PathBuf,
    more: &[Layer],
) -> (FoundModule, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut read = |dir: &PathBuf| values::read_common(&dir.join(values::FILE), layout.missing_values, &mut problems);
    let common = layout.modules_dirs.iter().map(&mut read);
    let common = common.reduce(|one, other| if other.speaks_of(name) { other } else { one });
    problems.clear();
    let mut module = read_module(
        layout,
        name.clone(),
        order,
        path,
        &common.unwrap_or_default(),
        &mut problems,
    );
    for layer in more {
        module.values = layer.lay(module.values.take(), name, &mut module.faults);
    }
    (module, problems)
}

/// Reads a directory of hooks without modules. It blocks too.
pub fn read_hooks(dir: &Path) -> Found {
    let mut found = Found::default();
    match hooks::find(&Root::alone(dir), &mut found.problems) {
        Ok(hooks) => found.global_hooks = hooks,
        Err(problem) => found.problems.push(problem),
    }
    found
}

fn read_modules_dir(layout: &Layout, dir: &Path, found: &mut Found, bad_flags: &mut Vec<(ModuleName, Problem)>) {
    let entries = match entries_of(dir) {
        Ok(entries) => entries,
        Err(fault) => return found.problems.push(Problem::new(Severity::Fatal, dir, fault)),
    };
    let mut common = values::read_common(&dir.join(values::FILE), layout.missing_values, &mut found.problems);
    found.global_values = common.lay_global(found.global_values.take(), &mut found.problems);
    found
        .values_files
        .insert(common.path.display().to_string(), common.said.take());
    found.flags.append(&mut common.flags);
    bad_flags.append(&mut common.bad_flags);
    let manifest = Manifest::read(dir).unwrap_or_else(|problem| {
        found.problems.push(problem);
        None
    });
    if let Some(manifest) = &manifest {
        tell_missing(dir, manifest, &entries, found);
    }
    let mut modules = 0;
    for entry in entries {
        if let Some(mut module) = read_entry(layout, &entry, &common, found) {
            let entry = entry.file_name().and_then(|name| name.to_str());
            if let Some((manifest, entry)) = manifest.as_ref().zip(entry) {
                module.faults.extend(manifest.differences(dir, entry));
            }
            modules += 1;
            found.modules.push(module);
        }
    }
    let is_meant_to_be_empty = manifest.is_some_and(|manifest| manifest.is_empty());
    if modules == 0 && !is_meant_to_be_empty {
        found.problems.push(Problem::new(Severity::Gap, dir, Fault::NoModules));
    }
}

/// Reports the entries of a manifest that were not found: missing modules, and a common values file without contents.
fn tell_missing(dir: &Path, manifest: &Manifest, entries: &[PathBuf], found: &mut Found) {
    for entry in manifest.entries() {
        let path = dir.join(entry);
        if entry == values::FILE {
            found.problems.extend(manifest.differences(dir, entry));
        } else if !entries.contains(&path) {
            found
                .problems
                .push(Problem::new(Severity::Gap, path, Fault::OnlyInManifest));
        }
    }
}

/// The paths in a directory, sorted by name.
fn entries_of(dir: &Path) -> Result<Vec<PathBuf>, Fault> {
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Fault::Missing,
        io::ErrorKind::NotADirectory => Fault::NoDirectory,
        _ => Fault::Unreadable(error),
    };
    let mut entries = fs_err::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>())
        .map_err(fault)?;
    entries.sort();
    Ok(entries)
}

/// The module at an entry of a modules directory, if it is one.
fn read_entry(layout: &Layout, entry: &Path, common: &Common, found: &mut Found) -> Option<FoundModule> {
    let Some(file_name) = entry.file_name().and_then(|name| name.to_str()) else {
        found
            .problems
            .push(Problem::new(Severity::Gap, entry, Fault::NameNotUnicode));
        return None;
    };
    // Hidden directories belong to version control and to mounted volumes.
    if file_name.starts_with('.') || file_name == values::FILE {
        return None;
    }
    // The name of a link counts, with the files of its target.
    let path = match resolve(entry, file_name) {
        Ok(path) => path,
        Err(problem) => {
            found.problems.push(problem);
            return None;
        }
    };
    let (order, name) = match parse_module_dir(file_name, layout.unnumbered_order) {
        Ok(parsed) => parsed,
        Err(error) => {
            found
                .problems
                .push(Problem::new(Severity::Gap, entry, Fault::Name(error)));
            return None;
        }
    };
    if let Some(first) = found.modules.iter().find(|module| module.name == name) {
        let first = first.path.clone();
        found
            .problems
            .push(Problem::warning(entry, Fault::SameName { name, first }));
        return None;
    }
    Some(read_module(layout, name, order, path, common, &mut found.problems))
}

/// The directory that an entry is or links to.
fn resolve(entry: &Path, file_name: &str) -> Result<PathBuf, Problem> {
    let gap = |fault| Problem::new(Severity::Gap, entry, fault);
    if look::at(entry).map_err(gap)?.is_some_and(|found| found.is_dir()) {
        return fs_err::canonicalize(entry).map_err(|error| gap(Fault::Unreadable(error)));
    }
    // An incomplete copy may leave a file where a module belongs. Notes beside modules have a file extension.
    let is_numbered = file_name.starts_with(|first: char| first.is_ascii_digit()) && file_name.contains('-');
    let is_module = is_numbered && !file_name.contains('.') && parse_module_dir(file_name, 0).is_ok();
    Err(if is_module {
        gap(Fault::FileForModule)
    } else {
        Problem::warning(entry, Fault::Stray)
    })
}

fn read_module(
    layout: &Layout,
    name: ModuleName,
    order: u32,
    path: PathBuf,
    common: &Common,
    warnings: &mut Vec<Problem>,
) -> FoundModule {
    let mut faults = Vec::new();
    let values = values::of_module(
        &name,
        &path.join(values::FILE),
        common,
        layout.missing_values,
        &mut faults,
        warnings,
    );
    let schemas = schemas::read(&path, &mut faults);
    let hooks = hooks::find(&Root::module(&path), warnings).unwrap_or_else(|problem| {
        faults.push(problem);
        Vec::new()
    });
    let enabled_script = enabled::read_script(&path, warnings).unwrap_or_else(|problem| {
        faults.push(problem);
        None
    });
    let crds = crds::find(&path, &layout.crd_filters).unwrap_or_else(|problem| {
        faults.push(problem);
        Vec::new()
    });
    let said = description::read(&path.join(description::FILE), &mut faults, warnings);
    let chart = chart::find(&path).unwrap_or_else(|problem| {
        faults.push(problem);
        None
    });
    FoundModule {
        name,
        order,
        values,
        schemas,
        hooks,
        enabled_script,
        chart,
        has_conversions: chart::has_conversions(&path),
        version: chart_version(&path),
        crds,
        depends_on: said.depends_on,
        drift: said.drift,
        service_account: said.service_account,
        replace: said.replace,
        health: said.health,
        faults,
        path,
    }
}

#[cfg(test)]
mod tests;
