//! A control plane with a node, the image in its registry, and a namespace in which a person uses helm and kubectl.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options, Pods, User};
use testbed::process;
use testbed::reader::Only;
use testbed::report::{self, tell};
use testbed::wait::wait_until;

/// The longest wait: a lease has to expire, and then a busy machine needs time for a converge.
pub(crate) const PATIENCE: Duration = Duration::from_mins(6);

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const POD: &str = "app.kubernetes.io/name=addon-operator";
pub(crate) const DEPLOYMENT: &str = "ao-addon-operator";
/// The label of the `EndpointSlices` that contain the leader.
const LED: &str = "kubernetes.io/service-name=ao-addon-operator-validating-svc";
pub(crate) const LEASE: &str = "addon-operator-leader-election";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn chart() -> PathBuf {
    root().join("charts/addon-operator")
}

pub(crate) fn start() -> ControlPlane {
    let asked = Options {
        pods: Pods::Running,
        tools: vec![Part::Helm3, Part::Helm4],
        ..Options::default()
    };
    let plane = ControlPlane::start(&asked);
    assert!(plane.is_ok(), "{}", report::chain(&plane.unwrap_err()));
    plane.unwrap()
}

/// An image in the registry, without a tag, and the modules of a story in it.
#[derive(Clone)]
pub(crate) struct Image {
    repository: String,
    pub(crate) digest: String,
    /// The folder of the modules below `trial`, here and in the image.
    modules: &'static str,
}

impl Image {
    /// Pushes the image.
    pub(crate) fn push(plane: &ControlPlane, modules: &'static str) -> Self {
        let reference = format!("{}/addon-operator:trial", plane.registry().unwrap());
        let pushed = printed(&["push", &place(layout()), &reference]);
        let (repository, digest) = pushed.trim().split_once('@').unwrap();
        Self {
            repository: repository.to_owned(),
            digest: digest.to_owned(),
            modules,
        }
    }

    fn modules_here(&self) -> PathBuf {
        root().join("tests/installed/trial").join(self.modules)
    }

    /// The chart value with the folder of the modules in the image.
    pub(crate) fn modules_value(&self) -> String {
        format!("modules.dirs={{/trial/{}}}", self.modules)
    }
}

fn place(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The image with the modules of all stories on top. It is assembled once for all tests of this run, because that takes
/// most of a minute.
fn layout() -> &'static Path {
    static LAYOUT: OnceLock<PathBuf> = OnceLock::new();
    LAYOUT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        fs::create_dir_all(&folder).unwrap();
        let (layout, operator) = (folder.join("image"), folder.join("addon-operator"));
        // A debug build is mostly names for debuggers.
        let mut strip = process::command("strip");
        strip.arg("-o").arg(&operator).arg(OPERATOR);
        assert!(process::run(strip, None).unwrap().status.success());
        let packages = place(&packages());
        // Mirrors delete old packages. The operator can be tested with today's packages as well.
        let definition = printed(&[
            "fetch",
            "--packages",
            &packages,
            "--or-today",
            &place(&folder.join("today")),
        ]);
        let order = ["build", "--definition", definition.trim(), "--to", &place(&layout)];
        let content = ["--operator", &place(&operator), "--packages", &packages];
        // Each folder of modules gets a manifest of its files.
        let added = ["story", "versions", "health"].map(|name| format!("tests/installed/trial/{name}:/trial/{name}"));
        let added: Vec<&str> = added.iter().flat_map(|added| ["--add", added]).collect();
        printed(&[&order[..], &content, &added].concat());
        layout
    })
}

/// The folder in which `make image` also keeps packages.
fn packages() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    cache.unwrap_or_else(home).join("addon-operator/packages")
}

