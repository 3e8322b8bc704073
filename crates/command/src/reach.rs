//! The way from the flags of a command to the cluster.
//!
//! Must never send a request: the caller asks.

use blocking::threads::{self, NoThreads};
use kube_access::error::RequestError;
use kube_access::kubeconfig::ConnectError;
use kube_access::{Cluster, reach};
use names::{ModuleName, NameError};
use settings::{ConfigurationError, Environment, Machine, Settings, StartArgs};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::Hinted;

/// Why the cluster cannot be asked.
#[derive(Debug, Error)]
pub enum ReachError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error("'{name}' is no name of a module")]
    Name { name: String, source: NameError },
    #[error("the namespace of the operator is not known")]
    NoNamespace,
    #[error("cannot address the cluster")]
    Connect(#[from] ConnectError),
    #[error("cannot start")]
    Start(#[from] NoThreads),
}

impl Hinted for ReachError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoNamespace => vec![settings::NAMESPACE_HINT.to_owned()],
            Self::Connect(_) => vec!["--kube-config and --kube-context name the cluster".to_owned()],
            Self::Settings(_) | Self::Name { .. } | Self::Start(_) => Vec::new(),
        }
    }
}

/// The owner of the rights of a command that asks the cluster itself.
const PERSON: &str = "the user of the kubeconfig";

/// Why the cluster did not answer a command that only reads.
#[derive(Debug, Error)]
pub enum AskError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Hinted for AskError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reach(error) => error.hints(),
            Self::Request(error) => error.hint(PERSON).into_iter().collect(),
        }
    }
}

/// The cluster of the settings.
pub async fn cluster(settings: &Settings, environment: &Environment) -> Result<Cluster, ReachError> {
    let cluster = reach::reach(settings, environment).await?;
    cluster.ok_or(ReachError::NoNamespace)
}

/// The cluster of the arguments, with the settings and a runtime for requests.
pub fn with_runtime(args: &StartArgs, environment: &Environment) -> Result<(Settings, Runtime, Cluster), ReachError> {
    let settings = Settings::check(args, environment, &Machine::this())?;
    let runtime = threads::runtime()?;
    let cluster = runtime.block_on(cluster(&settings, environment))?;
    Ok((settings, runtime, cluster))
}

/// The same for a command about one module, with its name.
pub fn with_module(
    args: &StartArgs,
    environment: &Environment,
    module: &str,
) -> Result<(ModuleName, Settings, Runtime, Cluster), ReachError> {
    let module = ModuleName::parse(module).map_err(|source| ReachError::Name {
        name: module.to_owned(),
        source,
    })?;
    let (settings, runtime, cluster) = with_runtime(args, environment)?;
    Ok((module, settings, runtime, cluster))
}
