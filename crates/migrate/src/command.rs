//! The command `migrate from`: reads the cluster, shows the plan, and writes it as a folder.
//!
//! Must never write to the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use child::Spawner;
use clap::{Args, Subcommand, ValueEnum};
use command::reach::{self, ReachError};
use command::{Caller, CommandError, Hinted, print};
use helm_yaml::yaml;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use names::{GLOBAL_KEY, ModuleName};
use serde_json::{Value, json};
use settings::StartArgs;
use thiserror::Error;

use crate::folder::{self, Folder, FolderError};
use crate::outline::{Left, Origin, Outline, Place, Unfit, ValuesSource, of_helm};
use crate::plan::{self, Planned};
use crate::read::Reader;
use crate::render::Renderer;
use crate::shown::Plan;
use crate::steps::{CONFIG_MAP, Handover, STEPS};
use crate::taking::{Choices, NotTaken, Taken, Taking};
use crate::{argocd, contents, flux};

/// The default namespace of the operator.
const OPERATOR: &str = "addon-operator";
/// The name of the operator's ConfigMap.
const CONFIG_MAP_NAME: &str = "addon-operator";
/// The directory of modules in the folder.
const MODULES: &str = "modules";
/// The exit code if releases are not taken over.
const SOME_LEFT: u8 = 2;

#[derive(Debug, Args)]
pub struct Migrate {
    #[command(subcommand)]
    command: MigrateCommand,
}

#[derive(Debug, Subcommand)]
enum MigrateCommand {
    /// Plan the hand-over of releases: modules, a ConfigMap and commands. The cluster is only read
    #[command(
        after_help = "Exit codes:\n  0  all releases can be taken over\n  1  failed\n  2  some are not taken over; the plan names them"
    )]
    From(Box<Request>),
}

#[derive(Debug, Args)]
struct Request {
    /// Program that looks after the releases now
    #[arg(value_enum)]
    origin: Origin,
    /// Names of releases, HelmReleases or Applications, as NAME or NAMESPACE/NAME [default: all]
    releases: Vec<String>,
    /// Folder for the plan: modules, configmap.yaml and STEPS.md; without it the plan is only shown
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Namespace of the releases, HelmReleases or Applications [default: the kubeconfig's]
    #[arg(long, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Read all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Namespace of the operator that takes over
    #[arg(long, value_name = "NAME", default_value = OPERATOR)]
    operator_namespace: String,
    /// Directory with charts as `helm pull` leaves them: NAME-VERSION.tgz or NAME [default: only the charts in records]
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
    /// Take over releases whose modules would change objects, too
    #[arg(long)]
    accept_differences: bool,
    /// Write secret values into configmap.yaml, too; without it the plan names them
    #[arg(long)]
    with_secrets: bool,
    /// Format of the plan
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
    /// Path of the kubeconfig file [env: KUBE_CONFIG, then KUBECONFIG]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kube_config: Option<String>,
    /// Context of the kubeconfig [env: KUBE_CONTEXT] [default: its current context]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    kube_context: Option<String>,
}

/// The formats of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
    Yaml,
}

/// Why there is no plan.
#[derive(Debug, Error)]
enum MigrateError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("{0}")]
    Cluster(Failure),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("there is no release '{0}'")]
    Unknown(String),
    #[error("cannot prepare helm")]
    Helm(#[source] io::Error),
    #[error("the directory of charts {} cannot be read", .0.display())]
    Charts(PathBuf),
}

impl Hinted for MigrateError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reach(error) => error.hints(),
            Self::Cluster(failure) => failure.hints.clone(),
            Self::Unknown(_) => vec!["--all-namespaces looks into all namespaces".to_owned()],
            Self::Folder(_) | Self::Helm(_) | Self::Charts(_) => Vec::new(),
        }
    }
}

/// The releases that were found, before their contents are read.
#[derive(Debug, Default)]
struct Found {
    outlines: Vec<Outline>,
    left: Vec<Left>,
    needless: Vec<Left>,
}

