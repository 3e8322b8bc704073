//! The start of a control plane: the flags of its programs, their order, and the condition for each next step.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use fs_err as fs;
use thiserror::Error;

use super::caller;
use super::component::{Component, ComponentError, wait_for};
use super::outage::STORE;
use super::pods::Home;
use super::setup::{self, CERTIFICATES, Inmate, POLICY, Ports, TOKENS};
use super::{AUDIT, ControlPlane, FACTS, Facts, Options, Pods, User};
use crate::find::{FindError, Finder, Tools};
use crate::folder::Folder;
use crate::kubectl::KubectlError;
use crate::node;
use crate::part::Part;
use crate::port::KeptPort;
use crate::registry;
use crate::space::SpaceError;

#[derive(Debug, Error)]
pub enum StartError {
    #[error("cannot start a control plane")]
    Find(#[from] FindError),
    #[error("cannot prepare the folder of the control plane")]
    Folder(#[from] io::Error),
    #[error("cannot start a control plane")]
    Component(#[from] ComponentError),
    #[error("cannot furnish the control plane")]
    Furnish(#[from] KubectlError),
    #[error("cannot give the control plane a network of its own")]
    Network(#[from] SpaceError),
    #[error("cannot open a way to the control plane")]
    Door(#[source] io::Error),
    #[error("cannot find the program testbed, which is the first process of a node")]
    Own(#[source] io::Error),
    #[error("cannot have a node here: {0}")]
    Needs(String),
    #[error("cannot make the image that each pod needs")]
    Pause(#[from] node::PauseError),
}

/// The time limit of a probe. A probe that hangs must not delay the report of a dead program or an interruption.
pub(super) const SOON: &str = "--request-timeout=5s";

/// Starts everything that the options ask for. All programs are found, or built, before the first one starts.
pub(super) fn launch(options: &Options, finder: &Finder) -> Result<ControlPlane, StartError> {
    check_needs(options)?;
    let tools = finder.find(&options.parts())?;
    let plane = begin(options, &tools)?;
    plane.open_registry_with(&tools)?;
    plane.enliven_with(&tools)?;
    Ok(plane)
}

fn check_needs(options: &Options) -> Result<(), StartError> {
    let obstacle = (options.pods == Pods::Running).then(node::needs::obstacle).flatten();
    obstacle.map_or(Ok(()), |obstacle| Err(StartError::Needs(obstacle)))
}

/// Starts the programs that every control plane has. Registry and nodes get their addresses, and start later.
pub(super) fn begin(options: &Options, tools: &Tools) -> Result<ControlPlane, StartError> {
    let folder = match &options.folder {
        Some(path) => Folder::create_at(path)?,
        None => Folder::create()?,
    };
    if options.pods == Pods::Running {
        node::sweep();
    }
    let ports = Ports::keep()?;
    let path = folder.path().to_owned();
    let address = |port: &KeptPort| format!("127.0.0.1:{}", port.number());
    let facts = Facts {
        server: format!("https://{}", address(&ports.server)),
        pods: options.pods,
        registry: options.has_registry().then(|| address(&ports.registry)),
    };
    setup::write(&path, tools, &facts.server, advertised(options.pods))?;
    let home = match options.pods {
        Pods::Running => Some(Home::make(&ports)?),
        Pods::Pending | Pods::Alive => None,
    };
    // From here on an error drops `plane`, which ends the programs that run already.
    let mut plane = ControlPlane {
        facts,
        path,
        components: Mutex::default(),
        home,
        reader: OnceLock::new(),
        folder: Some(folder),
        ports: None,
    };

    plane.add(Part::Etcd, &store_flags(&plane.path, &ports))?;
    plane.add(Part::KubeApiserver, &server_flags(&plane.path, &ports, options.pods))?;
    plane.wait_for("the API server to listen", || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, ports.server.number())).map(drop)
    })?;
    let admin = plane.admin();
    plane.wait_for("the API server to be ready", || {
        admin.run(["get", "--raw", "/readyz", SOON])
    })?;
    plane.add(
        Part::KubeControllerManager,
        &controller_flags(&plane.path, options.pods),
    )?;
    let (role, user) = (
        "--clusterrole=cluster-admin",
        format!("--user={}", User::Operator.name()),
    );
    admin.run(["create", "clusterrolebinding", "testbed-operator", role, &user])?;
    plane.wait_for("the controllers to work", || {
        admin.run(["get", "serviceaccount", "default", "--namespace=default", SOON])
    })?;
    let facts = serde_json::to_string(&plane.facts).map_err(io::Error::from)?;
    fs::write(plane.path.join(FACTS), facts)?;
    plane.ports = Some(ports);
    Ok(plane)
}

impl ControlPlane {
    pub(super) fn add(&self, part: Part, flags: &[String]) -> Result<(), ComponentError> {
        let network = self.home.as_ref().map(|home| &home.network);
        let component = Component::start(part.name(), &self.program(part), flags, &self.path, network)?;
        self.running().push(component);
        Ok(())
    }

    /// Waits until `probe` returns a value, as long as all programs run.
    pub(super) fn wait_for<T, E: std::fmt::Display>(
        &self,
        what: &'static str,
        probe: impl FnMut() -> Result<T, E>,
    ) -> Result<T, ComponentError> {
        wait_for(&mut self.running(), what, probe)
    }

    /// Starts the registry, if the options asked for one.
    pub(super) fn open_registry_with(&self, tools: &Tools) -> Result<(), StartError> {
        let Some(ports) = self.ports.as_ref().filter(|_| self.facts.registry.is_some()) else {
            return Ok(());
        };
        setup::link(&self.path, tools)?;
        let port = ports.registry.number();
        let order = registry::prepare(&self.path, address_in(self.pods()), port)?;
        self.add(Part::Registry, &order)?;
        self.wait_for("the registry to answer", || registry::answers(port))?;
        Ok(())
    }
}

/// Formats each pair as `--name=value`.
fn flags<const N: usize>(named: [(&str, String); N]) -> Vec<String> {
    named
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect()
}

fn store_flags(folder: &Path, ports: &Ports) -> Vec<String> {
    let (clients, peers) = (store_url(&ports.store), store_url(&ports.store_peer));
    flags([
        ("data-dir", folder.join(STORE).display().to_string()),
        // No data outlives the owner, so none has to survive a power cut.
        ("unsafe-no-fsync", "true".to_owned()),
        ("listen-client-urls", clients.clone()),
        ("advertise-client-urls", clients),
        ("listen-peer-urls", peers.clone()),
        ("initial-advertise-peer-urls", peers.clone()),
        ("initial-cluster", format!("default={peers}")),
    ])
}

fn store_url(port: &KeptPort) -> String {
    format!("http://127.0.0.1:{}", port.number())
}

fn server_flags(folder: &Path, ports: &Ports, pods: Pods) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let key = |name: &str| format!("{}/{name}", file(CERTIFICATES));
    flags([
        ("etcd-servers", store_url(&ports.store)),
        ("bind-address", address_in(pods).to_string()),
        ("advertise-address", advertised(pods).to_string()),
        ("endpoint-reconciler-type", reconciler(pods).to_owned()),
        ("secure-port", ports.server.number().to_string()),
        ("cert-dir", file(CERTIFICATES)),
        ("token-auth-file", file(TOKENS)),
        ("authorization-mode", "RBAC".to_owned()),
        ("allow-privileged", "true".to_owned()),
        ("service-account-key-file", key("apiserver.pub")),
        ("service-account-signing-key-file", key("apiserver.key")),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-cluster-ip-range", node::SERVICES.to_owned()),
        (
            "admission-control-config-file",
            caller::configuration(folder).display().to_string(),
        ),
        ("audit-policy-file", file(POLICY)),
        ("audit-log-path", file(AUDIT)),
        // `blocking` writes a request to the log before its answer is sent. The log is not rotated, because requests
        // are counted in one file.
        ("audit-log-mode", "blocking".to_owned()),
        ("audit-log-maxsize", "0".to_owned()),
        ("kubelet-preferred-address-types", "InternalIP".to_owned()),
    ])
}

/// The address on which programs listen. With a real node they listen on all addresses of their network namespace, into
/// which no route leads.
fn address_in(pods: Pods) -> Ipv4Addr {
    match pods {
        Pods::Running => Ipv4Addr::UNSPECIFIED,
        Pods::Pending | Pods::Alive => Ipv4Addr::LOCALHOST,
    }
}

/// The address at which pods reach the API server.
fn advertised(pods: Pods) -> Ipv4Addr {
    match pods {
        Pods::Running => node::FIRST,
        Pods::Pending | Pods::Alive => Ipv4Addr::LOCALHOST,
    }
}

/// How the API server writes its address into the endpoints of the Service `kubernetes`: not at all if the address is
/// on loopback, which endpoints refuse.
fn reconciler(pods: Pods) -> &'static str {
    match pods {
        Pods::Running => "lease",
        Pods::Pending | Pods::Alive => "none",
    }
}

fn controller_flags(folder: &Path, pods: Pods) -> Vec<String> {
    let certificate = |name: &str| folder.join(CERTIFICATES).join(name).display().to_string();
    let controllers = match pods {
        // The node's own plugins give addresses to pods.
        Pods::Running => "*,-nodeipam",
        // The node controllers are switched off: without kubelets they would only evict pods.
        Pods::Pending | Pods::Alive => "*,-nodeipam,-nodelifecycle",
    };
    flags([
        (
            "kubeconfig",
            Inmate::Controllers.kubeconfig(folder).display().to_string(),
        ),
        ("leader-elect", "false".to_owned()),
        ("service-account-private-key-file", certificate("apiserver.key")),
        ("root-ca-file", certificate("apiserver.crt")),
        ("controllers", controllers.to_owned()),
        ("secure-port", "0".to_owned()),
    ])
}
