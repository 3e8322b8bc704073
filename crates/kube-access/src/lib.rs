//! The connection to the cluster: one kubeconfig for our client, helm and the hooks' children, and the error of a
//! failed request. The RBAC verbs that are needed are listed in the files that use them.
//!
//! It never retries, with two exceptions: the watch of the `ConfigMap` recovers by itself, and a hook's change of an
//! object is repeated when another writer was faster. It never deletes an object, unless a hook asks for it.
//!
//! ```text
//!   kubeconfig --> Cluster --> pace --> guard --> API server
//!                     |          (rate)   (lease)
//!                     +-- accounts   a client and a kubeconfig for each service account
//!                     +-- apis, kinds   the served groups, versions and kinds
//!                     +-- error   a failed request, in words that name verb, object and server
//! ```
//!
//! Begin with `Cluster`: a request is an `Attempt` and a future, and `ask` waits for its answer.

pub mod accounts;
pub mod apis;
pub mod error;
pub mod events;
mod forward;
mod guard;
pub mod kinds;
pub mod known;
pub mod kubeconfig;
pub mod pace;
pub mod pods;
mod private;
pub mod pull_secrets;
pub mod reach;
pub mod reviews;
pub mod substitutes;
mod under_way;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use child::warrant::Warrant;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::ClientBuilder;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};
use settings::{KubeSettings, RateLimit};
use telling::meters::Meters;
use telling::meters::requests::Requests;

use accounts::Accounts;
use error::{Attempt, RequestError};
use known::Known;
use kubeconfig::{Address, ConnectError, Settled};
use pace::Pace;
use substitutes::Lacking;

/// The timeout of a request. An API server that has not answered by then counts as unreachable.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for a new connection. It is shorter than kube's default of 30 s, because the server is near.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A cluster, and the operator's namespace in it. Clones share everything.
#[derive(Clone)]
pub struct Cluster {
    /// The client for requests under the rate limit.
    client: Client,
    /// A client without the rate limit.
    open: Client,
    /// The timeout for an answer of the API server.
    patience: Duration,
    namespace: String,
    server: String,
    kubeconfig: Option<PathBuf>,
    uses_plugin: bool,
    /// The time until which writes are allowed.
    warrant: Warrant,
    /// The queue of the rate limit, if there is one.
    pace: Option<Pace>,
    /// The service account of this client; none for the operator's own account.
    account: Option<Arc<str>>,
    /// The other service accounts that jobs can act as; none if no kubeconfig is written.
    accounts: Option<Arc<Accounts>>,
    apis: Arc<apis::Discovery>,
    known_state: Known,
    /// The rights that the operator is known to lack.
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
    /// Reads the cluster's address, and writes the private kubeconfig to the directory, if one is given. It makes no
    /// request, because an unreachable cluster is no error of the start. The meters count later requests.
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

    /// A cluster whose API server is the service behind this client, without children and accounts.
    pub fn imitated(client: Client, namespace: &str) -> Self {
        Self {
            open: client.clone(),
            client,
            warrant: Warrant::default(),
            pace: None,
            account: None,
            accounts: None,
            patience: REQUEST_TIMEOUT,
            namespace: namespace.to_owned(),
            server: "a cluster of tests".to_owned(),
            kubeconfig: None,
            uses_plugin: false,
            apis: Arc::default(),
            known_state: Known::default(),
            lacking: Lacking::default(),
        }
    }

    /// A client of the same cluster with a rate limit.
    #[must_use]
    pub fn limited(&self, limit: RateLimit) -> Self {
        Self {
            pace: Pace::of(limit),
            ..self.clone()
        }
        .paced()
    }

    /// The same cluster; writes are refused once the warrant has run out, except those of the lease.
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

    /// The same cluster with the warrant, the timeout and the rate limit of another client. Both clients wait in one
    /// queue.
    #[must_use]
    pub fn as_patient_as(&self, other: &Self) -> Self {
        Self {
            warrant: other.warrant.clone(),
            pace: other.pace.clone(),
            patience: other.patience,
            ..self.clone()
        }
        .paced()
    }

    /// The same cluster with the settings for object patches.
    #[must_use]
    pub fn patching(&self, kube: &KubeSettings) -> Self {
        self.limited(kube.patch_limit).within(kube.patch_timeout)
    }

    /// The same cluster without the rate limit, for records that must not be late.
    #[must_use]
    pub fn unhurried(&self) -> Self {
        Self {
            client: self.unpaced(),
            ..self.clone()
        }
    }

    /// A client of the same cluster with the given timeout for answers.
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

    /// The client for requests under the rate limit.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client without the rate limit and without the check of the warrant. It is for reads, and for writes of objects
    /// that show which replica leads: the lease, the leader's label and Services.
    pub fn open(&self) -> Client {
        self.open.clone()
    }

    /// The time until which writes are allowed.
    pub fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// The Secrets of the operator's state as this process last read or wrote them.
    pub fn known(&self) -> &Known {
        &self.known_state
    }

    /// The rights that the operator is known to lack.
    pub fn lacking(&self) -> &Lacking {
        &self.lacking
    }

    /// The address of the API server, for error texts.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The private kubeconfig for children: it names the API server that our own client talks to.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// Whether a program provides the credentials. That program needs the home directory of the person who set it up.
    pub fn uses_credential_plugin(&self) -> bool {
        self.uses_plugin
    }

    /// A client without the rate limit, for requests about trials and the Deployment, which must not be late. A warrant
    /// that has run out still refuses its writes.
    pub fn unpaced(&self) -> Client {
        guard::before(&self.open, &self.warrant)
    }

    /// The Secrets in the operator's namespace.
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The `ConfigMaps` in the operator's namespace.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The `CustomResourceDefinitions`, as they are: a type would drop fields that it does not know.
    pub fn crds(&self) -> Api<DynamicObject> {
        let kind = ApiResource {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
        };
        Api::all_with(self.client(), &kind)
    }

    /// Describes a request about an object in the operator's namespace.
    pub fn attempt(&self, verb: &'static str, resource: &str, name: &str) -> Attempt {
        self.attempt_in(Some(&self.namespace), verb, resource, name)
    }

    /// Describes a request about an object in this namespace; `None` for a cluster-wide kind.
    pub fn attempt_in(&self, namespace: Option<&str>, verb: &'static str, resource: &str, name: &str) -> Attempt {
        Attempt {
            verb,
            resource: resource.to_owned(),
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            server: self.server.clone(),
            account: self.account.clone(),
        }
    }

    /// Waits for the answer to a request, with a timeout. The time in the rate limit's queue does not count.
    pub async fn ask<T>(
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
