//! Finds the cluster from flags, a kubeconfig or the operator's own pod, and makes one kubeconfig for child processes.
//!
//! The result is reduced to one context and written anew, so that helm and kubectl use the same cluster as the
//! operator. Credentials in files stay references to these files, because they rotate.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use kube::config::{
    AuthInfo, Cluster, Config, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};
use report::Chain;
use thiserror::Error;

use crate::private;

/// The name of the cluster, context and user in the file that is written.
const NAME: &str = "addon-operator";
const FILE: &str = "kubeconfig";
const POD_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The settings by which an admin names the cluster.
#[derive(Debug, Clone, Default)]
pub struct Address {
    /// `--kube-config`, or the elements of `KUBECONFIG`.
    pub kube_config: Vec<PathBuf>,
    /// `--kube-context`.
    pub context: Option<String>,
    /// `--kube-server`: another address for the same credentials.
    pub server: Option<String>,
    /// The home directory; its `.kube/config` is used last.
    pub home: Option<PathBuf>,
}

/// Why no connection can be made.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("cannot read the kubeconfig {}", path.display())]
    Read {
        path: PathBuf,
        source: Box<KubeconfigError>,
    },
    #[error("cannot use the kubeconfig {origin}")]
    Use {
        origin: String,
        source: Box<KubeconfigError>,
    },
    #[error("there is neither a kubeconfig nor a service account of a pod to reach a cluster with")]
    Nowhere,
    #[error("cannot use the pod's service account in {POD_FILES}")]
    Pod {
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot build a client for {server}")]
    Client { server: String, source: Box<kube::Error> },
    #[error("cannot write the kubeconfig for helm and hooks")]
    Write { source: io::Error },
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let failure = Self::new(Class::Invalid, Chain(&error).to_string());
        match error {
            ConnectError::Nowhere => failure.hint("name one with --kube-config or KUBECONFIG"),
            ConnectError::Use { .. } => failure.hint("choose a context of it with --kube-context"),
            ConnectError::Read { .. }
            | ConnectError::Pod { .. }
            | ConnectError::Client { .. }
            | ConnectError::Write { .. } => failure,
        }
    }
}

/// A kubeconfig that was found, before it is reduced.
pub(super) struct Found {
    kubeconfig: Kubeconfig,
    context: Option<String>,
    server: Option<String>,
    origin: String,
    ca_file: Option<PathBuf>,
}

/// The reduced kubeconfig.
pub(super) struct Private(Kubeconfig);

/// The client's configuration, the kubeconfig for child processes, and the file with the pod's certificate authority if
/// the operator uses its pod's account.
pub(super) struct Settled {
    pub(super) config: Config,
    pub(super) private: Private,
    pub(super) ca_file: Option<PathBuf>,
}

/// Finds a kubeconfig in kubectl's order: the named file, then the operator's own pod, then the home directory.
pub(super) fn find(address: &Address) -> Result<Found, ConnectError> {
    let found = |kubeconfig, origin: String| Found {
        kubeconfig,
        context: address.context.clone(),
        server: address.server.clone(),
        origin,
        ca_file: None,
    };
    if !address.kube_config.is_empty() {
        let origin = address
            .kube_config
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(":");
        return Ok(found(read_all(&address.kube_config)?, origin));
    }
    if address.context.is_none() && Path::new(POD_FILES).join("token").exists() {
        let (kubeconfig, ca_file) = of_our_pod()?;
        return Ok(Found {
            ca_file: Some(ca_file),
            ..found(kubeconfig, POD_FILES.to_owned())
        });
    }
    match address
        .home
        .as_ref()
        .map(|home| home.join(".kube/config"))
        .filter(|path| path.exists())
    {
        Some(path) => Ok(found(
            read_all(std::slice::from_ref(&path))?,
            path.display().to_string(),
        )),
        None => Err(ConnectError::Nowhere),
    }
}

/// The namespace of the chosen context, if no setting names one.
pub fn namespace(address: &Address) -> Result<Option<String>, ConnectError> {
    Ok(find(address)?.chosen().and_then(|context| context.namespace.clone()))
}

