//! The intake of a module's files: they are read, checked as `module lint` does, and handed to the core. It serves the
//! command that reads a directory again, and the sources of modules.
//!
//! Must never hand over files that cannot be used: the module then goes on with its former files.
//!
//! ```text
//!   answers --> reload: `module reload`
//!   directory --> disk --> checked --> judge    lint, a rendering with the values of now
//!                                  --> fits     the schemas, with the section of now
//!                      --> Event::ModuleRead --> the core
//!   other directories --> differences --> checked     for a plan
//! ```
//!
//! Begin with `Desk::reload`.

pub mod answers;
pub mod directories;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::module::{Module, Origin};
use addon_core::operator::event::Event;
use addon_core::operator::query::{ConfigValuesQuery, ModuleReport, ModulesQuery, ReleaseValuesQuery, Secrets};
use addon_core::values::Store;
use addon_core::values::section::to_text;
use authoring::findings::{Finding, Weight};
use authoring::lint;
use authoring::offline::Offline;
use disk::{Found, FoundModule, Layout, Problem};
use jobs::Ground;
use jobs::catalogue::ModuleFiles;
use jobs::editions::Editions;
use listeners::{Loop, Unanswered};
use names::{ModuleName, Owner};
use report::Chain;
use serde_json::{Map, Value};
use settings::Environment;
use thiserror::Error;

/// The directory that was read, and the warnings about its files.
#[derive(Debug)]
pub struct Reloaded {
    /// The directory.
    pub dir: PathBuf,
    /// A line for each warning.
    pub warnings: Vec<String>,
}

/// A module that was read, and whose files are not in use.
#[derive(Debug)]
pub struct Prepared {
    /// The module as the core takes it.
    pub module: Module,
    /// The places of its files.
    pub files: ModuleFiles,
    /// A line for each warning of the checks.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// The module with its flag in the common values files. Nothing is checked.
    pub fn unchecked(found: FoundModule, flag: Option<bool>) -> Self {
        Self {
            files: ModuleFiles::of(&found),
            module: described(found, flag),
            warnings: Vec::new(),
        }
    }
}

/// Why the files cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    #[error(
        "there is no module '{module}' in {dirs}; a module whose directory is gone keeps its release until the operator starts again"
    )]
    Absent { module: ModuleName, dirs: String },
    #[error("the files cannot be used:\n{}", .0.join("\n"))]
    Mistakes(Vec<String>),
    #[error("the section '{key}' of the ConfigMap does not keep to the schema that was read: {mistake}")]
    Section { key: String, mistake: String },
    #[error("the files cannot be checked: {0}")]
    Unchecked(String),
}

