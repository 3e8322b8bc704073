//! The stage of one operator: a namespace, a folder with its modules and its files, and an environment that inherits
//! nothing. Dropping the value deletes all of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fs_err as fs;
use tempfile::TempDir;
use testbed::files;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::{ControlPlane, User};
use testbed::process;
use testbed::wait::wait_until;

use crate::life::{self, Life, Program};

/// The folder of the repository, which has the shipped modules and global hooks. The modules are off until a ConfigMap
/// switches them on.
const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A file of a module.
pub(crate) struct File {
    /// The path below the directory of modules.
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
}

#[derive(Debug)]
pub(crate) struct Stage<'a> {
    /// Prints the logs when a test panics, so it is declared (and dropped) before the folder that contains them.
    namespace: Namespace<'a>,
    folder: TempDir,
    port: u16,
    /// Additional environment variables; they override the usual ones.
    extra: BTreeMap<&'static str, OsString>,
    lives: AtomicU32,
}

impl<'a> Stage<'a> {
    /// Builds a stage with the shipped modules and these additional ones.
    pub(crate) fn build(plane: &'a ControlPlane, prefix: &str, modules: &[File]) -> anyhow::Result<Self> {
        // Inside the control plane's folder, which the next start removes even if the demo was killed.
        let folder = tempfile::Builder::new().prefix("stage-").tempdir_in(plane.folder())?;
        fs::create_dir(folder.path().join(HOME))?;
        for File { path, text } in modules {
            files::put(&folder.path().join(MODULES), path, text)?;
        }
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Ok(Self {
            namespace: plane.namespace(prefix)?,
            folder,
            port: free,
            extra: BTreeMap::new(),
            lives: AtomicU32::new(0),
        })
    }

    /// Sets one more environment variable for the operator.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.extra.insert(name, value.into());
        self
    }

    pub(crate) fn plane(&self) -> &'a ControlPlane {
        self.namespace.plane()
    }

    pub(crate) fn namespace(&self) -> &Namespace<'a> {
        &self.namespace
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The temporary folder of the operator and its children.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folder().join(TMP)
    }

    /// The processes of operators, hooks and helms that run on this stage. They are recognised by the temporary folder
    /// in their environment. A person who looks around has other paths of the stage there, and is not counted.
    pub(crate) fn children(&self) -> Vec<(u32, String)> {
        life::marked(&self.tmp())
    }

    /// The port of probes and metrics.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder().join("debug.socket")
    }

    /// Starts the operator.
    pub(crate) fn start(&self, program: &Program) -> anyhow::Result<Life> {
        let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let mut command = process::command(&program.path);
        command
            .args(&program.arguments)
            .current_dir(self.folder())
            .env_clear()
            .envs(self.environment());
        let log = self.folder().join(format!("operator-{number}.log"));
        self.namespace.show_on_panic(&format!("operator, life {number}"), &log);
        Life::start(command, log)
    }

    /// The whole environment of the operator.
    fn environment(&self) -> BTreeMap<&'static str, OsString> {
        let plane = self.plane();
        let own = |name: &str| self.folder().join(name).into_os_string();
        let path = plane.environment(User::Operator).remove("PATH").unwrap_or_default();
        // The same order as in an image: the modules of the user come before the shipped ones.
        let mut modules = OsString::new();
        if self.folder().join(MODULES).is_dir() {
            modules.push(own(MODULES));
            modules.push(":");
        }
        modules.push(Path::new(REPOSITORY).join("modules"));
        let mut variables = BTreeMap::from([
            ("PATH", path),
            ("HOME", own(HOME)),
            ("KUBECONFIG", self.namespace.kubeconfig(User::Operator).into()),
            ("HELM_BIN", plane.program(Part::Helm3).into()),
            ("ADDON_OPERATOR_NAMESPACE", self.namespace.name().into()),
            ("ADDON_OPERATOR_MODULES_DIR", modules),
            // The variable tells hooks where the shell framework is; in an image it is at the place where they look.
            ("FRAMEWORK_DIR", Path::new(REPOSITORY).join("frameworks/shell").into()),
            (
                "ADDON_OPERATOR_GLOBAL_HOOKS_DIR",
                Path::new(REPOSITORY).join("global-hooks").into(),
            ),
            ("ADDON_OPERATOR_TMP_DIR", own(TMP)),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", Ipv4Addr::LOCALHOST.to_string().into()),
            ("ADDON_OPERATOR_LISTEN_PORT", self.port.to_string().into()),
            ("DEBUG_UNIX_SOCKET", self.socket().into()),
            ("LOG_TYPE", "text".into()),
        ]);
        variables.extend(self.extra.clone());
        variables
    }
}

impl Drop for Stage<'_> {
    /// Hooks and helms end with their operator. A process that is still alive must not write into a deleted folder, so
    /// it is killed first.
    fn drop(&mut self) {
        let gone = || {
            let left = self.children();
            for (id, _) in &left {
                process::signal(*id, libc::SIGKILL);
            }
            Ok::<_, String>(left.is_empty().then_some(()))
        };
        // A process that survives SIGKILL hangs in the kernel, and nothing more can be done.
        let _ = wait_until(Duration::from_secs(5), "the end of all children", gone);
    }
}

const HOME: &str = "home";
const MODULES: &str = "modules";
const TMP: &str = "tmp";