/// The URL of the API server.
pub fn server(address: &Address) -> Result<Option<String>, ConnectError> {
    let found = find(address)?;
    let name = found.chosen().map(|context| &context.cluster);
    let cluster = found.kubeconfig.clusters.iter().find(|named| Some(&named.name) == name);
    Ok(cluster.and_then(|named| named.cluster.as_ref()?.server.clone()))
}

impl Found {
    fn chosen(&self) -> Option<&Context> {
        let name = self.context.as_ref().or(self.kubeconfig.current_context.as_ref());
        let context = self.kubeconfig.contexts.iter().find(|named| Some(&named.name) == name);
        context?.context.as_ref()
    }
}

fn read_all(paths: &[PathBuf]) -> Result<Kubeconfig, ConnectError> {
    paths.iter().try_fold(Kubeconfig::default(), |merged, path| {
        // Certificates are referred to relative to this file, so its path has to be absolute.
        let absolute = env::current_dir().map_or_else(|_| path.clone(), |here| here.join(path));
        Kubeconfig::read_from(absolute)
            .and_then(|next| merged.merge(next))
            .map_err(|source| ConnectError::Read {
                path: path.clone(),
                source: Box::new(source),
            })
    })
}

fn of_our_pod() -> Result<(Kubeconfig, PathBuf), ConnectError> {
    let config = Config::incluster().map_err(|error| ConnectError::Pod {
        source: Box::new(error),
    })?;
    let ca_file = Path::new(POD_FILES).join("ca.crt");
    let cluster = Cluster {
        server: Some(config.cluster_url.to_string()),
        certificate_authority: Some(ca_file.display().to_string()),
        ..Cluster::default()
    };
    let user = AuthInfo {
        token_file: config.auth_info.token_file,
        ..AuthInfo::default()
    };
    Ok((single(cluster, user), ca_file))
}

fn single(cluster: Cluster, user: AuthInfo) -> Kubeconfig {
    let context = Context {
        cluster: NAME.to_owned(),
        user: Some(NAME.to_owned()),
        ..Context::default()
    };
    Kubeconfig {
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    }
}

impl Found {
    /// Reduces the kubeconfig to one context, and makes the client's configuration from exactly that.
    pub(super) async fn settle(self) -> Result<Settled, ConnectError> {
        let use_error = |source| ConnectError::Use {
            origin: self.origin.clone(),
            source: Box::new(source),
        };
        let context_name = self.context.clone().or_else(|| self.kubeconfig.current_context.clone());
        let context_name = context_name
            .ok_or(KubeconfigError::CurrentContextNotSet)
            .map_err(use_error)?;
        let context = self.chosen().cloned();
        let context = context.ok_or_else(|| use_error(KubeconfigError::LoadContext(context_name)))?;
        let mut cluster = self
            .kubeconfig
            .clusters
            .iter()
            .find(|named| named.name == context.cluster)
            .and_then(|named| named.cluster.clone())
            .ok_or_else(|| use_error(KubeconfigError::LoadClusterOfContext(context.cluster.clone())))?;
        let user = self
            .kubeconfig
            .auth_infos
            .iter()
            .find(|named| Some(&named.name) == context.user.as_ref())
            .and_then(|named| named.auth_info.clone())
            .unwrap_or_default();
        if let Some(server) = self.server {
            cluster.server = Some(server);
        }
        let whole = Private(single(cluster.clone(), user.clone()));
        let config = whole.config(self.ca_file.clone()).await.map_err(use_error)?;
        // The client's configuration includes the proxy of the environment; child processes do not have that
        // environment.
        cluster.proxy_url = config.proxy_url.as_ref().map(ToString::to_string);
        Ok(Settled {
            config,
            private: Private(single(cluster, user)),
            ca_file: self.ca_file,
        })
    }
}

