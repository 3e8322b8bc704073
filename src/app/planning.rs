//! Gives plans their outer world: the tools of the jobs, of which only those that ask are used, and files that are not in use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use addon_core::failure::Failure;
use addon_core::module::{Edition, Origin};
use addon_core::object::patch::Operation;
use addon_core::operator::effect::{HookRun, Job};
use addon_core::operator::event::{Event, Finished};
use addon_core::operator::policy::OnTrial;
use addon_core::operator::preview::Release;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use hooks::edits::{self, Objections};
use hooks::trial;
use intake::{Desk, Prepared, Unfit};
use jobs::catalogue::{Catalogue, ModuleFiles};
use jobs::unless;
use names::{ModuleName, Owner};
use plan::document::Refused;
use plan::planner::Planner;
use plan::world::{Files, NewFiles, Tried, World};
use releases::crds;
use releases::sync::Wanted;
use releases::sync::foresight::{self, Foreseen, Removal};
use report::Chain;
use serde_json::Value;
use sources::requests::Sources;
use tokio_util::sync::CancellationToken;

use super::shared::Outside;
use crate::dispatch::{self, Tools};

/// The number of a reading that the core has not seen.
const AHEAD: Edition = Edition(u64::MAX);

/// Makes plans available on the debug socket.
pub(super) fn offer(outside: &Outside, tools: &Arc<Tools>, desk: Option<Arc<Desk>>, stopping: &CancellationToken) {
    let world = Cluster {
        tools: Arc::clone(tools),
        desk,
        sources: Arc::clone(&outside.sources),
        stopping: stopping.clone(),
    };
    let planner = || Planner::new(outside.doors.clone(), world);
    outside.planner.get_or_init(planner);
}

/// The outer world of an operator that does not run: its supply brings the files from registries.
pub(super) fn world(tools: Arc<Tools>, stopping: &CancellationToken) -> impl World + use<> {
    Cluster {
        tools,
        desk: None,
        sources: Arc::default(),
        stopping: stopping.clone(),
    }
}

/// A patch in one line: the operation and the object. Its contents may be secret.
fn line(patch: &Operation) -> String {
    let document = patch.to_document();
    let object = document.get("object").unwrap_or(&document);
    let word = |path: &str| object.pointer(path).and_then(Value::as_str);
    let name = word("/metadata/name").or_else(|| word("/name")).unwrap_or_default();
    let namespace = word("/metadata/namespace").or_else(|| word("/namespace"));
    let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!(
        "{} {} {namespace}{name}",
        patch.name().as_str(),
        word("/kind").unwrap_or_default()
    )
}

/// The cluster and the programs of modules. During a stop a waiting client gets an error.
#[derive(Debug)]
struct Cluster {
    tools: Arc<Tools>,
    /// Reads modules; none for hooks without modules.
    desk: Option<Arc<Desk>>,
    sources: Arc<OnceLock<Sources>>,
    stopping: CancellationToken,
}

impl Cluster {
    /// The differences of other modules directories from those in use.
    async fn directories(&self, modules: &[PathBuf], global_hooks: Option<PathBuf>) -> Result<NewFiles, String> {
        let desk = self
            .desk
            .as_ref()
            .ok_or("hooks without modules have no modules directories")?;
        let differences = desk.differences(modules.to_vec(), global_hooks).await;
        let differences = differences.map_err(|error| Chain(&error).to_string())?;
        let mut files = NewFiles {
            gone: differences.gone.iter().map(ToString::to_string).collect(),
            ..NewFiles::default()
        };
        files.refused.extend(differences.unfit.iter().map(refused));
        let flags = differences.other_flags.iter();
        files
            .left_out
            .extend(flags.map(|name| format!("the flag of module '{name}', which comes from a registry, differs")));
        files.global_values = differences.global_values;
        if differences.has_other_global_hooks {
            files
                .left_out
                .push("the global hooks differ: a plan tries those in use".to_owned());
        }
        let directory = |prepared: Prepared| (prepared, Origin::Directory);
        self.take_up(&mut files, differences.modules.into_iter().map(directory));
        Ok(files)
    }