/// The parts that reading a module again needs.
pub struct Desk {
    /// The rules for reading directories.
    pub layout: Layout,
    /// The environment of the operator.
    pub environment: Environment,
    /// The connection to the cluster and the other means that all jobs share.
    pub ground: Arc<Ground>,
    /// Keeps files that were read until the core takes them.
    pub editions: Editions,
    /// The ways into the loop.
    pub doors: Loop,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl Desk {
    /// Reads the directory of a module again, and hands it to the core if it can be used.
    pub async fn reload(&self, name: &ModuleName) -> Result<Result<Reloaded, Unfit>, Unanswered> {
        let layout = self.layout.clone();
        let mut found = blocking::run(move || disk::read(&layout)).await;
        let Some(at) = found.modules.iter().position(|module| module.name == *name) else {
            return Ok(Err(self.absent(name)));
        };
        let module = found.modules.remove(at);
        let Prepared {
            module,
            files,
            warnings,
        } = match self.checked(&found, module).await? {
            Ok(prepared) => prepared,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let dir = files.dir.clone();
        let edition = self.editions.keep(name, files);
        self.doors
            .post(Event::ModuleRead(edition, Origin::Directory, Box::new(module)))?;
        Ok(Ok(Reloaded { dir, warnings }))
    }

    /// Checks the files of a module: `module lint`, a rendering with the present values, and the schemas with the present
    /// section. `found` has the files around the module.
    pub async fn checked(&self, found: &Found, module: FoundModule) -> Result<Result<Prepared, Unfit>, Unanswered> {
        let warnings = match self.judge(found, &module).await {
            Ok(warnings) => warnings,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let section = self.section(&module.name).await?;
        let flag = found.flags.get(&module.name).copied();
        let prepared = Prepared {
            warnings,
            ..Prepared::unchecked(module, flag)
        };
        Ok(blocking::run(move || fits(&prepared.module, section.as_ref()).map(|()| prepared)).await)
    }

    /// The values of the module's release, if its last run succeeded. Before a good run, its hooks may not have set
    /// their values.
    async fn values_of_now(&self, name: &ModuleName) -> Option<Value> {
        let modules = listeners::ask(&self.doors, ModulesQuery).await.ok()?;
        let is_ready = |report: &ModuleReport| report.name == name.as_str() && report.state == "Ready";
        modules.iter().find(|report| is_ready(report))?;
        let values = listeners::ask(&self.doors, ReleaseValuesQuery(name.clone()))
            .await
            .ok()?;
        Some(values.ok()?.to_value())
    }

    fn absent(&self, name: &ModuleName) -> Unfit {
        let dirs = self.layout.modules_dirs.iter().map(|dir| dir.display().to_string());
        Unfit::Absent {
            module: name.clone(),
            dirs: dirs.collect::<Vec<_>>().join(", "),
        }
    }

    /// The section of the ConfigMap that the module uses; none if the core does not know the module yet.
    async fn section(&self, name: &ModuleName) -> Result<Option<Value>, Unanswered> {
        let query = ConfigValuesQuery {
            module: Some(name.clone()),
            with_global: false,
            secrets: Secrets::Shown,
        };
        let section = listeners::ask(&self.doors, query).await?.ok();
        // Without a section the answer is null or an empty object.
        let is_empty = |section: &Value| section.is_null() || section.as_object().is_some_and(Map::is_empty);
        Ok(section.filter(|section| !is_empty(section)))
    }

    /// Looks for the mistakes that `module lint` finds, and renders the chart with the values that the module has now.
    /// Returns the warnings if there is no mistake.
    async fn judge(&self, found: &Found, module: &FoundModule) -> Result<Vec<String>, Unfit> {
        let tmp = tempfile::tempdir().map_err(|error| Unfit::Unchecked(error.to_string()))?;
        let offline = Offline {
            found,
            environment: &self.environment,
            spawner: self.ground.spawner.clone(),
            tmp: tmp.path(),
        };
        let mut findings: Vec<Finding> = module.faults.iter().map(lint::told).collect();
        if findings.is_empty() {
            findings.extend(lint::hooks(&offline, module).await);
            findings.extend(lint::rendered::chart(&offline, module).await);
            if let Some(values) = self.values_of_now(&module.name).await {
                findings.extend(lint::rendered::today(&offline, module, &values).await);
            }
        }
        let (mistakes, warnings): (Vec<Finding>, Vec<Finding>) = findings
            .into_iter()
            .partition(|finding| finding.weight == Weight::Error);
        let texts = |findings: Vec<Finding>| findings.iter().map(ToString::to_string).collect();
        if mistakes.is_empty() {
            return Ok(texts(warnings));
        }
        Err(Unfit::Mistakes(texts(mistakes)))
    }
}

/// Whether the values and the section in use fit the schemas that were read. The rules of a schema may take long to
/// check.
fn fits(module: &Module, section: Option<&Value>) -> Result<(), Unfit> {
    let owner = Owner::Module(module.name.clone());
    let mut store = Store::new();
    let files = store.renew_files(&owner, module.schemas.clone(), module.values.clone());
    files.map_err(|rejected| Unfit::Mistakes(vec![Chain(&rejected).to_string()]))?;
    let key = owner.values_key();
    let data = section
        .map(|section| (key.clone(), to_text(section)))
        .into_iter()
        .collect();
    match store.judge(&data, None, &BTreeMap::new()).problems.first() {
        None => Ok(()),
        Some(problem) => Err(Unfit::Section {
            key,
            mistake: problem.message.clone(),
        }),
    }
}

/// The module as the core takes it, with its flag in the common values files.
pub fn described(found: FoundModule, enabled: Option<bool>) -> Module {
    let FoundModule {
        name,
        order,
        path: _,
        values,
        schemas,
        hooks,
        enabled_script,
        chart,
        has_conversions,
        version: _,
        crds,
        depends_on,
        drift: _,
        service_account,
        replace: _,
        health,
        faults,
    } = found;
    Module {
        broken: broken(&name, &faults),
        name,
        order,
        values,
        schemas,
        enabled,
        has_chart: chart.is_some(),
        has_crds: !crds.is_empty(),
        has_conversions,
        has_enabled_script: enabled_script.is_some(),
        has_hooks: !hooks.is_empty(),
        has_account: service_account.is_some(),
        depends_on,
        health,
    }
}

fn broken(name: &ModuleName, faults: &[Problem]) -> Option<Failure> {
    let texts: Vec<String> = faults.iter().map(|fault| Chain(fault).to_string()).collect();
    (!texts.is_empty()).then(|| {
        Failure::new(
            Class::Invalid,
            format!("cannot read module '{name}': {}", texts.join("; ")),
        )
        .hint("correct the files and start the operator again")
    })
}
