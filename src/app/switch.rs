//! Switches a module on or off for a person, by its flag in the ConfigMap.
//!
//! Objects that this would delete are shown before. A flag that another person has changed meanwhile is not written.

use addon_core::failure::Failure;
use blocking::threads::{self, NoThreads};
use helm_yaml::yaml;
use kube_access::Cluster;
use kube_access::kubeconfig::ConnectError;
use names::{ModuleName, NameError};
use objects::key;
use releases::revisions;
use settings::{ConfigurationError, Environment, Machine, Settings, StartArgs, Work};
use thiserror::Error;
use tokio::runtime::Runtime;

use super::edit::{self, Edit, failed};
use super::start::{self};

/// Why a module was not switched.
#[derive(Debug, Error)]
pub enum SwitchError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error("'{name}' is no name of a module")]
    Name { name: String, source: NameError },
    #[error("the namespace of the operator is not known")]
    NoNamespace,
    #[error("cannot address the cluster")]
    Connect(#[from] ConnectError),
    #[error("cannot start")]
    Start(#[source] NoThreads),
    #[error("{0}")]
    Cluster(Failure),
    #[error("there is no ConfigMap '{name}' in namespace '{namespace}'")]
    NoConfigMap { name: String, namespace: String },
    #[error("{key} was changed meanwhile by another writer, to {found}")]
    Changed { key: String, found: String },
    #[error("the ConfigMap is written to so often that nothing came of {attempts} attempts")]
    Busy { attempts: usize },
}

impl SwitchError {
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoNamespace => vec![settings::NAMESPACE_HINT.to_owned()],
            Self::NoConfigMap { .. } => {
                vec!["--namespace and --config-map name it; a missing ConfigMap must be created first".to_owned()]
            }
            Self::Connect(_) => vec!["--kube-config and --kube-context name the cluster".to_owned()],
            Self::Cluster(failure) => failure.hints.clone(),
            Self::Changed { .. } => vec!["look again, and repeat the command if it is still wanted".to_owned()],
            Self::Settings(_) | Self::Name { .. } | Self::Start(_) | Self::Busy { .. } => Vec::new(),
        }
    }
}

/// The planned edit and its effects.
#[derive(Debug)]
pub struct Plan {
    edit: Edit,
    config_map: String,
    cluster: Cluster,
    runtime: Runtime,
    /// The release that would be removed: its revision and its objects; none if no release would be removed.
    pub release: Option<(u32, Vec<String>)>,
}

impl Plan {
    /// Reads the cluster and plans the edit; changes nothing.
    pub fn new(args: &StartArgs, environment: &Environment, module: &str, wanted: bool) -> Result<Self, SwitchError> {
        let (module, settings, runtime, cluster) = reach(args, environment, module)?;
        let config_map = config_map(&settings);
        let data = edit::read(&runtime, &cluster, &config_map)?;
        let release = if wanted {
            None
        } else {
            runtime.block_on(release(&cluster, module.as_str()))?
        };
        let key = module.enabled_key();
        Ok(Self {
            edit: Edit {
                current: data.get(&key).cloned(),
                wanted: Some(if wanted { "true" } else { "false" }.to_owned()),
                key,
            },
            config_map,
            cluster,
            runtime,
            release,
        })
    }

    /// The edit of the flag.
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The ConfigMap's name and namespace, for people.
    pub fn place(&self) -> String {
        edit::place(&self.cluster, &self.config_map)
    }

    /// Writes the flag, unless it was changed since the plan was made.
    pub fn carry_out(&self) -> Result<(), SwitchError> {
        self.edit.carry_out(&self.runtime, &self.cluster, &self.config_map)
    }
}

/// The name of the ConfigMap; an operator of hooks without modules has none.
pub(super) fn config_map(settings: &Settings) -> String {
    match &settings.work {
        Work::Modules(modules) => modules.config_map.clone(),
        Work::Hooks(_) => String::new(),
    }
}

/// The cluster of a module, for a person's command.
pub(super) fn reach(
    args: &StartArgs,
    environment: &Environment,
    module: &str,
) -> Result<(ModuleName, Settings, Runtime, Cluster), SwitchError> {
    let module = ModuleName::parse(module).map_err(|source| SwitchError::Name {
        name: module.to_owned(),
        source,
    })?;
    let (settings, runtime, cluster) = reach_cluster(args, environment)?;
    Ok((module, settings, runtime, cluster))
}

/// The cluster, for a person's command.
pub(super) fn reach_cluster(
    args: &StartArgs,
    environment: &Environment,
) -> Result<(Settings, Runtime, Cluster), SwitchError> {
    let settings = Settings::check(args, environment, &Machine::this())?;
    let runtime = threads::runtime().map_err(SwitchError::Start)?;
    let cluster = runtime.block_on(start::reach(&settings, environment))?;
    let cluster = cluster.ok_or(SwitchError::NoNamespace)?;
    Ok((settings, runtime, cluster))
}

/// The revision and the objects of the release with this name, if it belongs to this operator.
async fn release(cluster: &Cluster, name: &str) -> Result<Option<(u32, Vec<String>)>, SwitchError> {
    let newest = revisions::newest_revision(cluster, name).await.map_err(failed)?;
    let Some(revision) = newest.filter(|revision| revision.newest.ours) else {
        return Ok(None);
    };
    let manifest = revisions::manifest(cluster, &revision).await.map_err(failed)?;
    // A manifest that is not YAML was never applied.
    let documents = yaml::documents_v2(&manifest).unwrap_or_default();
    let objects = key::keys_of(&documents).iter().map(ToString::to_string).collect();
    Ok(Some((revision.newest.revision, objects)))
}