impl Private {
    /// The client's configuration.
    pub(super) async fn config(&self, ca_file: Option<PathBuf>) -> Result<Config, KubeconfigError> {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(self.0.clone(), &options).await?;
        config.root_cert_file = ca_file;
        Ok(config)
    }

    /// The same cluster with the token in this file.
    pub(super) fn with_token(&self, file: &Path) -> Self {
        let cluster = self.0.clusters.first().and_then(|named| named.cluster.clone());
        let user = AuthInfo {
            token_file: Some(file.display().to_string()),
            ..AuthInfo::default()
        };
        Self(single(cluster.unwrap_or_default(), user))
    }

    /// Writes the file, for the operator and for child processes, which may be reading an earlier one.
    pub(super) fn write(&self, dir: &Path) -> Result<PathBuf, ConnectError> {
        let path = dir.join(FILE);
        let write = || private::write(&path, &serde_json::to_vec(&self.0)?);
        write().map_err(|source| ConnectError::Write { source })?;
        Ok(path)
    }

    /// Whether a program provides the credentials.
    pub(super) fn uses_plugin(&self) -> bool {
        self.0
            .auth_infos
            .iter()
            .filter_map(|named| named.auth_info.as_ref())
            .any(|user| user.exec.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use fs_err as fs;

    use super::*;

    const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: a
clusters:
- {name: one, cluster: {server: "https://one:6443", certificate-authority: ca.crt}}
- {name: two, cluster: {server: "https://two:6443", insecure-skip-tls-verify: true}}
users:
- {name: me, user: {token: secret}}
contexts:
- {name: a, context: {cluster: one, user: me}}
- {name: b, context: {cluster: two, user: me, namespace: elsewhere}}
"#;

    fn two(dir: &Path) -> Address {
        let path = dir.join("two");
        fs::write(&path, TWO).unwrap();
        Address {
            kube_config: vec![path],
            ..Address::default()
        }
    }

    #[tokio::test]
    async fn one_context_is_left_and_our_client_uses_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            context: Some("b".to_owned()),
            ..two(dir.path())
        };
        let Settled { config, private, .. } = find(&address).unwrap().settle().await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://two:6443/");
        let path = private.write(dir.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written = Kubeconfig::read_from(&path).unwrap();
        assert_eq!(written.contexts.len(), 1);
        assert_eq!(written.clusters.len(), 1);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("https://two:6443") && text.contains("secret"), "{text}");
        assert!(!text.contains("https://one"), "{text}");
        private.write(dir.path()).unwrap();
    }

    #[test]
    fn a_context_may_know_the_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let address = two(dir.path());
        assert_eq!(namespace(&address).unwrap(), None);
        let address = Address {
            context: Some("b".to_owned()),
            ..address
        };
        assert_eq!(namespace(&address).unwrap().as_deref(), Some("elsewhere"));
    }

    #[tokio::test]
    async fn another_server_keeps_the_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let server = Some("https://three:1".to_owned());
        let address = Address {
            context: Some("b".to_owned()),
            server,
            ..two(dir.path())
        };
        let Settled { config, private, .. } = find(&address).unwrap().settle().await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://three:1/");
        let text = fs::read_to_string(private.write(dir.path()).unwrap()).unwrap();
        assert!(text.contains("https://three:1") && text.contains("secret"), "{text}");
    }

    #[tokio::test]
    async fn errors_name_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            context: Some("c".to_owned()),
            ..two(dir.path())
        };
        let error = find(&address).unwrap().settle().await.err().unwrap();
        let failure = Failure::from(error);
        assert!(
            failure.report.contains("two") && failure.report.ends_with(": c"),
            "{failure}"
        );

        let nothing = Address {
            home: Some(dir.path().to_owned()),
            ..Address::default()
        };
        assert!(matches!(find(&nothing), Err(ConnectError::Nowhere)));
        let gone = Address {
            kube_config: vec![dir.path().join("gone")],
            ..Address::default()
        };
        let failure = Failure::from(find(&gone).err().unwrap());
        assert!(failure.report.contains("gone"), "{failure}");
    }
}