    /// Other versions of modules with a source.
    async fn versions(&self, versions: &BTreeMap<ModuleName, String>) -> Result<NewFiles, String> {
        let sources = self.sources.get().ok_or("this replica follows no sources of modules")?;
        let mut read = Vec::new();
        let mut files = NewFiles::default();
        for (module, version) in versions {
            let found = sources.read(module, version).await;
            read.push(found.map_err(|reason| format!("module '{module}', version {version}: {reason}"))?);
        }
        self.take_up(&mut files, read);
        Ok(files)
    }

    /// Makes the events by which the core takes these modules up, and the world in which they have these files.
    fn take_up(&self, files: &mut NewFiles, modules: impl IntoIterator<Item = (Prepared, Origin)>) {
        let mut catalogue = Catalogue::clone(&self.tools.ground.catalogue.borrow());
        for (prepared, origin) in modules {
            let Prepared {
                module,
                files: new,
                warnings,
            } = prepared;
            let known = catalogue.module(&module.name).ok();
            let warnings = warnings
                .iter()
                .map(|warning| format!("\n            warning: {warning}"));
            let told = words(known, &new) + &warnings.collect::<String>();
            files.told.insert(module.name.to_string(), told);
            catalogue.take_up(&module.name, new);
            files.events.push(Event::ModuleRead(AHEAD, origin, Box::new(module)));
        }
        files.world = Some(Arc::new(Self {
            tools: Arc::new(self.tools.with(catalogue)),
            desk: None,
            sources: Arc::default(),
            stopping: self.stopping.clone(),
        }));
    }
}

fn refused((module, unfit): (&ModuleName, &Unfit)) -> Refused {
    Refused {
        name: module.to_string(),
        reason: format!(
            "a start would use its files, and they have a fault, so that the plan leaves them out: {unfit}"
        ),
    }
}

/// The new files of a module: their place, and the version of the chart if it is another.
fn words(known: Option<&ModuleFiles>, new: &ModuleFiles) -> String {
    let version = |files: &ModuleFiles| files.version.clone().unwrap_or_else(|| "none".to_owned());
    let dir = new.dir.display();
    match known {
        None => format!("{dir}, version {}", version(new)),
        Some(known) if known.version == new.version => format!("{dir}, version {} as before", version(new)),
        Some(known) => format!("{dir}, version {} after {}", version(new), version(known)),
    }
}

impl World for Cluster {
    fn ask(&self, job: Job) -> BoxFuture<'_, Finished> {
        dispatch::run(job, Arc::clone(&self.tools), self.stopping.child_token()).boxed()
    }

    fn try_out(&self, run: HookRun) -> BoxFuture<'_, Result<Option<Tried>, Failure>> {
        async move {
            let tried = trial::try_out(&self.tools.hooks, run, &self.stopping).await?;
            Ok(tried.map(|tried| Tried {
                patches: tried.objects.iter().map(line).collect(),
                ran: tried.ran,
            }))
        }
        .boxed()
    }

    fn foresee<'a>(&'a self, release: &'a Release) -> BoxFuture<'a, Result<Foreseen, Failure>> {
        let wanted = Wanted {
            values: &release.values,
            asked: &release.asked,
            maintenance: release.maintenance,
            config: release.config,
            unhealthy: release.unhealthy.clone(),
        };
        let vetting = release.vetting.clone();
        async move {
            let tools = self.tools.releases()?;
            foresight::foresee(tools, &release.module, wanted, vetting, &self.stopping).await
        }
        .boxed()
    }

    fn foresee_removal<'a>(&'a self, release: &'a str) -> BoxFuture<'a, Result<Option<Removal>, Failure>> {
        async move { foresight::foresee_removal(self.tools.releases()?, release, &self.stopping).await }.boxed()
    }

    fn foresee_crds<'a>(
        &'a self,
        module: &'a ModuleName,
        on_trial: OnTrial,
    ) -> BoxFuture<'a, Result<crds::Foreseen, Failure>> {
        async move { unless(&self.stopping, crds::foresee(self.tools.releases()?, module, on_trial)).await }.boxed()
    }

    fn check<'a>(&'a self, sections: &'a [(Owner, Value)]) -> BoxFuture<'a, Objections> {
        edits::objections(&self.tools.hooks, sections, &self.stopping).boxed()
    }

    fn read<'a>(&'a self, files: &'a Files) -> BoxFuture<'a, Result<NewFiles, String>> {
        match files {
            Files::Directories { modules, global_hooks } => self.directories(modules, global_hooks.clone()).boxed(),
            Files::Versions(versions) => self.versions(versions).boxed(),
        }
    }
}
