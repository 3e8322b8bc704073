//! Brings the contents of the disk into the forms that the core and the jobs need, or gives the reason why the operator
//! cannot start with them.

use std::collections::BTreeMap;

use addon_core::module::Inventory;
use addon_core::module::description::Restoring;
use disk::{Fault, Found, FoundModule, Layout, Problem, Severity};
use intake::described;
use jobs::catalogue::Catalogue;
use names::ModuleName;
use report::Chain;
use settings::{ModuleSettings, Settings, Work};
use tokio::time::Instant;
use tracing::warn;

use super::start::StartError;
use crate::dispatch::directories::Directories;

/// The result of one reading of the directories.
#[derive(Debug)]
pub(super) struct Read {
    /// The directories of modules; none for hooks without modules.
    pub(super) directories: Option<Directories>,
    pub(super) inventory: Inventory,
    pub(super) catalogue: Catalogue,
    /// The problems that do not forbid a start, in words.
    pub(super) gaps: Vec<String>,
    /// Which drift is reverted, for the modules with a setting of their own.
    pub(super) restoring: BTreeMap<String, Restoring>,
}

/// Reads the directories on a blocking thread.
pub(super) async fn read(settings: &Settings) -> Result<Read, StartError> {
    let directories = match &settings.work {
        Work::Modules(modules) => Some(Directories {
            layout: layout(modules.as_ref().clone()),
            read: Instant::now(),
        }),
        Work::Hooks(_) => None,
    };
    let work = settings.work.clone();
    let mut found = blocking::run(move || match work {
        Work::Modules(modules) => disk::read(&layout(*modules)),
        Work::Hooks(dir) => disk::read_hooks(&dir),
    })
    .await;
    if found.problems.iter().any(forbids_start) {
        found.problems.retain(forbids_start);
        return Err(StartError::Problems {
            problems: found.problems,
            mode: super::start::mode(settings),
        });
    }
    let told = |problem: &Problem| format!("{}: {}", problem.path.display(), Chain(&problem.fault));
    let gaps = found.problems.iter().map(told).collect();
    for problem in &found.problems {
        tell(problem);
    }
    for module in &found.modules {
        module.faults.iter().for_each(|fault| tell_broken(&module.name, fault));
    }
    let catalogue = Catalogue::of(&found);
    let restoring_of = |module: &FoundModule| Some((module.name.to_string(), module.drift?));
    let restoring = found.modules.iter().filter_map(restoring_of).collect();
    Ok(Read {
        directories,
        gaps,
        inventory: inventory(found),
        catalogue,
        restoring,
    })
}

pub(super) fn layout(modules: ModuleSettings) -> Layout {
    Layout {
        modules_dirs: modules.modules_dirs,
        global_hooks_dir: modules.global_hooks_dir,
        unnumbered_order: modules.unnumbered_order,
        missing_values: modules.missing_values,
        crd_filters: modules.crd_filters,
    }
}

/// Whether a problem forbids the start: a named directory is missing, or the key of a module's values is unusable.
fn forbids_start(problem: &Problem) -> bool {
    problem.severity == Severity::Fatal || matches!(problem.fault, Fault::Name(_))
}

fn tell(problem: &Problem) {
    let path = problem.path.display();
    let fault = Chain(&problem.fault);
    if let Fault::NoModules = problem.fault {
        warn!(%path, problem = %fault, "A modules directory is empty, so releases of absent modules are kept");
        return;
    }
    match problem.severity {
        Severity::Warning => warn!(%path, problem = %fault, "Found a problem on disk"),
        Severity::Gap | Severity::Fatal => {
            warn!(%path, problem = %fault, "Some files on disk could not be read, so releases of absent modules are kept");
        }
    }
}

/// Logs a broken module, even one that is switched off, because a module with broken files is not removed.
fn tell_broken(module: &ModuleName, fault: &Problem) {
    warn!(
        module = module.as_str(),
        path = %fault.path.display(),
        problem = %Chain(&fault.fault),
        "Module cannot be read, so it is neither run nor removed"
    );
}

fn inventory(found: Found) -> Inventory {
    let complete = found.is_complete();
    let Found {
        global_values,
        global_schemas,
        global_hooks,
        flags,
        modules,
        values_files,
        problems: _,
    } = found;
    let modules = modules.into_iter().map(|module| {
        let enabled = flags.get(&module.name).copied();
        described(module, enabled)
    });
    Inventory {
        global_values,
        global_schemas,
        has_global_hooks: !global_hooks.is_empty(),
        modules: modules.collect(),
        values_files,
        complete,
    }
}
