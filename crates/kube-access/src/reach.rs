//! The way from settings to a cluster.
//!
//! Must never send a request.

use std::path::PathBuf;
use std::sync::Arc;

use settings::{Environment, Settings};
use telling::meters::Meters;

use crate::Cluster;
use crate::kubeconfig::{self, Address, ConnectError};

/// The server and the account that the settings name.
pub fn address(settings: &Settings, environment: &Environment) -> Address {
    Address {
        kube_config: settings.kube.config.clone(),
        context: settings.kube.context.clone(),
        server: settings.kube.server.clone(),
        home: environment.get("HOME").map(PathBuf::from),
    }
}

/// Connects for a command, which has no children. `None` if the namespace of the operator is not known.
pub async fn reach(settings: &Settings, environment: &Environment) -> Result<Option<Cluster>, ConnectError> {
    let address = address(settings, environment);
    let Some(namespace) = namespace(settings, &address)? else {
        return Ok(None);
    };
    let meters = Arc::new(Meters::new(&settings.metrics_prefix));
    Cluster::connect(&address, &namespace, None, meters).await.map(Some)
}

/// The namespace of the operator: from the settings, else from the kubeconfig.
pub fn namespace(settings: &Settings, address: &Address) -> Result<Option<String>, ConnectError> {
    match &settings.namespace {
        Some(namespace) => Ok(Some(namespace.clone())),
        None => kubeconfig::namespace(address),
    }
}
