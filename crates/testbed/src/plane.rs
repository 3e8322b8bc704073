//! A control plane: its start, its addresses and credentials, and its end.
//!
//! Dropping a control plane ends the programs that were started with it. One that was joined is left running.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thiserror::Error;

use crate::audit::Audit;
use crate::environment;
use crate::find::{Finder, Tools};
use crate::folder::{self, Folder};
use crate::kubectl::{Kubectl, KubectlError};
use crate::namespace::{Namespace, NamespaceError};
use crate::node;
use crate::part::{self, Part};
use crate::plane::component::ComponentError;
use crate::plane::launch::StartError;
use crate::reader::{ReadError, Reader};

pub mod launch;

mod caller;
pub mod component;

pub mod outage;

mod pods;

mod setup;

/// The parts of a control plane that are started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub pods: Pods,
    /// Whether an OCI registry is started.
    pub registry: bool,
    /// Programs that are not started, and that the control plane's user wants on its `PATH`.
    pub tools: Vec<Part>,
    /// The folder for all files; by default a new temporary one. It is removed at the end in both cases.
    pub folder: Option<PathBuf>,
}

/// The fate of the pods that controllers create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pods {
    /// There is no node, so pods stay pending.
    #[default]
    Pending,
    /// There is one node, on which pods become ready at once although nothing runs.
    Alive,
    /// There is one real node, whose containerd pulls from the registry (which is started too). Needs root, and
    /// containerd and its kin: see [`node::needs`].
    Running,
}

impl Pods {
    /// The programs that make pods run.
    fn parts(self) -> &'static [Part] {
        match self {
            Self::Pending => &[],
            Self::Alive => &part::ALIVE,
            Self::Running => &part::RUNNING,
        }
    }
}

impl Options {
    /// The programs that these options need, in the order in which they are needed. The registry comes before those of a
    /// node, because another control plane may wait for it at the same time.
    pub fn parts(&self) -> Vec<Part> {
        let alive = self.pods.parts();
        let registry: &[Part] = if self.has_registry() { &[Part::Registry] } else { &[] };
        let mut parts: Vec<Part> = [&part::BASIC, registry, alive, &self.tools].concat();
        let mut seen = BTreeSet::new();
        parts.retain(|part| seen.insert(*part));
        parts
    }

    fn has_registry(&self) -> bool {
        self.registry || self.pods == Pods::Running
    }
}

/// A user of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// `testbed:admin`, the person or the test that observes.
    Admin,
    /// `testbed:operator`, the program under test: an ordinary user with the role `cluster-admin`. So its requests can
    /// be told apart in the audit log, and its rights can be restricted.
    Operator,
}

impl User {
    /// The name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "testbed:admin",
            Self::Operator => "testbed:operator",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Admin => "kubeconfig",
            Self::Operator => "operator.kubeconfig",
        }
    }
}

/// The content of `plane.json` in the folder, with which another process can join.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    server: String,
    pods: Pods,
    /// The host and port of the registry, as in a reference to an image.
    registry: Option<String>,
}

/// A control plane whose API server is ready.
#[derive(Debug)]
pub struct ControlPlane {
    facts: Facts,
    path: PathBuf,
    /// The running programs, the one started last first, because they are dropped in this order. Declared before the
    /// folder with their files.
    components: Mutex<Vec<component::Component>>,
    home: Option<pods::Home>,
    /// The connection for reading objects, made at the first use.
    reader: OnceLock<Reader>,
    folder: Option<Folder>,
    /// The ports of the programs, which they use again after an outage; `None` if another process owns them.
    ports: Option<setup::Ports>,
}

#[derive(Debug, Error)]
pub enum JoinError {
    #[error("nothing runs in {0}: its owner is gone")]
    Gone(PathBuf),
    #[error("cannot read about the control plane")]
    Read(#[from] io::Error),
    #[error("cannot understand {file}")]
    Parse { file: PathBuf, source: serde_json::Error },
}

impl ControlPlane {
    /// Finds the programs in the places that the environment names, starts them, and returns when the API server is
    /// ready and the controllers work.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        Self::start_with(options, &Finder::from_environment())
    }