impl Migrate {
    /// Runs the command, and returns its exit code.
    pub fn run(self, caller: &Caller<'_>) -> Result<u8, CommandError> {
        let MigrateCommand::From(from) = self.command;
        let form = from.output;
        let plan = from.plan(caller)?;
        print(&match form {
            Form::Text => plan.text(),
            Form::Json => plan.json(),
            Form::Yaml => plan.yaml(),
        })?;
        Ok(if plan.left.is_empty() { 0 } else { SOME_LEFT })
    }
}

impl Request {
    fn plan(self, caller: &Caller<'_>) -> Result<Plan, MigrateError> {
        // Refused before anything is read.
        let folder = Folder::begin(self.output_dir.as_deref())?;
        if let Some(charts) = self.charts.as_ref().filter(|charts| !charts.is_dir()) {
            return Err(MigrateError::Charts(charts.clone()));
        }
        let mut args = StartArgs {
            namespace: self.namespace.clone(),
            ..StartArgs::default()
        };
        args.shared.kube_config.clone_from(&self.kube_config);
        args.shared.kube_context.clone_from(&self.kube_context);
        let (_, runtime, cluster) = reach::with_runtime(&args, caller.environment)?;
        let spawner = Spawner::new().map_err(MigrateError::Helm)?;
        let renderer =
            Renderer::new(caller.environment, &self.operator_namespace, spawner).map_err(MigrateError::Helm)?;
        let plan = runtime.block_on(async {
            let reader = Reader::new(cluster).await.map_err(MigrateError::Cluster)?;
            Box::pin(self.taken(&reader, &renderer, folder.path())).await
        })?;
        self.write(&plan, folder.path())?;
        folder.finish()?;
        Ok(plan)
    }

    async fn taken(&self, reader: &Reader, renderer: &Renderer, folder: &Path) -> Result<Plan, MigrateError> {
        let namespace = (!self.all_namespaces).then(|| reader.cluster.namespace().to_owned());
        let (found, beside) = self
            .found(reader, namespace.as_deref())
            .await
            .map_err(MigrateError::Cluster)?;
        let Found {
            outlines,
            mut left,
            needless,
        } = self.chosen(found)?;
        let (planned, unnamed) = plan::plan(outlines, &self.operator_namespace, &beside);
        left.extend(unnamed);
        let choices = Choices {
            charts: self.charts.clone(),
            accepts_differences: self.accept_differences,
            with_secrets: self.with_secrets,
        };
        let modules = folder.join(MODULES);
        let global = self.global(reader).await.map_err(MigrateError::Cluster)?;
        let taking = Taking {
            reader,
            renderer,
            choices: &choices,
            operator: &self.operator_namespace,
            global: &global,
            modules: &modules,
        };
        let mut plan = Plan {
            taken: Vec::new(),
            left,
            needless,
        };
        each(&taking, planned, &mut plan).await?;
        Ok(plan)
    }

    /// The releases, and the names of those in the operator's namespace.
    async fn found(&self, reader: &Reader, namespace: Option<&str>) -> Result<(Found, BTreeSet<String>), Failure> {
        let operator = &self.operator_namespace;
        // A HelmRelease may keep its record in another namespace.
        let within = namespace.filter(|_| self.origin == Origin::Helm);
        let mut records = reader.records(within).await?;
        if within.is_some_and(|within| within != operator) {
            records.extend(reader.records(Some(operator)).await?);
        }
        let beside = records.keys().filter(|place| place.namespace == *operator);
        let beside = beside.map(|place| place.name.clone()).collect();
        let mut found = Found::default();
        match self.origin {
            Origin::Helm => {
                found.left = reader.elsewhere(namespace).await?;
                let asked = |place: &&Place| namespace.is_none_or(|namespace| place.namespace == namespace);
                for place in records.keys().filter(asked) {
                    found.add(place, of_helm(place, &records[place]));
                }
            }
            Origin::Flux => {
                for object in reader.objects(flux::GROUP, flux::KIND, namespace).await? {
                    found.add(&flux::place_of(&object), flux::outline(&object, &records));
                }
            }
            Origin::Argocd => {
                for object in reader.objects(argocd::GROUP, argocd::KIND, namespace).await? {
                    let outline = argocd::outline(&object).map_err(Unfit::Refused);
                    found.add(&flux::place_of(&object), outline);
                }
            }
        }
        Ok((found, beside))
    }

