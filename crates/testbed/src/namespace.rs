//! A namespace of a control plane that belongs to one test.
//!
//! If the test panics, the namespace's state is printed. A namespace whose pods run or are alive is then deleted. Any
//! other is left to the end of its control plane, because its deletion costs the API server a hundred requests. No name
//! is ever used twice.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fs_err as fs;
use serde_json::Value;
use thiserror::Error;

use crate::kubectl::{Kubectl, KubectlError};
use crate::plane::{self, ControlPlane, Pods, User, component};
use crate::port::KeptPort;
use crate::reader::{Objects, Only, ReadError};
use crate::wait::{TimedOut, wait_until};

#[derive(Debug, Error)]
pub enum NamespaceError {
    #[error("cannot create namespace {name}")]
    Create { name: String, source: ReadError },
    #[error("namespace {name} does not become usable")]
    Wait { name: String, source: TimedOut },
    #[error("cannot write the kubeconfig of namespace {name}")]
    Kubeconfig { name: String, source: io::Error },
}

/// A namespace. When this value is dropped, its pods go.
#[derive(Debug)]
pub struct Namespace<'a> {
    plane: &'a ControlPlane,
    name: String,
    /// The files whose ends are printed when the test panics, each with a title.
    logs: Mutex<Vec<(String, PathBuf)>>,
    ports: Mutex<Vec<KeptPort>>,
}

impl<'a> Namespace<'a> {
    pub(crate) fn create(plane: &'a ControlPlane, prefix: &str) -> Result<Self, NamespaceError> {
        let name = unique(prefix);
        let create = |source| NamespaceError::Create {
            name: name.clone(),
            source,
        };
        let created = plane.reader().and_then(|reader| reader.create_namespace(&name));
        created.map_err(create)?;
        let namespace = Self {
            plane,
            name,
            logs: Mutex::default(),
            ports: Mutex::default(),
        };
        let failed = |source| NamespaceError::Kubeconfig {
            name: namespace.name.clone(),
            source,
        };
        for user in [User::Admin, User::Operator] {
            let text = plane::kubeconfig_in(plane, user, &namespace.name);
            fs::write(namespace.kubeconfig(user), text).map_err(failed)?;
        }
        // Pods are refused until their service account exists.
        let account = || namespace.object("serviceaccount", "default");
        wait_until(Duration::from_secs(30), "its default service account", account).map_err(|source| {
            NamespaceError::Wait {
                name: namespace.name.clone(),
                source,
            }
        })?;
        Ok(namespace)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn plane(&self) -> &'a ControlPlane {
        self.plane
    }

    /// The path of a kubeconfig whose context has this namespace.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        let kind = match user {
            User::Admin => "admin",
            User::Operator => "operator",
        };
        self.plane.folder().join(format!("{}.{kind}.kubeconfig", self.name))
    }

    /// kubectl in this namespace as `user`.
    pub fn kubectl_as(&self, user: User) -> Kubectl {
        self.plane.kubectl_with(self.kubeconfig(user))
    }

    /// Runs kubectl in this namespace as the admin and returns its standard output.
    pub fn kubectl<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, KubectlError> {
        self.kubectl_as(User::Admin).run(arguments)
    }

    /// A reader of this namespace's objects that another thread can use.
    pub fn reader(&self) -> Result<Objects, ReadError> {
        Ok(self.plane.reader()?.of(&self.name))
    }

    /// An object of a kind such as `configmap`, if it exists.
    pub fn object(&self, kind: &str, name: &str) -> Result<Option<Value>, ReadError> {
        self.reader()?.object(kind, name)
    }

    /// The objects of a kind.
    pub fn objects(&self, kind: &str, only: Only<'_>) -> Result<Vec<Value>, ReadError> {
        self.reader()?.objects(kind, only)
    }

    /// The `metadata` of the objects of a kind, for objects that are large.
    pub fn metadata(&self, kind: &str, only: Only<'_>) -> Result<Vec<Value>, ReadError> {
        self.reader()?.metadata(kind, only)
    }

    /// Creates an object of a kind, or changes it to the manifest.
    pub fn apply(&self, kind: &str, manifest: &Value) -> Result<(), ReadError> {
        self.reader()?.apply(kind, manifest)
    }

    /// Creates a Service with which the API server reaches port 443 of an address of this machine. No other test has
    /// that address.
    pub fn service_to_us(&self, service: &str) -> Result<SocketAddr, KubectlError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        const FIRST: u32 = u32::from_be_bytes([127, 64, 0, 1]);
        const SPAN: u32 = 1 << 22;
        let number = process::id().wrapping_mul(32) + COUNTER.fetch_add(1, Ordering::Relaxed);
        let address = Ipv4Addr::from_bits(FIRST + number % SPAN);
        let there = format!("--external-name={address}");
        self.kubectl(["create", "service", "externalname", service, &there, "--tcp=443"])?;
        Ok(SocketAddr::new(IpAddr::V4(address), 443))
    }

    /// A port on which programs of this test can listen, on any address of the machine. It is reserved until this value
    /// is dropped.
    pub fn port(&self) -> io::Result<u16> {
        let port = KeptPort::keep()?;
        let number = port.number();
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).push(port);
        Ok(number)
    }

    /// Registers a log file whose end is printed if the test panics.
    pub fn show_on_panic(&self, title: &str, log: &Path) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.push((title.to_owned(), log.to_owned()));
    }

    /// The namespace's state, for the report of a failure.
    pub fn evidence(&self) -> String {
        const SHOWN: usize = 60;
        const KINDS: &str = "all,configmaps,secrets,leases,serviceaccounts,ingresses,persistentvolumeclaims";
        let mut text = format!("evidence of namespace {}\n", self.name);
        let mut section = |title: &str, body: &str| {
            for piece in ["--- ", title, "\n", body.trim_end(), "\n"] {
                text.push_str(piece);
            }
        };
        let shown = |outcome: Result<String, KubectlError>| outcome.unwrap_or_else(|error| error.to_string());
        section("objects", &shown(self.kubectl(["get", KINDS, "--output=wide"])));
        section(
            "events",
            &shown(self.kubectl(["get", "events", "--sort-by=.metadata.creationTimestamp"])),
        );
        for (title, log) in self.logs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            section(title, &component::tail(log, SHOWN));
        }
        text
    }
}

impl Drop for Namespace<'_> {
    #[expect(
        clippy::print_stderr,
        reason = "only the macro reaches the captured output of the test that failed"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.evidence());
        }
        if self.plane.pods() != Pods::Pending {
            // If the control plane is gone, the namespace is gone too.
            let _ = self
                .plane
                .reader()
                .and_then(|reader| reader.delete_namespace(&self.name));
        }
        for user in [User::Admin, User::Operator] {
            let _ = fs::remove_file(self.kubeconfig(user));
        }
    }
}

/// A name that no other test uses. Processes that run at the same time have different ids. Processes that run one after
/// another share a control plane only within one run, and ids are reused only after tens of thousands.
fn unique(prefix: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}
