//! Finds the rights that modules need in addition to those of the operator itself, from their charts, hooks, resource
//! definitions and declarations.
//!
//! Never talks to a cluster. Rights that it cannot find are reported, and never replaced by wider ones.

mod claimed;
mod installed;
pub(super) mod kinds;
mod looked_up;
mod rendered;
pub mod rules;
mod shown;
mod watched;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use blocking::threads::{self, NoThreads};
use child::Spawner;
use disk::crds;
use disk::{FoundModule, HookFile, Layout};
use helm_yaml::yaml::{self, YamlError};
use hooks::config::Said;
use names::{ModuleName, Owner};
use report::Chain;
use serde_json::{Value, json};
use settings::{CRD_FILTERS, Environment, MissingValues};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::findings::Finding;
use crate::lint::told;
use crate::offline::Offline;
use claimed::Claim;
use kinds::{Kinds, Resource};
use rules::{Rights, Scope, Subject};

pub use shown::{Form, shown};

/// The name under which the rights of global hooks are listed.
const GLOBAL_HOOKS: &str = "global hooks";
/// Namespaces that exist in every cluster.
const OF_KUBERNETES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The modules and hooks whose rights are asked for.
#[derive(Debug, Clone)]
pub struct Question {
    pub modules_dirs: Vec<PathBuf>,
    pub global_hooks_dir: Option<PathBuf>,
    /// The modules whose rights are asked for; empty for all of them.
    pub only: Vec<String>,
    /// The namespace of the releases.
    pub namespace: String,
    /// A file with additional values for charts, in place of the values from hooks or the `ConfigMap`.
    pub values: Option<PathBuf>,
}

/// The rights that were found, and remarks about them.
#[derive(Debug)]
pub struct Answer {
    pub rights: Rights,
    /// Remarks about rights that were not found, or only guessed.
    pub findings: Vec<Finding>,
}

/// Why nothing could be read.
#[derive(Debug, Error)]
pub enum RightsError {
    #[error("cannot look at {}", path.display())]
    Look { path: PathBuf, source: io::Error },
    #[error("cannot read values from {}", path.display())]
    Values { path: PathBuf, source: YamlError },
    #[error("cannot read values from {}: there is no map in it", path.display())]
    NoMap { path: PathBuf },
    #[error("there is no module '{0}' in these directories")]
    NoModule(String),
    #[error("cannot start")]
    Start(#[source] NoThreads),
}

/// Reads all modules and asks every hook for its configuration.
pub fn derive(question: &Question, environment: &Environment) -> Result<Answer, RightsError> {
    let look = |path: &Path| {
        let path = path.to_owned();
        move |source| RightsError::Look { path, source }
    };
    for dir in question.modules_dirs.iter().chain(&question.global_hooks_dir) {
        fs_err::read_dir(dir).map_err(look(dir))?;
    }
    let tmp = tempfile::tempdir().map_err(look(Path::new("the temporary directory")))?;
    let found = disk::read(&Layout {
        modules_dirs: question.modules_dirs.clone(),
        global_hooks_dir: question
            .global_hooks_dir
            .clone()
            .unwrap_or_else(|| tmp.path().to_owned()),
        unnumbered_order: 1,
        missing_values: MissingValues::NoValues,
        crd_filters: CRD_FILTERS.split(',').map(str::to_owned).collect(),
    });
    let is_there = |name: &String| found.modules.iter().any(|module| module.name.as_str() == name);
    if let Some(missing) = question.only.iter().find(|name| !is_there(name)) {
        return Err(RightsError::NoModule(missing.clone()));
    }
    let values = match &question.values {
        Some(path) => values(path)?,
        None => json!({}),
    };
    let offline = Offline {
        found: &found,
        environment,
        spawner: Spawner::new().map_err(|error| RightsError::Start(NoThreads::Spawner(error)))?,
        tmp: tmp.path(),
    };
    let mut deriver = Deriver {
        runtime: threads::runtime().map_err(RightsError::Start)?,
        offline: &offline,
        question,
        values,
        kinds: Kinds::built_in(),
        rights: Rights::default(),
        findings: found.problems.iter().map(told).collect(),
    };
    deriver.everything();
    let Deriver {
        rights, mut findings, ..
    } = deriver;
    for dir in question.modules_dirs.iter().chain(&question.global_hooks_dir) {
        let place = fs_err::canonicalize(dir).map_err(look(dir))?;
        for finding in &mut findings {
            finding.show_as_typed(&place, dir);
        }
    }
    Ok(Answer { rights, findings })
}

fn values(path: &Path) -> Result<Value, RightsError> {
    let path = path.to_owned();
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(RightsError::Look { path, source }),
    };
    match yaml::documents_v2(&text) {
        Ok(documents) => match documents.into_iter().next() {
            Some(values) if values.is_object() => Ok(values),
            _ => Err(RightsError::NoMap { path }),
        },
        Err(source) => Err(RightsError::Values { path, source }),
    }
}

