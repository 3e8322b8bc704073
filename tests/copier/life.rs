//! An operator with the shipped modules, on the control plane of this test run. All tests of a program share it, because two
//! would undo each other's work: their modules act in the whole cluster.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::kubectl::KubectlError;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::shared;

/// The operator, from the first test to the end of the process.
pub(super) struct Operator {
    pub(super) namespace: Namespace<'static>,
    folder: TempDir,
    /// Environment variables besides the usual ones, or in their places.
    pub(super) variables: BTreeMap<&'static str, OsString>,
    running: Mutex<Option<Bound>>,
    /// Tests that end the operator, or change its settings, are alone.
    turns: RwLock<()>,
}

impl Operator {
    /// An operator that does not run yet.
    pub(super) fn new(name: &str) -> Self {
        let plane = shared::plane();
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(plane.folder());
        let operator = Self {
            namespace: plane.namespace(name).unwrap(),
            folder: folder.unwrap(),
            variables: BTreeMap::new(),
            running: Mutex::default(),
            turns: RwLock::default(),
        };
        fs_err::create_dir_all(operator.folder().join("modules")).unwrap();
        operator
    }

    pub(super) fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turns.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder().join("log")
    }

    pub(super) fn start(&self) {
        let own = |name: &str| self.folder().join(name);
        // As in the image: modules of users first, then the shipped ones.
        let modules = format!("{}:{}", own("modules").display(), path("modules").display());
        let log = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        let output = log.into_parts().0;
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .arg("start")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("ADDON_OPERATOR_PROGRAM", env!("CARGO_BIN_EXE_addon-operator"))
            .env("HOME", own("home"))
            .env("KUBECONFIG", self.namespace.kubeconfig(User::Operator))
            .env("HELM_BIN", shared::program(Part::Helm3))
            .env("FRAMEWORK_DIR", path("frameworks/shell"))
            .env("ADDON_OPERATOR_NAMESPACE", self.namespace.name())
            .env("ADDON_OPERATOR_MODULES_DIR", modules)
            .env("ADDON_OPERATOR_TMP_DIR", own("tmp"))
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1")
            .env("ADDON_OPERATOR_LISTEN_PORT", "0")
            .env("DEBUG_UNIX_SOCKET", own("debug.socket"))
            .envs(&self.variables)
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        let bound = Bound::start(command, Bond::Group).unwrap();
        *self.running.lock().unwrap() = Some(bound);
    }

    /// Kills the operator with all that it has started.
    pub(super) fn kill(&self) {
        self.running.lock().unwrap().take();
    }

    /// Sets the keys of the operator's ConfigMap.
    pub(super) fn set(&self, data: &Value) {
        self.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data}),
        );
    }

    /// Creates or changes an object in the operator's namespace, or one that belongs to no namespace.
    pub(super) fn apply(&self, object: &Value) {
        apply(&self.namespace, object).unwrap();
    }
}

/// A path inside of the repository.
pub(super) fn path(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(inside)
}

/// Creates or changes an object, as a person does.
pub(super) fn apply(namespace: &Namespace<'_>, object: &Value) -> Result<String, KubectlError> {
    namespace
        .kubectl_as(User::Admin)
        .feed(["apply", "--filename=-"], &object.to_string())
}
