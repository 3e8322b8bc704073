//! Switches a module on or off for a person: its flag in the ConfigMap, and nothing else.
//!
//! What a switch would delete is told before; a flag that somebody else has changed meanwhile is left alone.

use addon_core::failure::Failure;
use addon_core::name::{ModuleName, NameError};
use addon_core::operator::event::{ConfigRead, Saved};
use addon_core::yaml;
use thiserror::Error;
use tokio::runtime::Runtime;

use super::start::{self, StartError};
use crate::cluster::Cluster;
use crate::cluster::drift;
use crate::cluster::kubeconfig::ConnectError;
use crate::settings::{ConfigurationError, Environment, Machine, Settings, StartArgs, Work};

/// Somebody may write to another key at the same moment.
const ATTEMPTS: usize = 5;

/// Why a module was not switched.
#[derive(Debug, Error)]
pub enum SwitchError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error("'{name}' is no name of a module")]
    Name { name: String, source: NameError },
    #[error("nobody says in which namespace the operator works")]
    NoNamespace,
    #[error("cannot address the cluster")]
    Connect(#[from] ConnectError),
    #[error("cannot start")]
    Start(#[source] StartError),
    #[error("{0}")]
    Cluster(Failure),
    #[error("there is no ConfigMap '{name}' in namespace '{namespace}'")]
    NoConfigMap { name: String, namespace: String },
    #[error("{key} was changed by somebody else meanwhile, to {found}")]
    Changed { key: String, found: String },
    #[error("the ConfigMap is written to so often that nothing came of {ATTEMPTS} attempts")]
    Busy,
}

impl SwitchError {
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoNamespace => vec![crate::settings::NAMESPACE_HINT.to_owned()],
            Self::NoConfigMap { .. } => {
                vec!["--namespace and --config-map say which one; a missing one has to be created first".to_owned()]
            }
            Self::Connect(_) => vec!["--kube-config and --kube-context say which cluster".to_owned()],
            Self::Cluster(failure) => failure.hints.clone(),
            Self::Changed { .. } => vec!["look again, and repeat the command if it is still wanted".to_owned()],
            Self::Settings(_) | Self::Name { .. } | Self::Start(_) | Self::Busy => Vec::new(),
        }
    }
}

/// What is to be done, and what follows from it.
#[derive(Debug)]
pub struct Plan {
    module: ModuleName,
    wanted: bool,
    /// What the flag says now, if it is there.
    current: Option<String>,
    config_map: String,
    cluster: Cluster,
    runtime: Runtime,
    /// The release that goes with it: its revision and its objects.
    pub release: Option<(u32, Vec<String>)>,
}

impl Plan {
    /// Looks at the cluster; changes nothing.
    pub fn new(args: &StartArgs, environment: &Environment, module: &str, wanted: bool) -> Result<Self, SwitchError> {
        let (module, settings, runtime, cluster) = reach(args, environment, module)?;
        let config_map = match &settings.work {
            Work::Modules(modules) => modules.config_map.clone(),
            Work::Hooks(_) => String::new(),
        };
        let data = match runtime.block_on(cluster.read_config(&config_map)).map_err(failed)? {
            ConfigRead::Present {
                data,
                version: _,
                provenance: _,
            } => data,
            ConfigRead::Missing => return Err(missing(&config_map, &cluster)),
        };
        let release = if wanted {
            None
        } else {
            runtime.block_on(release(&cluster, module.as_str()))?
        };
        Ok(Self {
            current: data.get(&module.enabled_key()).cloned(),
            module,
            wanted,
            config_map,
            cluster,
            runtime,
            release,
        })
    }

    /// The flag says it already.
    pub fn is_done(&self) -> bool {
        self.current.as_deref() == Some(self.text())
    }

    /// The key of the flag.
    pub fn key(&self) -> String {
        self.module.enabled_key()
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        let (namespace, server) = (self.cluster.namespace(), self.cluster.server());
        format!("ConfigMap '{}' in namespace '{namespace}' of {server}", self.config_map)
    }

    /// What it says, for people.
    pub fn current(&self) -> String {
        let current = self.current.as_deref();
        current.map_or_else(|| "not there".to_owned(), |current| format!("'{current}'"))
    }

    /// What it will say.
    pub fn text(&self) -> &'static str {
        if self.wanted { "true" } else { "false" }
    }

    /// Writes the flag, unless somebody else has changed it since the plan was made.
    pub fn carry_out(&self) -> Result<(), SwitchError> {
        let (key, base) = (self.key(), self.current.as_deref());
        for _ in 0..ATTEMPTS {
            let save = self
                .cluster
                .save_config(&self.config_map, &key, self.text().to_owned(), base, false);
            match self.runtime.block_on(save).map_err(failed)? {
                Saved::Written { .. } => return Ok(()),
                Saved::Conflict(ConfigRead::Missing) => return Err(missing(&self.config_map, &self.cluster)),
                Saved::Conflict(ConfigRead::Present {
                    data,
                    version: _,
                    provenance: _,
                }) => {
                    let found = data.get(&key).map(String::as_str);
                    if found != base {
                        let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("'{found}'"));
                        return Err(SwitchError::Changed { key, found });
                    }
                }
            }
        }
        Err(SwitchError::Busy)
    }
}

/// The cluster of a module, for a command that a person gave.
pub(super) fn reach(
    args: &StartArgs,
    environment: &Environment,
    module: &str,
) -> Result<(ModuleName, Settings, Runtime, Cluster), SwitchError> {
    let module = ModuleName::parse(module).map_err(|source| SwitchError::Name {
        name: module.to_owned(),
        source,
    })?;
    let settings = Settings::check(args, environment, &Machine::this())?;
    let runtime = start::runtime().map_err(SwitchError::Start)?;
    let cluster = runtime.block_on(start::reach(&settings, environment))?;
    let cluster = cluster.ok_or(SwitchError::NoNamespace)?;
    Ok((module, settings, runtime, cluster))
}

fn failed(error: impl Into<Failure>) -> SwitchError {
    SwitchError::Cluster(error.into())
}

fn missing(config_map: &str, cluster: &Cluster) -> SwitchError {
    SwitchError::NoConfigMap {
        name: config_map.to_owned(),
        namespace: cluster.namespace().to_owned(),
    }
}

/// The release of that name and what it consists of, if it is ours.
async fn release(cluster: &Cluster, name: &str) -> Result<Option<(u32, Vec<String>)>, SwitchError> {
    let newest = cluster.newest_revision(name).await.map_err(failed)?;
    let Some(revision) = newest.filter(|revision| revision.newest.ours) else {
        return Ok(None);
    };
    let manifest = cluster.manifest(&revision).await.map_err(failed)?;
    // What is no YAML was never applied.
    let documents = yaml::documents_v2(&manifest).unwrap_or_default();
    let objects = drift::keys_of(&documents).iter().map(ToString::to_string).collect();
    Ok(Some((revision.newest.revision, objects)))
}
