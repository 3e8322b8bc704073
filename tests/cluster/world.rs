//! A namespace of the real control plane, with tools that work in it and modules that a test writes.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::event::{Reworked, Synced};
use addon_core::release::ConfigTrace;
use addon_core::values::section::Maintenance;
use addon_core::values::{HookDocument, Store};
use addon_operator::dispatch::Tools;
use fs_err as fs;
use names::{ModuleName, Owner};
use releases::sync::{self, Wanted};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::proxy::Proxy;
use testbed::reader::Only;
use tokio_util::sync::CancellationToken;

use super::tools::{self, Place};

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    pub(crate) namespace: Namespace<'static>,
    pub(crate) tools: Arc<Tools>,
    dir: TempDir,
    /// The settings of the tools, which take effect at the next restart.
    pub(crate) parts: Parts,
    /// The token that ends all jobs of the world.
    pub(crate) cancel: CancellationToken,
    /// The maintenance state that a sync gets: whether the operator or a person is responsible for the objects.
    pub(crate) maintenance: Maintenance,
    /// The section of module `one` in the `ConfigMap`.
    pub(crate) section: Option<Value>,
}

/// The settings from which tools are made.
pub(crate) struct Parts {
    helm: Part,
    helm_timeout: Duration,
    /// The kubeconfig with the API server's address.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) post_renderer: PathBuf,
}

/// Runs a test with helm 3, then with helm 4.
pub(crate) async fn with_each_helm(test: impl AsyncFn(Part)) {
    Box::pin(test(Part::Helm3)).await;
    Box::pin(test(Part::Helm4)).await;
}

impl World {
    /// A world for tests in which the version of helm does not matter.
    pub(crate) async fn new(prefix: &str) -> Self {
        Self::with(prefix, Part::Helm3).await
    }

