//! The connection to the cluster: one kubeconfig for our client, helm and the hooks' children, and the report of a
//! failed request. The verbs that we need are listed in the files that use them.
//!
//! Never retries: only the watch of the `ConfigMap` recovers by itself, and a hook's change of an object is made again
//! when another writer was faster. Never deletes an object, unless a hook asks for it.

pub mod accounts;
pub mod adoption;
pub mod apis;
pub mod config_map;
pub mod crds;
pub mod deployment;
pub mod difference;
pub mod drift;
pub mod endpoints;
pub mod error;
pub mod events;
mod guard;
pub mod holder;
pub mod installation;
pub mod kinds;
pub mod kubeconfig;
pub mod leader;
pub mod lease;
pub mod monitor;
mod namespaces;
mod pace;
pub mod patch;
pub mod pods;
mod private;
pub mod pull_secrets;
pub mod releases;
pub mod state;
mod substitutes;
mod unwatched;
pub mod webhooks;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::ClientBuilder;
use kube::{Api, Client, Config};
use tokio::sync::Mutex;

use crate::meters::Meters;
use crate::meters::requests::Requests;
use crate::process::warrant::Warrant;
use crate::settings::{KubeSettings, RateLimit};

use accounts::Accounts;
use apis::Apis;
use error::{Attempt, RequestError};
use kubeconfig::{Address, ConnectError, Settled};
use pace::Pace;
use state::known::Known;
use substitutes::Lacking;

/// An API server that has not answered by then is not reachable for us.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to be made. Shorter than kube's own half a minute: the server is near.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One cluster and the namespace that we work in. Clones share everything.
#[derive(Clone)]
pub struct Cluster {
    /// The client for requests.
    client: Client,
    /// The same without a limit.
    open: Client,
    /// How long an answer may take.
    patience: Duration,
    namespace: String,
    server: String,
    kubeconfig: Option<PathBuf>,
    uses_plugin: bool,
    /// Until when anything is written.
    warrant: Warrant,
    /// The line that requests stand in, if there is one.
    pace: Option<Pace>,
    /// The service account that this is, if it is not the operator's own.
    account: Option<Arc<str>>,
    /// Others that can be acted as; none where no kubeconfig is written.
    accounts: Option<Arc<Accounts>>,
    apis: Arc<Mutex<apis::Seen>>,
    known_state: Known,
    /// The rights that we do without.
    lacking: Lacking,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Reads the address and writes the private kubeconfig into the directory, if there is one. No request is made: a cluster that
    /// cannot be reached now is not an error of the start. The meters count the requests.
    pub async fn connect(
        address: &Address,
        namespace: &str,
        dir: Option<&Path>,
        meters: Arc<Meters>,
    ) -> Result<Self, ConnectError> {
        let found = kubeconfig::find(address)?;
        let Settled {
            config,
            private,
            ca_file,
        } = found.settle().await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let kubeconfig = dir.map(|dir| private.write(dir)).transpose()?;
        let uses_plugin = private.uses_plugin();
        let client = client(config, namespace, &server, Arc::clone(&meters))?;
        let accounts = dir.map(|dir| Arc::new(Accounts::new(private, ca_file, dir, meters)));
        Ok(Self {
            open: client.clone(),
            client,
            warrant: Warrant::default(),
            pace: None,
            account: None,
            accounts,
            patience: REQUEST_TIMEOUT,
            namespace: namespace.to_owned(),
            server,
            kubeconfig,
            uses_plugin,
            apis: Arc::default(),
            known_state: Known::default(),
            lacking: Lacking::default(),
        })
    }

    /// The same cluster, asked no faster than that.
    #[must_use]
    pub fn limited(&self, limit: RateLimit) -> Self {
        Self {
            pace: Pace::of(limit),
            ..self.clone()
        }
        .paced()
    }

    /// The same cluster, to which nothing except the lease is written once this has run out.
    #[must_use]
    pub fn under(&self, warrant: &Warrant) -> Self {
        Self {
            warrant: warrant.clone(),
            ..self.clone()
        }
        .paced()
    }

    fn paced(self) -> Self {
        let guarded = guard::before(&self.open, &self.warrant);
        let client = match &self.pace {
            Some(pace) => pace.before(&guarded),
            None => guarded,
        };
        Self { client, ..self }
    }

    /// The same limits for another client: it shares our rate limit and its queue.
    #[must_use]
    fn as_patient_as(&self, other: &Self) -> Self {
        Self {
            warrant: other.warrant.clone(),
            pace: other.pace.clone(),
            patience: other.patience,
            ..self.clone()
        }
        .paced()
    }

    /// The same cluster as object patches are to reach it.
    #[must_use]
    pub fn patching(&self, kube: &KubeSettings) -> Self {
        self.limited(kube.patch_limit).within(kube.patch_timeout)
    }

    /// The same cluster, with this timeout for answers.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// The namespace of the operator, its `ConfigMap` and its releases.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The address of the API server, for error texts.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The private kubeconfig for children: it names the API server that our own client talks to.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Credentials come from a program, which needs the home directory of the person who set it up.
    pub fn uses_credential_plugin(&self) -> bool {
        self.uses_plugin
    }

    /// A client that does not stand in the line, for requests that others wait for; a warrant that has run out stops it all the same.
    fn unpaced(&self) -> Client {
        guard::before(&self.open, &self.warrant)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn attempt(&self, verb: &'static str, resource: &'static str, name: &str) -> Attempt {
        Attempt {
            verb,
            resource: resource.to_owned(),
            name: name.to_owned(),
            namespace: Some(self.namespace.clone()),
            server: self.server.clone(),
            account: self.account.clone(),
        }
    }

    /// Waits for the answer to one request, with a timeout. The wait for the rate limit does not count.
    async fn ask<T>(
        &self,
        attempt: Attempt,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        match pace::within(self.patience, request).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(source)) => Err(RequestError::Failed {
                attempt,
                source: Box::new(source),
            }),
            None => Err(RequestError::Silent {
                attempt,
                waited: self.patience,
            }),
        }
    }

    /// The API server's version and the APIs that it serves, not older than a few seconds.
    pub async fn apis(&self) -> Result<Arc<Apis>, RequestError> {
        let mut seen = self.apis.lock().await;
        Box::pin(self.known_apis(&mut seen)).await
    }

    /// Forgets the APIs that the API server serves: they have just changed.
    pub async fn forget_apis(&self) {
        self.apis.lock().await.forget();
    }
}

fn client(mut config: Config, namespace: &str, server: &str, meters: Arc<Meters>) -> Result<Client, ConnectError> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    namespace.clone_into(&mut config.default_namespace);
    let builder = ClientBuilder::try_from(config).map_err(|source| ConnectError::Client {
        server: server.to_owned(),
        source: Box::new(source),
    })?;
    Ok(builder.with_layer(&Requests::to(server, meters)).build())
}
