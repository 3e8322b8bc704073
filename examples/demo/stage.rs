//! Where one operator plays: a namespace, a folder with modules and everything it writes, an environment built from
//! nothing. All of it is gone when the value is dropped.

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

/// The folder with the shipped modules and global hooks. The modules are off until a ConfigMap switches them on.
const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A file of a module.
pub(crate) struct File {
    /// Below the directory with modules.
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
}

#[derive(Debug)]
pub(crate) struct Stage<'a> {
    /// Shows the logs when a test panics, so it goes before the folder that has them.
    namespace: Namespace<'a>,
    folder: TempDir,
    port: u16,
    /// Variables on top of the usual ones, or instead of them.
    extra: BTreeMap<&'static str, OsString>,
    lives: AtomicU32,
}

impl<'a> Stage<'a> {
    /// With the shipped modules and these.
    pub(crate) fn build(plane: &'a ControlPlane, prefix: &str, modules: &[File]) -> anyhow::Result<Self> {
        // In the folder of the control plane, which is swept even after a kill.
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

    /// Gives the operator one more variable.
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

    /// Where the operator and its children put files that matter only while they run.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folder().join(TMP)
    }

    /// Operators, hooks and helms that run here. All of them know the folder for temporary files, and nobody else does:
    /// a person who looks around has other paths of the stage in the environment.
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

    /// Everything the operator knows of the machine.
    fn environment(&self) -> BTreeMap<&'static str, OsString> {
        let plane = self.plane();
        let own = |name: &str| self.folder().join(name).into_os_string();
        let path = plane.environment(User::Operator).remove("PATH").unwrap_or_default();
        // As in an image: what is somebody's own counts before what is shipped.
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
            // In an image the framework of hooks lies where they look for it.
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
    /// Hooks and helms end with their operator. Should one not, it must not write into a folder that is gone.
    fn drop(&mut self) {
        let gone = || {
            let left = self.children();
            for (id, _) in &left {
                process::signal(*id, libc::SIGKILL);
            }
            Ok::<_, String>(left.is_empty().then_some(()))
        };
        // What does not die of this hangs in the kernel, where nobody can help it.
        let _ = wait_until(Duration::from_secs(5), "the end of all children", gone);
    }
}

const HOME: &str = "home";
const MODULES: &str = "modules";
const TMP: &str = "tmp";