    pub(crate) async fn with(prefix: &str, helm: Part) -> Self {
        let namespace = testbed::shared::plane()
            .namespace(&format!("{prefix}-{}", helm.name()))
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("modules")).unwrap();
        fs::create_dir(dir.path().join("global-hooks")).unwrap();
        let parts = Parts {
            helm,
            helm_timeout: Duration::from_mins(20),
            kubeconfig: namespace.kubeconfig(User::Operator),
            post_renderer: env!("CARGO_BIN_EXE_addon-operator").into(),
        };
        let tools = tools(&namespace, dir.path(), &parts).await;
        Self {
            namespace,
            tools,
            dir,
            parts,
            cancel: CancellationToken::new(),
            maintenance: Maintenance::Managed,
            section: None,
        }
    }

    /// Restarts with another time limit for each helm.
    pub(crate) async fn allow_helm(&mut self, helm_timeout: Duration) {
        self.parts.helm_timeout = helm_timeout;
        self.restart().await;
    }

    /// Restarts: new tools in the same namespace, without anything that was in memory.
    pub(crate) async fn restart(&mut self) {
        self.tools = tools(&self.namespace, self.dir.path(), &self.parts).await;
    }

    /// Restarts like `restart`. From then on all requests go through a proxy, which has no fault yet.
    pub(crate) async fn restart_behind_a_proxy(&mut self) -> Proxy {
        let (plane, user) = (self.namespace.plane(), User::Operator);
        let proxy = Proxy::start(plane, user).unwrap();
        self.parts.kubeconfig = self.dir.path().join("through-the-proxy");
        let through = proxy.kubeconfig(plane, user, self.namespace.name());
        fs::write(&self.parts.kubeconfig, through).unwrap();
        self.restart().await;
        proxy
    }

    /// Restarts with another helm.
    pub(crate) async fn change_helm(&mut self, helm: Part) {
        self.parts.helm = helm;
        self.restart().await;
    }

    /// Writes files of a module; they replace those of the same name.
    pub(crate) async fn module(&mut self, name: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = self.dir.path().join("modules").join(name).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.restart().await;
    }

    /// Writes a module with one `ConfigMap` whose data show the value `one.x`.
    pub(crate) async fn simple_module(&mut self) {
        self.module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", TEMPLATE)])
            .await;
    }

    pub(crate) async fn sync(&self, values: Value) -> Result<Synced, Failure> {
        self.sync_module("one", values).await
    }

    pub(crate) async fn sync_module(&self, module: &str, values: Value) -> Result<Synced, Failure> {
        let module = ModuleName::parse(module).unwrap();
        let (values, asked) = (document(&values), config(self.section.as_ref()));
        let wanted = Wanted {
            values: &values,
            asked: &asked,
            maintenance: self.maintenance,
            config: ConfigTrace::Nothing,
            unhealthy: None,
        };
        Box::pin(sync::sync(self.releases(), &module, wanted, None, &self.cancel)).await
    }

    pub(crate) async fn delete(&self) -> Result<Reworked, Failure> {
        self.delete_release("one").await
    }

    pub(crate) async fn delete_release(&self, release: &str) -> Result<Reworked, Failure> {
        Box::pin(sync::delete(self.releases(), release, &self.cancel)).await
    }

    /// The subcommands of all helm children so far, in order. The call for helm's version is left out.
    pub(crate) fn helm_calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("helm.log")).unwrap_or_default();
        let words = text.lines().filter_map(|line| line.split(' ').nth(1));
        words.filter(|word| *word != "version").map(str::to_owned).collect()
    }

    /// The process id of the last helm child.
    pub(crate) fn last_helm(&self) -> String {
        let text = fs::read_to_string(self.dir.path().join("helm.log")).unwrap();
        text.lines().last().unwrap().split(' ').next().unwrap().to_owned()
    }

    /// The output of kubectl.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// The revisions of the release with their statuses.
    pub(crate) fn history(&self) -> String {
        let mut records = self.metadata("secrets", Only::Labels("owner=helm,name=one"));
        records.sort_by_key(|record| record["creationTimestamp"].as_str().map(str::to_owned));
        let told = |record: &Value| {
            let label = |name: &str| record["labels"][name].as_str().unwrap_or("<none>").to_owned();
            format!("{}:{}", label("version"), label("status"))
        };
        records.iter().map(told).collect::<Vec<_>>().join(" ")
    }

    /// The metadata of the objects of a kind.
    pub(crate) fn metadata(&self, kind: &str, only: Only<'_>) -> Vec<Value> {
        let objects = self.namespace.metadata(kind, only).unwrap();
        objects
            .into_iter()
            .map(|mut object| object["metadata"].take())
            .collect()
    }

    /// An object that must be there.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Value {
        self.namespace.object(kind, name).unwrap().unwrap()
    }

    /// The output of a helm that a person would run.
    pub(crate) fn helm_by_hand(&self, arguments: &[&str]) -> String {
        let output = testbed::process::command(testbed::shared::program(self.parts.helm))
            .args(arguments)
            .env("HOME", self.dir.path())
            .args([
                "--kubeconfig".as_ref(),
                self.namespace.kubeconfig(User::Admin).as_os_str(),
            ])
            .args(["--namespace", self.namespace.name()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn releases(&self) -> &releases::Tools {
        self.tools.releases.as_ref().unwrap()
    }

    pub(crate) fn module_dir(&self) -> PathBuf {
        self.dir.path().join("modules/one")
    }
}

/// The values of module `one`, as `sync::sync` takes them. `values` has the module's section under the key `one`.
pub(crate) fn document(values: &Value) -> HookDocument {
    let owner = Owner::Module(ModuleName::parse("one").unwrap());
    let mut store = Store::new();
    let section = values.get("one").cloned().unwrap_or_else(|| json!({}));
    store.set_static(&owner, section).unwrap();
    store.hook_values(&owner)
}

/// The config values of module `one`, as `sync::sync` takes them, from its section of the `ConfigMap`.
pub(crate) fn config(section: Option<&Value>) -> HookDocument {
    let owner = Owner::Module(ModuleName::parse("one").unwrap());
    let mut store = Store::new();
    store.set_config(&owner, section.cloned()).unwrap();
    store.config_values(&owner)
}

pub(crate) const CHART: &str = "apiVersion: v2\nname: one\nversion: 0.1.0\n";
pub(crate) const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shown\ndata:\n  x: {{ .Values.one.x | quote }}\n";

async fn tools(namespace: &Namespace<'_>, dir: &Path, parts: &Parts) -> Arc<Tools> {
    let place = Place {
        dir,
        namespace: namespace.name(),
        kubeconfig: parts.kubeconfig.clone(),
        helm: logging_helm(parts.helm, dir),
        helm_timeout: parts.helm_timeout,
        post_renderer: parts.post_renderer.clone(),
    };
    tools::tools(&place).await
}

/// A script that logs its arguments and runs the real helm.
fn logging_helm(helm: Part, dir: &Path) -> PathBuf {
    let (script, log) = (dir.join(helm.name()), dir.join("helm.log"));
    if script.exists() {
        // The script is reused, because the operator takes a changed file for another helm.
        return script;
    }
    let helm = testbed::shared::program(helm);
    let text = format!(
        "#!/bin/sh\necho \"$$ $*\" >>{}\nexec {} \"$@\"\n",
        log.display(),
        helm.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    script
}