struct Deriver<'a> {
    runtime: Runtime,
    offline: &'a Offline<'a>,
    question: &'a Question,
    values: Value,
    kinds: Kinds,
    rights: Rights,
    findings: Vec<Finding>,
}

/// The account with which the objects of a module are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hands {
    /// The operator's own account.
    Ours,
    /// The module's service account.
    Theirs,
}

impl Hands {
    fn of(module: &FoundModule) -> Self {
        match module.service_account {
            None => Self::Ours,
            Some(_) => Self::Theirs,
        }
    }
}

/// The rendered chart of one module.
struct Rendered<'a> {
    module: &'a FoundModule,
    objects: Vec<Value>,
}

impl Deriver<'_> {
    fn everything(&mut self) {
        let found = self.offline.found;
        for module in &found.modules {
            let faults = module.faults.iter().map(told);
            self.findings.extend(faults.map(|fault| Finding {
                message: about(&module.name, &fault.message),
                ..fault
            }));
            self.account(module);
            self.crds(module);
            self.claims(module);
        }
        self.global_claims();
        let rendered: Vec<Rendered<'_>> = found
            .modules
            .iter()
            .filter_map(|module| self.rendered(module))
            .collect();
        let all = || rendered.iter().flat_map(|rendered| &rendered.objects);
        for object in all().filter(|object| object["kind"] == "CustomResourceDefinition") {
            self.kinds.learn(object);
        }
        let roles = all().filter_map(installed::role).collect();
        for Rendered { module, objects } in &rendered {
            for object in objects {
                self.install(module, object, &roles);
            }
        }
        let charts = found.modules.iter().filter(|module| module.chart.is_some());
        for module in charts.filter(|module| Hands::of(module) == Hands::Ours) {
            self.look_ups(module);
        }
        for file in &found.global_hooks {
            self.hook(&Owner::Global, None, file);
        }
        for module in &found.modules {
            for file in &module.hooks {
                self.hook(&Owner::Module(module.name.clone()), Some(module), file);
            }
        }
        let made: BTreeSet<&str> = all()
            .filter(|object| object["kind"] == "Namespace")
            .filter_map(|object| object.pointer("/metadata/name")?.as_str())
            .collect();
        self.rights
            .lift(|name| made.contains(name) && !OF_KUBERNETES.contains(&name));
        let only = &self.question.only;
        if !only.is_empty() {
            let is_asked_for = |name: &str| name == GLOBAL_HOOKS || only.iter().any(|module| module == name);
            self.rights.keep(is_asked_for);
        }
    }

    /// Adds the rights for a module with a service account: the operator only needs to act as that account, and to read
    /// the module's objects.
    fn account(&mut self, module: &FoundModule) {
        if let Some(account) = &module.service_account {
            let token = Subject::one("", "serviceaccounts/token", account.as_str());
            let name = module.name.as_str();
            self.rights.allow(&Scope::Release, token, &["create"], name);
        }
    }

    fn crds(&mut self, module: &FoundModule) {
        for file in &module.crds {
            match crds::read(file) {
                Ok(crds) => {
                    for crd in crds {
                        self.kinds.learn(&crd.manifest);
                        let hands = Hands::of(module);
                        installed::crd(&crd.name, hands, module.name.as_str(), &mut self.rights);
                    }
                }
                Err(error) => self
                    .findings
                    .push(Finding::error(file, about(&module.name, Chain(&error)))),
            }
        }
    }

    fn claims(&mut self, module: &FoundModule) {
        match claimed::of_module(&module.path) {
            // The hooks of a module with a service account have the rights of that account.
            Ok(_) if Hands::of(module) == Hands::Theirs => {}
            Ok(claims) => self.claimed(&claims, module.name.as_str()),
            Err(mistake) => {
                let file = module.path.join(claimed::FILE);
                self.findings.push(Finding::error(file, about(&module.name, mistake)));
            }
        }
    }

    fn global_claims(&mut self) {
        let Some(dir) = &self.question.global_hooks_dir else {
            return;
        };
        match claimed::of_global_hooks(dir) {
            Ok(claims) => self.claimed(&claims, GLOBAL_HOOKS),
            Err(mistake) => {
                let file = dir.join(claimed::GLOBAL_FILE);
                self.findings
                    .push(Finding::error(file, format!("{GLOBAL_HOOKS}: {mistake}")));
            }
        }
    }

    fn claimed(&mut self, claims: &[Claim], needed_by: &str) {
        for claim in claims {
            claim.collect(&self.question.namespace, needed_by, &mut self.rights);
        }
    }

    fn rendered<'a>(&mut self, module: &'a FoundModule) -> Option<Rendered<'a>> {
        let chart = module.chart.filter(|_| !module.is_broken())?;
        let rendering = rendered::render(self.offline, module, chart, &self.question.namespace, &self.values);
        let (objects, finding) = self.runtime.block_on(rendering);
        self.findings.extend(finding);
        Some(Rendered { module, objects })
    }

    fn look_ups(&mut self, module: &FoundModule) {
        let (namespace, name) = (self.question.namespace.as_str(), module.name.as_str());
        let unclear = looked_up::collect(&module.path, &self.kinds, namespace, name, &mut self.rights);
        for (file, what) in unclear {
            let message = format!("a template looks up objects of a kind that is not known here: {what}");
            self.add_once(Finding::warning(file, about(&module.name, message)));
        }
    }

    fn install(&mut self, module: &FoundModule, object: &Value, roles: &installed::Roles) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            return;
        };
        let namespace = text("/metadata/namespace");
        let known = self.kinds.of_manifest(api_version, kind).cloned();
        let resource = known.unwrap_or_else(|| {
            let guessed = kinds::guess(api_version, kind, true);
            self.tell_guess(&module.name, &module.path.join("templates"), &guessed);
            guessed
        });
        let place = match namespace {
            _ if !resource.is_namespaced => Scope::Cluster,
            Some(namespace) => watched::place_of(namespace, &self.question.namespace),
            None => Scope::Release,
        };
        let name = module.name.as_str();
        match Hands::of(module) {
            Hands::Ours => installed::collect(object, &resource, &place, roles, name, &mut self.rights),
            Hands::Theirs => installed::seen(&resource, &place, name, &mut self.rights),
        }
        installed::explained(object, &resource, &place, name, &mut self.rights);
        for service in health_core::webhook_services(object) {
            let place = watched::place_of(&service.namespace, &self.question.namespace);
            installed::called(&place, name, &mut self.rights);
        }
    }

    fn hook(&mut self, owner: &Owner, module: Option<&FoundModule>, file: &HookFile) {
        let name = module.map_or(GLOBAL_HOOKS, |module| module.name.as_str());
        let asked = self
            .offline
            .ask(owner, module.map(|module| module.path.as_path()), file);
        let configs = match self.runtime.block_on(asked) {
            Ok(Said::Single(config)) => vec![config],
            Ok(Said::Several(listed)) => listed.hooks.into_iter().map(|named| named.config).collect(),
            Err(failure) => return self.findings.push(Finding::error(&file.path, failure)),
        };
        for config in &configs {
            let namespace = self.question.namespace.as_str();
            let guessed = watched::collect(config, &self.kinds, namespace, name, &mut self.rights);
            for resource in guessed {
                let finding = guess(name, &file.path, &resource);
                self.add_once(finding);
            }
        }
    }

    fn tell_guess(&mut self, module: &ModuleName, place: &Path, resource: &Resource) {
        let finding = guess(module.as_str(), place, resource);
        self.add_once(finding);
    }

    fn add_once(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

fn guess(
    name: &str,
    place: &Path,
    Resource {
        group, kind, plural, ..
    }: &Resource,
) -> Finding {
    let message = format!(
        "module '{name}': it is not known how objects of the kind '{kind}' are addressed: '{plural}' of the group '{group}' is \
         a guess; a CRD in a module would tell"
    );
    Finding::warning(place, message)
}

fn about(module: &ModuleName, what: impl std::fmt::Display) -> String {
    format!("module '{module}': {what}")
}