/// The output of the program that makes images, which is built beside the operator.
fn printed(arguments: &[&str]) -> String {
    let mut command = process::command(Path::new(OPERATOR).with_file_name("image"));
    command.args(arguments).current_dir(root());
    let output = process::run(command, None).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The test of one installation.
pub(crate) type Story = fn(&ControlPlane, &Image);

/// The number of installations at the same time. With more of them leaders lose their leases on a busy machine.
const AT_ONCE: usize = 4;

/// Plays all stories at the same time, each to its end, and reports the failed ones.
pub(crate) fn play(plane: &ControlPlane, image: &Image, stories: &[(&str, Story)]) {
    let left = Mutex::new(stories.iter().rev().collect::<Vec<_>>());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(stories.len()) {
            scope.spawn(|| {
                loop {
                    let Some((name, story)) = left.lock().unwrap().pop() else {
                        return;
                    };
                    let begun = std::time::Instant::now();
                    let played = catch_unwind(AssertUnwindSafe(|| story(plane, image)));
                    tell(&format!(
                        "{name}: {} after {:.0?}",
                        if played.is_ok() { "well" } else { "FAILED" },
                        begun.elapsed()
                    ));
                    if played.is_err() {
                        failed.lock().unwrap().push(*name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed: {failed:?}; each has told why above");
}

pub(crate) struct Stage<'a> {
    pub(crate) namespace: Namespace<'a>,
    folder: TempDir,
    pub(crate) image: Image,
}

impl<'a> Stage<'a> {
    pub(crate) fn build(plane: &'a ControlPlane, image: Image) -> Self {
        Self {
            namespace: plane.namespace("installed").unwrap(),
            folder: tempfile::tempdir_in(plane.folder()).unwrap(),
            image,
        }
    }

    /// Creates an account with the rights of a trial module and of helm for it.
    pub(crate) fn make_account(&self, name: &str) {
        self.kubectl(&format!("create serviceaccount {name}"));
        let verbs = "--verb=get,list,create,update,patch,delete";
        self.kubectl(&format!("create role {name} {verbs} --resource=configmaps,secrets"));
        let account = format!("--serviceaccount={}:{name}", self.namespace.name());
        self.kubectl(&format!("create rolebinding {name} --role={name} {account}"));
    }

    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// Applies these manifests with kubectl.
    pub(crate) fn apply(&self, manifests: &str) {
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.apply(manifests).unwrap();
    }

    /// The error text of a kubectl request that has to be refused.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let answer = self.namespace.kubectl(arguments.split(' '));
        answer.expect_err("it is to be refused").to_string()
    }

    pub(crate) fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("{arguments} --output=json"))).unwrap()
    }

    /// The output of a helm command on the chart's release.
    pub(crate) fn helm(&self, helm: Part, arguments: &[&str]) -> String {
        let plane = self.namespace.plane();
        let mut command = process::command(plane.program(helm));
        command.env_clear().env("HOME", self.folder.path()).args(arguments);
        command.arg("--namespace").arg(self.namespace.name());
        command.arg("--kubeconfig").arg(self.namespace.kubeconfig(User::Admin));
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Installs or upgrades the chart, and waits until its pods are up to date and ready.
    pub(crate) fn install(&self, helm: Part, more: &[&str]) {
        let image = [
            ("repository", self.image.repository.as_str()),
            ("digest", self.image.digest.as_str()),
        ];
        self.install_image(helm, &image, more);
    }

    /// Like `install`, with another image.
    pub(crate) fn install_image(&self, helm: Part, image: &[(&str, &str)], more: &[&str]) {
        let image = image.iter().map(|(key, value)| format!("image.{key}={value}"));
        let image: Vec<String> = image.collect();
        let rights = self.rights();
        let mut arguments = vec!["upgrade", "--install", "ao"];
        let chart = chart();
        arguments.extend([chart.to_str().unwrap(), "--values", rights.to_str().unwrap()]);
        let modules = self.image.modules_value();
        arguments.extend(["--set", &modules]);
        // Twenty pods share two processors.
        arguments.extend(["--set", "resources.requests.cpu=10m"]);
        arguments.extend(image.iter().flat_map(|value| ["--set", value]));
        arguments.extend(more.iter().flat_map(|value| ["--set", value]));
        self.helm(helm, &arguments);
        self.roll_out();
    }

    /// Installs the chart with only the modules that the plain image has, and the rights in this file.
    pub(crate) fn install_modules_of_image(&self, helm: Part, rights: &Path) {
        let chart = chart();
        let mut arguments = vec![
            "install",
            "ao",
            chart.to_str().unwrap(),
            "--values",
            rights.to_str().unwrap(),
        ];
        let image = [
            format!("image.repository={}", self.image.repository),
            format!("image.digest={}", self.image.digest),
        ];
        arguments.extend(image.iter().flat_map(|value| ["--set", value]));
        self.helm(helm, &arguments);
        self.roll_out();
    }

    pub(crate) fn roll_out(&self) {
        let limit = format!("--timeout={}s", PATIENCE.as_secs());
        let said = self
            .namespace
            .kubectl(["rollout", "status", "deployment/ao-addon-operator", &limit]);
        assert!(
            said.is_ok(),
            "{said:?}\n{}\n{}",
            self.kubectl("describe pods"),
            self.logs()
        );
    }

    /// The file with the rights that `rbac generate` finds for the modules.
    fn rights(&self) -> PathBuf {
        let mut command = process::command(OPERATOR);
        command.args(["rbac", "generate"]).arg(self.image.modules_here());
        command.arg("--global-hooks-dir").arg(root().join("global-hooks"));
        command.args(["--namespace", self.namespace.name()]);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HELM_BIN", self.namespace.plane().program(Part::Helm3));
        command.env("FRAMEWORK_DIR", root().join("frameworks/shell"));
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = self.folder.path().join("rights.yaml");
        fs::write(&file, output.stdout).unwrap();
        file
    }

    /// The names of all pods that are not being deleted.
    pub(crate) fn pods(&self) -> Vec<String> {
        let pods = self.namespace.metadata("pods", Only::Labels(POD)).unwrap();
        let staying = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        staying
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn logs(&self) -> String {
        let log = |pod: String| self.namespace.kubectl(["logs", &pod]);
        let logs = self
            .pods()
            .into_iter()
            .map(|pod| log(pod).unwrap_or_else(|error| error.to_string()));
        logs.collect::<Vec<_>>().join("\n---\n")
    }

    /// The leading pod. The lease and the Services have to agree on it.
    pub(crate) fn leader(&self) -> String {
        let look = || {
            let lease = self.namespace.object("lease", LEASE).unwrap().unwrap_or_default();
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let slices = self.namespace.objects("endpointslices", Only::Labels(LED)).unwrap();
            let ends = slices
                .iter()
                .filter_map(|slice| slice["endpoints"].as_array())
                .flatten();
            let led_to: Vec<&str> = ends.filter_map(|end| end["targetRef"]["name"].as_str()).collect();
            match led_to[..] {
                [one] if holder.starts_with(&format!("{one}.")) => Ok(Some(one.to_owned())),
                _ => Err(format!(
                    "{holder:?} holds the lease, and the Service leads to {led_to:?}"
                )),
            }
        };
        wait_until(PATIENCE, "one pod that leads", look).unwrap()
    }

    /// The output of a command in the leading pod.
    pub(crate) fn ask(&self, words: &str) -> String {
        self.kubectl(&format!("exec {} -- {words}", self.leader()))
    }

    /// The output of a command in the leading pod, or its error: the pod may end meanwhile.
    fn try_ask(&self, words: &str) -> Result<String, String> {
        let command = format!("exec {} -- {words}", self.leader());
        let said = self.namespace.kubectl(command.split(' '));
        said.map_err(|error| format!("{error:#}"))
    }

    /// Waits until the output of an operator command contains all these words.
    pub(crate) fn wait_until_it_says(&self, command: &str, words: &[&str]) {
        let look = || {
            let said = self.try_ask(&format!("addon-operator {command}"))?;
            if words.iter().all(|word| said.contains(word)) {
                Ok(Some(()))
            } else {
                Err(said)
            }
        };
        let waited = wait_until(PATIENCE, command, look);
        assert!(waited.is_ok(), "{}\n{}", waited.unwrap_err(), self.logs());
    }

    /// Every revision of every module's release, with its time of creation.
    pub(crate) fn revisions(&self) -> String {
        let columns = "custom-columns=N:.metadata.name,U:.metadata.uid";
        self.kubectl(&format!(
            "get secrets --selector=owner=helm,name!=ao --sort-by=.metadata.name --output={columns}"
        ))
    }
}