    /// Like [`Self::start`], with programs from other places.
    pub fn start_with(options: &Options, finder: &Finder) -> Result<Self, StartError> {
        launch::launch(options, finder)
    }

    /// Like [`Self::start`], but helm, the registry and the nodes come later, by [`Self::provide`],
    /// [`Self::open_registry`] and [`Self::enliven`]. Their programs are found, or built, only then.
    pub fn begin(options: &Options) -> Result<Self, StartError> {
        launch::begin(options, &Finder::from_environment().find(&part::FIRST)?)
    }

    /// Finds, or builds, more programs for the users of the control plane. Returns where they were found.
    pub fn provide(&self, parts: &[Part]) -> Result<Tools, StartError> {
        let tools = Finder::from_environment().find(parts)?;
        setup::link(&self.path, &tools)?;
        Ok(tools)
    }

    /// Starts the registry of a control plane that has begun without it.
    pub fn open_registry(&self) -> Result<(), StartError> {
        self.open_registry_with(&Finder::from_environment().find(&[Part::Registry])?)
    }

    /// Starts the nodes of a control plane that has begun without them.
    pub fn enliven(&self) -> Result<(), StartError> {
        self.enliven_with(&Finder::from_environment().find(self.pods().parts())?)
    }

    /// Joins a control plane that another process owns.
    pub fn join(folder: &Path) -> Result<Self, JoinError> {
        if !folder::is_owned(folder) {
            return Err(JoinError::Gone(folder.to_owned()));
        }
        let file = folder.join(FACTS);
        let facts = serde_json::from_str(&fs::read_to_string(&file)?);
        let facts = facts.map_err(|source| JoinError::Parse { file, source })?;
        Ok(Self {
            facts,
            path: folder.to_owned(),
            components: Mutex::default(),
            home: None,
            reader: OnceLock::new(),
            folder: None,
            ports: None,
        })
    }

    /// The folder with all its files: logs, certificates, kubeconfigs.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// The file with the authority of the client certificate that the API server shows to webhooks.
    pub fn caller_authority(&self) -> PathBuf {
        caller::authority(&self.path)
    }

    /// The URL of the API server.
    pub fn server(&self) -> &str {
        &self.facts.server
    }

    /// The file with the API server's certificate and the authority that signed it.
    pub fn authority(&self) -> PathBuf {
        setup::authority(&self.path)
    }

    pub fn pods(&self) -> Pods {
        self.facts.pods
    }

    /// The host and port of the control plane's OCI registry (plain HTTP), if there is one.
    pub fn registry(&self) -> Option<&str> {
        self.facts.registry.as_deref()
    }

    /// The host and port of the same registry for pods and their node, if pods run.
    pub fn registry_of_pods(&self) -> Option<String> {
        let (_, port) = self.registry()?.rsplit_once(':')?;
        (self.pods() == Pods::Running).then(|| format!("{}:{port}", node::FIRST))
    }

    /// A folder with links to all programs, by the names of [`Part::name`].
    pub fn programs(&self) -> PathBuf {
        self.path.join(PROGRAMS)
    }

    /// The path of one of the control plane's programs.
    pub fn program(&self, part: Part) -> PathBuf {
        self.programs().join(part.name())
    }

    pub fn kubeconfig(&self, user: User) -> PathBuf {
        self.path.join(user.file())
    }

