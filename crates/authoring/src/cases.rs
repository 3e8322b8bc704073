//! `module test` and `global test`: cases in the directory `tests` of a module or of global hooks, each with values, objects
//! and a hook, and with the results that have to come out.
//!
//! Everything that a case needs is made for it: nothing talks to a cluster, and `kubectl` in a hook reaches none.

mod case;
pub(super) mod compare;
mod junit;
mod play;
mod render;
mod results;
mod steps;
mod subject;
mod world;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Instant;

use addon_core::values::Rejected;
use blocking::threads::{self, NoThreads};
use child::Spawner;
use disk::{Found, FoundModule, Problem};
use futures::StreamExt as _;
use futures::stream;
use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::documents_v3;
use hooks::rehearsal::Stage;
use jobs::tmp::TmpDir;
use report::Chain;
use settings::{Environment, TmpFiles};
use thiserror::Error;
use walkdir::WalkDir;

use crate::lint::{self, modules_at};
use crate::offline::{HOOK_DEADLINE, Offline};
use case::Written;
use play::Tools;
pub use results::{Outcome, Report, Tested};
use subject::Subject;

/// The variable by which hooks of shipped modules find this program, if it is not in their `PATH`.
const PROGRAM: &str = "ADDON_OPERATOR_PROGRAM";
/// The directory of a module with its cases.
const DIR: &str = "tests";
/// A kubeconfig whose cluster cannot exist, so that a program of a hook reaches none.
const KUBECONFIG: &str = "{apiVersion: v1, kind: Config, current-context: none, users: [{name: none}], \
    clusters: [{name: none, cluster: {server: 'https://a-test-has-no-cluster.invalid'}}], \
    contexts: [{name: none, context: {cluster: none, user: none}}]}\n";
/// Variables by which a program would find the cluster of the pod that it runs in.
const CLUSTER_VARIABLES: [&str; 4] = [
    "KUBECONFIG",
    "KUBE_CONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
];

/// The number of cases that run side by side for each processor: starts and ends of programs are mostly waiting.
const FOR_EACH_PROCESSOR: usize = 2;

/// Why no case was played.
#[derive(Debug, Error)]
pub enum CasesError {
    #[error("cannot look at {}", dir.display())]
    Dir { dir: PathBuf, source: io::Error },
    #[error("cannot start")]
    Start(#[source] NoThreads),
    #[error(
        "there are no cases in {}: a case is a YAML file in the directory '{DIR}' of a module, or of global hooks", dir.display()
    )]
    NoCases { dir: PathBuf },
    #[error("no case has '{text}' in its name")]
    NoMatch { text: String },
    #[error(
        "module '{module}' cannot be tested, because its files have mistakes: `addon-operator module lint` names them"
    )]
    Broken { module: String },
    #[error("module '{module}' cannot be tested")]
    Values { module: String, source: Box<Rejected> },
    #[error("the global hooks cannot be tested: {} {problem}", path.display())]
    GlobalHooks { path: PathBuf, problem: String },
    #[error("the global hooks cannot be tested")]
    GlobalValues { source: Box<Rejected> },
}

/// The files that cases are about.
#[derive(Debug, Clone, Copy)]
pub enum Tried<'a> {
    /// A module, or a directory of modules.
    Modules(&'a Path),
    /// A directory of global hooks, and the modules directory whose common file has the global values.
    GlobalHooks { dir: &'a Path, modules: Option<&'a Path> },
}