    /// The global values in the operator's ConfigMap; none if there is no operator yet.
    async fn global(&self, reader: &Reader) -> Result<Value, Failure> {
        let source = ValuesSource {
            is_secret: false,
            place: Place::new(&self.operator_namespace, CONFIG_MAP_NAME),
            key: GLOBAL_KEY.to_owned(),
            target: None,
        };
        let mut global = json!({});
        if let Some(text) = reader.values(&source).await? {
            contents::add_public(&mut global, &source, &text).map_err(|error| Failure::new(Class::Invalid, error))?;
        }
        Ok(global)
    }

    /// The releases that the person has named.
    fn chosen(&self, mut found: Found) -> Result<Found, MigrateError> {
        if self.releases.is_empty() {
            return Ok(found);
        }
        let is_named = |namespace: &str, name: &str, said: &str| said == name || said == format!("{namespace}/{name}");
        for said in &self.releases {
            let in_left = |list: &[Left]| list.iter().any(|left| is_named(&left.namespace, &left.name, said));
            let mut outlines = found.outlines.iter().map(|outline| &outline.place);
            let is_known = outlines.any(|place| is_named(&place.namespace, &place.name, said));
            if !is_known && !in_left(&found.left) && !in_left(&found.needless) {
                return Err(MigrateError::Unknown(said.clone()));
            }
        }
        let is_asked = |namespace: &str, name: &str| self.releases.iter().any(|said| is_named(namespace, name, said));
        found
            .outlines
            .retain(|outline| is_asked(&outline.place.namespace, &outline.place.name));
        for list in [&mut found.left, &mut found.needless] {
            list.retain(|left| is_asked(&left.namespace, &left.name));
        }
        Ok(found)
    }

    fn write(&self, plan: &Plan, folder: &Path) -> Result<(), FolderError> {
        let handover = Handover {
            origin: self.origin,
            operator: &self.operator_namespace,
            taken: &plan.taken,
            left: &plan.left,
        };
        folder::write_private(
            &folder.join(CONFIG_MAP),
            &config_map(&plan.taken, &self.operator_namespace),
        )?;
        folder::write(folder, &[(STEPS.to_owned(), handover.page().into_bytes())].into())
    }
}

impl Found {
    fn add(&mut self, place: &Place, outline: Result<Outline, Unfit>) {
        match outline {
            Ok(outline) => self.outlines.push(outline),
            Err(Unfit::Needless(reason)) => self.needless.push(Left::new(place, reason)),
            Err(Unfit::Refused(reason)) => self.left.push(Left::new(place, reason)),
        }
    }
}

/// Takes one release after the other, so that the contents of one alone are in memory.
async fn each(taking: &Taking<'_>, planned: Vec<Planned>, plan: &mut Plan) -> Result<(), MigrateError> {
    let mut done = BTreeMap::<Place, ModuleName>::new();
    for planned in planned {
        let (place, module) = (planned.outline.place.clone(), planned.module.clone());
        match Box::pin(taking.take(planned, &done)).await {
            Ok(taken) => {
                done.insert(place, module);
                plan.taken.push(taken);
            }
            Err(NotTaken::Left(reason)) => plan.left.push(Left::new(&place, reason)),
            Err(NotTaken::Needless(reason)) => plan.needless.push(Left::new(&place, reason)),
            Err(NotTaken::Failed(failure)) => return Err(MigrateError::Cluster(failure)),
            Err(NotTaken::Folder(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The ConfigMap with a section and a flag for each module.
fn config_map(taken: &[Taken], namespace: &str) -> String {
    let mut data = BTreeMap::new();
    for taken in taken {
        data.insert(taken.module.enabled_key(), "true".to_owned());
        // Without a section the schema would not miss the secrets.
        let is_empty = taken.section.as_object().is_none_or(serde_json::Map::is_empty);
        if !is_empty || !taken.secrets.is_empty() {
            data.insert(taken.module.values_key(), yaml::to_string(&taken.section));
        }
    }
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG_MAP_NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    };
    yaml::to_string(&serde_json::to_value(config_map).unwrap_or_default())
}
