//! `module reload`: reads the directory of one module again, checks it as `module lint` does, and hands it to the core.
//!
//! Must never hand over files that cannot be used: the module then goes on with the files of before.

use std::sync::Arc;

use addon_core::name::ModuleName;
use addon_core::operator::event::Event;
use addon_core::operator::query::{ConfigValuesQuery, Secrets};
use addon_core::values::merge::merge;
use values_schema::schema::{Kind, Schemas};

use super::findings::{Finding, Weight};
use super::offline::Offline;
use super::told::Outside;
use super::{inventory, lint};
use crate::blocking;
use crate::disk::{self, Found, FoundModule, Layout};
use crate::jobs::Tools;
use crate::jobs::catalogue::ModuleFiles;
use crate::jobs::editions::Editions;
use crate::serve::debug::reload::{Reloaded, Reloader, Unfit};
use crate::serve::{self, Loop, Unanswered};
use crate::settings::{Environment, Settings, Work};

/// Makes reloading available on the debug socket, if there are modules.
pub(super) fn offer(
    settings: &Settings,
    environment: &Environment,
    tools: &Arc<Tools>,
    editions: &Editions,
    outside: &Outside,
) {
    let Work::Modules(modules) = &settings.work else { return };
    let desk = Arc::new(Desk {
        layout: inventory::layout(modules.as_ref().clone()),
        environment: environment.clone(),
        tools: Arc::clone(tools),
        editions: editions.clone(),
        doors: outside.doors.clone(),
    });
    outside.reloader.get_or_init(|| {
        Reloader::new(move |name| {
            let desk = Arc::clone(&desk);
            Box::pin(async move { desk.reload(&name).await })
        })
    });
}

/// The parts that reading a module again needs.
struct Desk {
    layout: Layout,
    environment: Environment,
    tools: Arc<Tools>,
    editions: Editions,
    doors: Loop,
}

impl Desk {
    async fn reload(&self, name: &ModuleName) -> Result<Result<Reloaded, Unfit>, Unanswered> {
        let layout = self.layout.clone();
        let mut found = blocking::run(move || disk::read(&layout)).await;
        let Some(at) = found.modules.iter().position(|module| module.name == *name) else {
            return Ok(Err(self.absent(name)));
        };
        let module = found.modules.remove(at);
        let section = match self.section(name).await? {
            Some(section) => misfit(&module.schemas, name, &section),
            None => Ok(()),
        };
        let warnings = match section.and(self.judge(&found, &module).await) {
            Ok(warnings) => warnings,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let flag = found.flags.get(name).copied();
        let dir = module.path.clone();
        let edition = self.editions.keep(name, ModuleFiles::of(&module));
        let read = Event::ModuleRead(edition, Box::new(inventory::described(module, flag)));
        self.doors.post(read)?;
        Ok(Ok(Reloaded { dir, warnings }))
    }

    fn absent(&self, name: &ModuleName) -> Unfit {
        let dirs = self.layout.modules_dirs.iter().map(|dir| dir.display().to_string());
        Unfit::Absent {
            module: name.clone(),
            dirs: dirs.collect::<Vec<_>>().join(", "),
        }
    }

    /// The section of the ConfigMap that the module uses; none if the core does not know the module yet.
    async fn section(&self, name: &ModuleName) -> Result<Option<serde_json::Value>, Unanswered> {
        let query = ConfigValuesQuery {
            module: Some(name.clone()),
            with_global: false,
            secrets: Secrets::Shown,
        };
        Ok(serve::ask(&self.doors, query).await?.ok())
    }

    /// Looks for the mistakes that `module lint` finds. Returns the warnings if there is no mistake.
    async fn judge(&self, found: &Found, module: &FoundModule) -> Result<Vec<String>, Unfit> {
        let tmp = tempfile::tempdir().map_err(|error| Unfit::Unchecked(error.to_string()))?;
        let offline = Offline {
            found,
            environment: &self.environment,
            spawner: self.tools.spawner.clone(),
            tmp: tmp.path(),
        };
        let mut findings: Vec<Finding> = module.faults.iter().map(lint::told).collect();
        if findings.is_empty() {
            findings.extend(lint::hooks(&offline, module).await);
            findings.extend(lint::rendered::chart(&offline, module).await);
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

/// Whether the section that is in use keeps to the schema that was read.
fn misfit(schemas: &Schemas, name: &ModuleName, section: &serde_json::Value) -> Result<(), Unfit> {
    let key = name.values_key();
    let is_empty = section.as_object().is_none_or(serde_json::Map::is_empty);
    if is_empty || !schemas.has(Kind::Config) {
        return Ok(());
    }
    let whole = merge(schemas.defaults(Kind::Config), section).map_err(|error| error.to_string());
    let checked = whole.and_then(|whole| {
        let checked = schemas.check(Kind::Config, &key, &whole, None);
        checked.map_err(|invalid| invalid.listed(None))
    });
    checked.map_err(|mistake| Unfit::Section { key, mistake })
}