    /// The environment variables that a program needs to use this control plane; `user` is the default user.
    pub fn environment(&self, user: User) -> BTreeMap<&'static str, OsString> {
        let registry = self.registry().map(|address| ("TESTBED_REGISTRY", address.into()));
        let pause = self
            .registry_of_pods()
            .map(|address| ("TESTBED_PAUSE_IMAGE", node::pause_image(&address).into()));
        let others = [
            ("KUBECONFIG", self.kubeconfig(user).into()),
            ("KUBECACHEDIR", self.path.join(DISCOVERY).into()),
            (environment::PLANE, self.path.clone().into()),
            ("TESTBED_KUBECONFIG", self.kubeconfig(User::Admin).into()),
            ("TESTBED_OPERATOR_KUBECONFIG", self.kubeconfig(User::Operator).into()),
            ("TESTBED_AUDIT_LOG", self.path.join(AUDIT).into()),
            ("PATH", environment::path_behind(&self.programs())),
        ];
        others.into_iter().chain(registry).chain(pause).collect()
    }

    /// A kubectl of the admin, for more than one call.
    pub fn admin(&self) -> Kubectl {
        self.kubectl_with(self.kubeconfig(User::Admin))
    }

    pub(crate) fn kubectl_with(&self, kubeconfig: PathBuf) -> Kubectl {
        Kubectl {
            program: self.program(Part::Kubectl),
            kubeconfig,
            cache: self.path.join(DISCOVERY),
        }
    }

    /// Runs kubectl as the admin and returns its standard output.
    pub fn kubectl<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, KubectlError> {
        self.admin().run(arguments)
    }

    /// Reads a path of the API server that is about no object, such as `/version`.
    pub fn text(&self, path: &str) -> Result<Option<String>, ReadError> {
        self.reader()?.text(path)
    }

    pub(crate) fn reader(&self) -> Result<&Reader, ReadError> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let made = Reader::connect(self)?;
        Ok(self.reader.get_or_init(|| made))
    }

    /// Creates a namespace whose name no other test has.
    pub fn namespace(&self, prefix: &str) -> Result<Namespace<'_>, NamespaceError> {
        Namespace::create(self, prefix)
    }

    /// Registers a node as a kubelet would. Kwok writes the node's status, so it becomes ready only with
    /// [`Pods::Alive`].
    pub fn add_node(&self, name: &str) -> Result<(), KubectlError> {
        let labels = json!({
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        });
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } });
        let admin = self.admin();
        admin.feed(["create", "-f", "-"], &node.to_string())?;
        // Every new node gets this taint. The controller that normally removes it does not run here.
        admin.run(["taint", "node", name, "node.kubernetes.io/not-ready:NoSchedule-"])?;
        Ok(())
    }

    /// The audit log of the API server.
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(self, self.path.join(AUDIT))
    }

    /// Checks that all started programs still run. The error contains the end of the log of one that does not.
    pub fn check(&mut self) -> Result<(), ComponentError> {
        self.components().iter_mut().try_for_each(component::Component::check)
    }

    /// The process ids of the started programs.
    pub fn processes(&self) -> Vec<u32> {
        self.running().iter().map(component::Component::id).collect()
    }

    fn running(&self) -> MutexGuard<'_, Vec<component::Component>> {
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The programs for the exclusive owner of the control plane, without a lock.
    fn components(&mut self) -> &mut Vec<component::Component> {
        self.components.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Nothing in the folder is needed any more, so programs are killed without being asked to stop, the last
        // started first.
        while let Some(component) = self.components().pop() {
            drop(component);
        }
        let has_nodes = self.home.take().is_some();
        if has_nodes && self.folder.is_some() {
            pods::wait_until_gone(&self.path);
        }
        drop(self.folder.take());
        if has_nodes {
            node::sweep();
        }
    }
}

/// The folders of all running control planes of this user, for a person who wants to join one.
pub fn running() -> Vec<PathBuf> {
    folder::owned()
}

/// The text of a kubeconfig for `user` whose context has `namespace`.
pub(crate) fn kubeconfig_in(plane: &ControlPlane, user: User, namespace: &str) -> String {
    kubeconfig_at(plane, plane.server(), user, namespace)
}

/// The bearer token of `user`.
pub(crate) fn token(user: User) -> String {
    setup::token(user.name())
}

/// The text of a kubeconfig with another address in place of the API server's.
pub(crate) fn kubeconfig_at(plane: &ControlPlane, server: &str, user: User, namespace: &str) -> String {
    setup::kubeconfig(&plane.path, server, user.name(), Some(namespace))
}

const FACTS: &str = "plane.json";
const PROGRAMS: &str = "bin";
const AUDIT: &str = "audit.log";
const DISCOVERY: &str = "discovery";
