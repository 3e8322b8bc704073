//! `module reload`: reads the directory of one module again, checks it as `module lint` does, and hands it to the core.
//!
//! Must never hand over files that cannot be used: the module then goes on with the files of before.

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::module::{Module, Origin};
use addon_core::operator::event::Event;
use addon_core::operator::query::{ConfigValuesQuery, ModuleReport, ModulesQuery, ReleaseValuesQuery, Secrets};
use addon_core::values::Store;
use addon_core::values::section::to_text;
use authoring::findings::{Finding, Weight};
use authoring::lint;
use authoring::offline::Offline;
use disk::{Found, FoundModule, Layout};
use jobs::catalogue::ModuleFiles;
use jobs::editions::Editions;
use listeners::{Loop, Unanswered};
use names::{ModuleName, Owner};
use report::Chain;
use serde_json::{Map, Value};
use settings::{Environment, Settings, Work};

use super::inventory;
use super::told::Outside;
use crate::dispatch::Tools;
use crate::serve::debug::reload::{Reloaded, Reloader, Unfit};

/// Makes reloading available on the debug socket, if there are modules. Returns the desk for other readers of modules.
pub(super) fn offer(
    settings: &Settings,
    environment: &Environment,
    tools: &Arc<Tools>,
    editions: &Editions,
    outside: &Outside,
) -> Option<Arc<Desk>> {
    let Work::Modules(modules) = &settings.work else {
        return None;
    };
    let desk = Arc::new(Desk {
        layout: inventory::layout(modules.as_ref().clone()),
        environment: environment.clone(),
        tools: Arc::clone(tools),
        editions: editions.clone(),
        doors: outside.doors.clone(),
    });
    let of_all = Arc::clone(&desk);
    outside.reloader.get_or_init(|| {
        Reloader::new(move |name| {
            let desk = Arc::clone(&desk);
            Box::pin(async move { desk.reload(&name).await })
        })
    });
    Some(of_all)
}

/// The parts that reading a module again needs.
pub(super) struct Desk {
    pub(super) layout: Layout,
    environment: Environment,
    pub(super) tools: Arc<Tools>,
    pub(super) editions: Editions,
    pub(super) doors: Loop,
}

impl Desk {
    pub(super) async fn reload(&self, name: &ModuleName) -> Result<Result<Reloaded, Unfit>, Unanswered> {
        let layout = self.layout.clone();
        let mut found = blocking::run(move || disk::read(&layout)).await;
        let Some(at) = found.modules.iter().position(|module| module.name == *name) else {
            return Ok(Err(self.absent(name)));
        };
        let module = found.modules.remove(at);
        let warnings = match self.judge(&found, &module).await {
            Ok(warnings) => warnings,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let (dir, files) = (module.path.clone(), ModuleFiles::of(&module));
        let flag = found.flags.get(name).copied();
        let (module, section) = (inventory::described(module, flag), self.section(name).await?);
        let judged = blocking::run(move || fits(&module, section.as_ref()).map(|()| module)).await;
        let module = match judged {
            Ok(module) => module,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let edition = self.editions.keep(name, files);
        self.doors
            .post(Event::ModuleRead(edition, Origin::Directory, Box::new(module)))?;
        Ok(Ok(Reloaded { dir, warnings }))
    }

    /// The values of the module's release, if its last run succeeded. Before that its hooks may not have set theirs.
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
    pub(super) async fn section(&self, name: &ModuleName) -> Result<Option<Value>, Unanswered> {
        let query = ConfigValuesQuery {
            module: Some(name.clone()),
            with_global: false,
            secrets: Secrets::Shown,
        };
        let section = listeners::ask(&self.doors, query).await?.ok();
        // Without a section the answer is null or an empty one.
        let is_empty = |section: &Value| section.is_null() || section.as_object().is_some_and(Map::is_empty);
        Ok(section.filter(|section| !is_empty(section)))
    }

    /// Looks for the mistakes that `module lint` finds, and renders the chart with the values that the module has now.
    /// Returns the warnings if there is no mistake.
    pub(super) async fn judge(&self, found: &Found, module: &FoundModule) -> Result<Vec<String>, Unfit> {
        let tmp = tempfile::tempdir().map_err(|error| Unfit::Unchecked(error.to_string()))?;
        let offline = Offline {
            found,
            environment: &self.environment,
            spawner: self.tools.ground.spawner.clone(),
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

/// Whether the values and the section that is in use fit the schemas that were read. Rules may take long.
pub(super) fn fits(module: &Module, section: Option<&Value>) -> Result<(), Unfit> {
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