impl<'a> Tried<'a> {
    fn dir(self) -> &'a Path {
        match self {
            Self::Modules(dir) | Self::GlobalHooks { dir, .. } => dir,
        }
    }

    /// Reads the files. `place` is the directory with links resolved.
    fn read(self, place: &Path, nothing: &Path) -> Result<Found, CasesError> {
        let modules = match self {
            Self::Modules(_) => return Ok(lint::found(place, nothing)),
            Self::GlobalHooks { modules, .. } => modules,
        };
        let found = lint::found_with(modules.map(Path::to_owned).into_iter().collect(), place.to_owned());
        if let Some(Problem { path, fault, .. }) = found.fatal().next() {
            return Err(CasesError::GlobalHooks {
                path: path.clone(),
                problem: Chain(fault).to_string(),
            });
        }
        Ok(found)
    }

    /// The modules with cases; `None` stands for the global hooks.
    fn subjects<'b>(self, found: &'b Found, place: &'b Path) -> Vec<Option<&'b FoundModule>> {
        match self {
            Self::Modules(_) => modules_at(found, place).map(Some).collect(),
            Self::GlobalHooks { .. } => vec![None],
        }
    }
}

/// Plays the cases of modules or of global hooks. With `only`, plays just the cases whose names contain that text.
pub fn test(tried: Tried<'_>, only: Option<&str>, environment: &Environment) -> Result<Report, CasesError> {
    let dir = tried.dir();
    let begin = Instant::now();
    let failed = |source| CasesError::Dir {
        dir: dir.to_owned(),
        source,
    };
    let place = fs_err::canonicalize(dir).map_err(failed)?;
    let tmp = tempfile::tempdir().map_err(failed)?;
    let files = TmpDir::prepare(&tmp.path().join("hooks"), TmpFiles::Removed).map_err(failed)?;
    let hook_environment = environment_without_cluster(environment, tmp.path()).map_err(failed)?;
    let runtime = threads::runtime().map_err(CasesError::Start)?;
    let spawner = Spawner::new().map_err(|error| CasesError::Start(NoThreads::Spawner(error)))?;
    let nothing = tmp.path().join("nothing");
    fs_err::create_dir(&nothing).map_err(failed)?;
    let found = tried.read(&place, &nothing)?;
    let bench = Bench {
        found: &found,
        environment,
        hook_environment,
        spawner,
        files,
        tmp: tmp.path(),
        at_once: FOR_EACH_PROCESSOR * available_parallelism().map_or(1, usize::from),
    };
    let mut tested = Vec::new();
    let mut are_there = false;
    for module in tried.subjects(&found, &place) {
        let home = module.map_or(place.as_path(), |module| &module.path);
        let cases = cases_of(home, &place, dir).map_err(failed)?;
        are_there |= !cases.is_empty();
        let cases: Vec<Written> = cases
            .into_iter()
            .filter(|case| only.is_none_or(|text| case.name.contains(text)))
            .collect();
        if !cases.is_empty() {
            tested.extend(runtime.block_on(bench.play(module, cases))?);
        }
    }
    match (tested.is_empty(), are_there, only) {
        (false, ..) => Ok(Report::new(tested, begin.elapsed())),
        (true, true, Some(text)) => Err(CasesError::NoMatch { text: text.to_owned() }),
        (true, ..) => Err(CasesError::NoCases { dir: dir.to_owned() }),
    }
}

/// The environment of a hook that must not reach a cluster. Writes a kubeconfig into the directory. The `PATH` of the machine
/// may lack this program, which the image has there, so a variable names it.
pub(super) fn environment_without_cluster(
    environment: &Environment,
    dir: &Path,
) -> io::Result<Vec<(OsString, OsString)>> {
    let kubeconfig = dir.join("kubeconfig");
    fs_err::write(&kubeconfig, KUBECONFIG)?;
    let mut variables = environment.inherited();
    variables.retain(|(name, _)| CLUSTER_VARIABLES.iter().all(|cluster| name != cluster));
    variables.push(("KUBECONFIG".into(), kubeconfig.into()));
    if environment.get(PROGRAM).is_none() {
        variables.push((PROGRAM.into(), std::env::current_exe()?.into()));
    }
    Ok(variables)
}

