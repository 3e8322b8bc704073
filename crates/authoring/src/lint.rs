//! `module lint` checks modules before they are installed: their files are read as the operator reads them, their hooks are asked
//! for their configuration, their chart is rendered. Never talks to a cluster.

pub mod rendered;

use std::path::{Path, PathBuf};

use blocking::threads::{self, NoThreads};
use child::Spawner;
use disk::{Fault, Found, FoundModule, Layout, Problem, Severity};
use helm_yaml::yaml;
use names::{Owner, parse_module_dir};
use report::{Chain, plural};
use settings::{CRD_FILTERS, Environment, MissingValues};
use thiserror::Error;
use values_schema::schema::{self, SchemaError};
use walkdir::WalkDir;

use crate::findings::{Checked, Finding};
use crate::offline::Offline;

/// The entries of a module's directory. A directory is a module if its name is valid and it has one of these entries.
const PARTS: [&str; 7] = [
    "Chart.yaml",
    "templates",
    "hooks",
    "enabled",
    "module.yaml",
    "openapi",
    "crds",
];
/// Directories of a module whose files are YAML.
const YAML_DIRS: [&str; 2] = ["openapi", "crds"];

/// Why nothing could be checked.
#[derive(Debug, Error)]
pub enum LintError {
    #[error("cannot look at {}", dir.display())]
    Dir { dir: PathBuf, source: std::io::Error },
    #[error("cannot start")]
    Start(#[source] NoThreads),
}

/// All findings about a module, or about all modules of a directory.
pub fn lint(dir: &Path, environment: &Environment) -> Result<Checked, LintError> {
    let failed = |source| LintError::Dir {
        dir: dir.to_owned(),
        source,
    };
    let place = fs_err::canonicalize(dir).map_err(failed)?;
    let tmp = tempfile::tempdir().map_err(failed)?;
    let found = found(&place, tmp.path());
    let is_meant = |path: &Path| is_meant(&place, path);
    let problems = found.problems.iter().filter(|problem| is_meant(&problem.path));
    let mut findings: Vec<Finding> = problems.map(told).collect();
    let runtime = threads::runtime().map_err(LintError::Start)?;
    let spawner = Spawner::new().map_err(|error| LintError::Start(NoThreads::Spawner(error)))?;
    let offline = Offline {
        found: &found,
        environment,
        spawner,
        tmp: tmp.path(),
    };
    let (mut modules, mut hooks_asked) = (0, 0);
    for module in modules_at(&found, &place) {
        modules += 1;
        hooks_asked += module.hooks.len();
        findings.extend(module.faults.iter().map(told));
        let unread = yaml_files(&module.path);
        // An invalid schema was already reported as invalid YAML.
        let unread: Vec<Finding> = unread.into_iter().filter(|one| !findings.contains(one)).collect();
        findings.extend(unread);
        findings.extend(runtime.block_on(hooks(&offline, module)));
        // With broken files helm would report the same mistakes again.
        if !module.is_broken() {
            findings.extend(runtime.block_on(rendered::chart(&offline, module)));
        }
    }
    for finding in &mut findings {
        finding.show_as_typed(&place, dir);
    }
    let looked_at = [plural(modules, "module"), plural(hooks_asked, "hook")].join(", ");
    Ok(Checked { findings, looked_at })
}

/// The files of a directory of modules. For a single module, the directory that contains it is read.
pub(super) fn found(place: &Path, empty: &Path) -> Found {
    let parent = Some(place).filter(|place| is_module(place)).and_then(Path::parent);
    // The directory of global hooks is empty, because global hooks are not checked here.
    found_with(vec![parent.unwrap_or(place).to_owned()], empty.to_owned())
}

/// The files of these modules directories and of a directory of global hooks.
pub(super) fn found_with(modules_dirs: Vec<PathBuf>, global_hooks_dir: PathBuf) -> Found {
    disk::read(&Layout {
        modules_dirs,
        global_hooks_dir,
        unnumbered_order: 1,
        missing_values: MissingValues::NoValues,
        crd_filters: CRD_FILTERS.split(',').map(str::to_owned).collect(),
    })
}

/// The module at this place, or all modules of the directory.
pub(super) fn modules_at<'a>(found: &'a Found, place: &'a Path) -> impl Iterator<Item = &'a FoundModule> {
    found.modules.iter().filter(|module| is_meant(place, &module.path))
}

/// Whether a file belongs to the module at this place, or to the directory of modules.
fn is_meant(place: &Path, path: &Path) -> bool {
    !is_module(place)
        || path.starts_with(place)
        || place.parent().is_some_and(|parent| path == parent.join("values.yaml"))
}

/// Whether a directory looks like a module: by its name, and by an entry that modules have.
pub fn is_module(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str());
    let is_named = name.is_some_and(|name| parse_module_dir(name, 1).is_ok());
    is_named && PARTS.iter().any(|part| dir.join(part).exists())
}

pub fn told(problem: &Problem) -> Finding {
    if let Fault::Schema(error) = &problem.fault {
        return unusable(error);
    }
    let message = Chain(&problem.fault);
    // The operator starts in spite of it, but the author wanted the values to count.
    let is_lost = matches!(problem.fault, Fault::OutsideOfSection { .. } | Fault::SecondDocument(_));
    let finding = match problem.severity {
        Severity::Warning if !is_lost => Finding::warning(&problem.path, message),
        Severity::Warning | Severity::Gap | Severity::Fatal => Finding::error(&problem.path, message),
    };
    match &problem.fault {
        Fault::NotYaml(error) | Fault::SecondDocument(error) => finding.at(error.line),
        _ => finding,
    }
}

/// The finding about a schema, with the place in it.
fn unusable(error: &SchemaError) -> Finding {
    let SchemaError { file, place, problem } = error;
    match problem {
        schema::Problem::Yaml(error) => Finding::error(file, &error.message).at(error.line),
        problem if place.is_empty() => Finding::error(file, format!("cannot be used as a schema: {problem}")),
        problem => {
            let place = place.join(".");
            Finding::error(file, format!("cannot be used as a schema: at {place}: {problem}"))
        }
    }
}

/// Checks that the files are valid YAML; their contents are not judged.
fn yaml_files(module: &Path) -> Vec<Finding> {
    let files = YAML_DIRS.iter().flat_map(|dir| {
        let walk = WalkDir::new(module.join(dir)).sort_by_file_name().into_iter();
        walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_file())
    });
    let yaml = files.filter(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    });
    let judged = yaml.filter_map(|entry| {
        let path = entry.path();
        match fs_err::read_to_string(path) {
            Ok(text) => {
                let error = yaml::documents_v2(&text).err()?;
                Some(Finding::error(path, &error.message).at(error.line))
            }
            Err(error) => Some(Finding::error(path, Chain(&error))),
        }
    });
    judged.collect()
}

/// Asks every hook for its configuration.
pub async fn hooks(offline: &Offline<'_>, module: &FoundModule) -> Vec<Finding> {
    let mut findings = Vec::new();
    let owner = Owner::Module(module.name.clone());
    for file in &module.hooks {
        if let Err(failure) = offline.ask(&owner, Some(&module.path), file).await {
            let hints = failure.hints.iter().map(String::as_str);
            let told = [failure.report.as_str()].into_iter().chain(hints);
            findings.push(Finding::error(&file.path, told.collect::<Vec<_>>().join("\n")));
        }
    }
    findings
}