/// The cases in a directory, in the order of their files. The paths of files begin with the directory as it was typed.
fn cases_of(home: &Path, place: &Path, typed: &Path) -> io::Result<Vec<Written>> {
    let mut cases = Vec::new();
    // Directories in it are for other files.
    let walk = WalkDir::new(home.join(DIR)).max_depth(1).sort_by_file_name();
    for entry in walk.into_iter().filter_map(Result::ok) {
        let path = entry.path();
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if !entry.file_type().is_file() || !is_yaml {
            continue;
        }
        let text = fs_err::read_to_string(path)?;
        let shown = path
            .strip_prefix(place)
            .map_or_else(|_| path.to_owned(), |rest| typed.join(rest));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match documents_v3(&text) {
            Ok(documents) => {
                let meant: Vec<_> = documents.iter().filter(|document| !document.value.is_null()).collect();
                cases.extend(meant.iter().enumerate().map(|(number, document)| {
                    let name = if meant.len() > 1 {
                        format!("{stem} {}", number + 1)
                    } else {
                        stem.clone()
                    };
                    case::read(shown.clone(), document, name)
                }));
            }
            Err(YamlError { line, message, .. }) => cases.push(Written {
                file: shown,
                line,
                name: stem,
                lines: BTreeMap::new(),
                case: Err(case::Mistake::new("YAML", message)),
            }),
        }
    }
    Ok(cases)
}

/// The tools of all cases.
struct Bench<'a> {
    found: &'a Found,
    environment: &'a Environment,
    hook_environment: Vec<(OsString, OsString)>,
    spawner: Spawner,
    files: TmpDir,
    tmp: &'a Path,
    /// The number of cases, or of questions to hooks, that run side by side.
    at_once: usize,
}

impl Bench<'_> {
    async fn play(&self, module: Option<&FoundModule>, cases: Vec<Written>) -> Result<Vec<Tested>, CasesError> {
        if let Some(module) = module.filter(|module| module.is_broken()) {
            return Err(CasesError::Broken {
                module: module.name.to_string(),
            });
        }
        let subject = Subject::of(module, self.found, &self.offline(self.tmp), self.at_once).await;
        let subject = subject.map_err(|source| {
            let source = Box::new(source);
            match module {
                Some(module) => CasesError::Values {
                    module: module.name.to_string(),
                    source,
                },
                None => CasesError::GlobalValues { source },
            }
        })?;
        let played = cases.into_iter().map(|case| self.one(&subject, case));
        Ok(stream::iter(played).buffered(self.at_once).collect().await)
    }

    async fn one(&self, subject: &Subject<'_>, written: Written) -> Tested {
        let begin = Instant::now();
        let outcome = match &written.case {
            Err(mistake) => Outcome::Mistake(written.line_of(mistake), mistake.to_string()),
            Ok(case) => match tempfile::tempdir_in(self.tmp) {
                Err(error) => Outcome::Failed(vec![format!("it has no directory: {error}")]),
                Ok(tmp) => {
                    let tools = Tools {
                        subject,
                        stage: Stage {
                            spawner: &self.spawner,
                            tmp: &self.files,
                            environment: &self.hook_environment,
                            module: subject.module.map(|module| module.path.as_path()),
                            deadline: HOOK_DEADLINE,
                        },
                        offline: self.offline(tmp.path()),
                    };
                    match play::play(case, &tools).await {
                        Ok(differences) if differences.is_empty() => Outcome::Passed,
                        Ok(differences) => Outcome::Failed(differences),
                        Err(mistake) => Outcome::Mistake(written.line_of(&mistake), mistake.to_string()),
                    }
                }
            },
        };
        Tested {
            module: subject.title().to_owned(),
            file: written.file,
            line: written.line,
            name: written.name,
            took: begin.elapsed(),
            outcome,
        }
    }

    fn offline<'b>(&'b self, tmp: &'b Path) -> Offline<'b> {
        Offline {
            found: self.found,
            environment: self.environment,
            spawner: self.spawner.clone(),
            tmp,
        }
    }
}
