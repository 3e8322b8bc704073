//! A stage with helm for releases of others, the command `migrate`, and the commands of its plan.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fs_err as fs;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage};

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const FIXTURES: &str = "tests/migrate";
/// The kinds of objects that are compared.
const KINDS: &str =
    "deployments,daemonsets,statefulsets,services,serviceaccounts,configmaps,secrets,roles,rolebindings";

pub(crate) struct Migration {
    pub(crate) stage: Stage,
    /// The namespace of the releases.
    pub(crate) shop: Namespace<'static>,
    helm: Part,
}

/// The end of a command: exit code, standard output and standard error.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

fn said(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// The path of a chart of the fixtures.
pub(crate) fn chart(name: &str) -> PathBuf {
    let charts = fs::read_dir(Path::new(FIXTURES).join("charts")).unwrap();
    let mut paths = charts.map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        file.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
    };
    fs::canonicalize(paths.find(is_it).unwrap()).unwrap()
}

impl Migration {
    pub(crate) fn build(prefix: &str, helm: Part) -> Self {
        let mut stage = Stage::build(prefix);
        stage.set("HELM_BIN", testbed::shared::plane().program(helm));
        let shop = stage.namespace().plane().namespace(&format!("{prefix}-shop")).unwrap();
        Self { stage, shop, helm }
    }

    pub(crate) fn operator(&self) -> &str {
        self.stage.namespace().name()
    }

    /// Runs helm as a person does.
    pub(crate) fn helm(&self, within: &Namespace<'_>, arguments: &[&str]) -> String {
        let mut command = process::command(testbed::shared::plane().program(self.helm));
        command.args(arguments).env_clear();
        command.env("HOME", self.stage.path("home"));
        command.env("KUBECONFIG", within.kubeconfig(User::Admin));
        let said = said(process::run(command, None).unwrap());
        assert_eq!(said.code, Some(0), "helm {arguments:?}: {}", said.err);
        said.out
    }

    pub(crate) fn install(&self, within: &Namespace<'_>, release: &str, name: &str, more: &[&str]) {
        let path = chart(name);
        let mut arguments = vec!["install", release, path.to_str().unwrap(), "--skip-crds"];
        arguments.extend(more);
        self.helm(within, &arguments);
    }

    /// Runs `migrate from` with the plan in this folder of the stage.
    pub(crate) fn migrate(&self, folder: &str, arguments: &str) -> Said {
        let mut command = process::command(OPERATOR);
        command.args(["migrate", "from"]).args(arguments.split(' '));
        command.args(["--operator-namespace", self.operator()]);
        command.arg("--output-dir").arg(self.stage.path(folder));
        command.env_clear().env("PATH", "/usr/bin:/bin");
        command.env("KUBECONFIG", self.shop.kubeconfig(User::Operator));
        command.env("HELM_BIN", testbed::shared::plane().program(self.helm));
        said(process::run(command, None).unwrap())
    }

    pub(crate) fn page(&self, folder: &str) -> String {
        fs::read_to_string(self.stage.path(folder).join("STEPS.md")).unwrap()
    }

    /// Runs the commands of a part of the plan, as a person does.
    pub(crate) fn follow(&self, folder: &str, title: &str) {
        let page = self.page(folder);
        let mut parts = page.split("\n## ");
        let part = parts.find(|part| part.lines().next().unwrap().ends_with(title));
        let part = part.unwrap_or_else(|| panic!("no part '{title}' in {page}"));
        let mut command = String::new();
        for line in part.lines().filter_map(|line| line.strip_prefix("    ")) {
            command.push_str(line);
            if line.ends_with("&&") {
                command.push('\n');
            } else {
                self.run(folder, &std::mem::take(&mut command));
            }
        }
    }

    /// Runs a command of the plan. Those that ask the operator need one at work.
    fn run(&self, folder: &str, line: &str) {
        if line.starts_with("addon-operator ") {
            return;
        }
        let bin = self.stage.path("bin");
        if !bin.exists() {
            fs::create_dir(&bin).unwrap();
            let plane = testbed::shared::plane();
            for (name, part) in [("kubectl", Part::Kubectl), ("helm", self.helm)] {
                fs::os::unix::fs::symlink(plane.program(part), bin.join(name)).unwrap();
            }
        }
        let mut command = process::command("/bin/sh");
        command.args(["-eu", "-c", line]).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command.env("HOME", self.stage.path("home"));
        command.current_dir(self.stage.path(folder));
        command.env("KUBECONFIG", self.stage.namespace().kubeconfig(User::Admin));
        let said = said(process::run(command, None).unwrap());
        assert_eq!(said.code, Some(0), "{line}: {}", said.err);
    }

    /// Follows the plan up to the end of the former owner, and starts an operator after each of its steps.
    pub(crate) fn take_over_with_restarts(&self, folder: &str) {
        let page = self.page(folder);
        for line in page
            .lines()
            .take_while(|line| !line.ends_with("Remove the former owner"))
        {
            if line.starts_with("Copy `modules`") {
                self.copy_modules(folder);
            } else if let Some(command) = line.strip_prefix("    kubectl ") {
                self.run(folder, &format!("kubectl {command}"));
            } else {
                continue;
            }
            let operator = self.stage.start();
            wait_until(PATIENCE, "a converge, or a refusal", || {
                let said = operator.said();
                let is_settled = [CONVERGED, "was not installed by addon-operator"]
                    .iter()
                    .any(|text| said.contains(text));
                is_settled.then_some(Some(())).ok_or(line)
            })
            .unwrap();
            operator.stop();
        }
    }

    /// Copies the modules of the plan into the modules directory of the operator.
    pub(crate) fn copy_modules(&self, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.stage.path(folder).join("modules")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            self.stage
                .rename(&format!("{folder}/modules/{name}"), &format!("modules/{name}"));
            names.push(name.split_once('-').unwrap().1.to_owned());
        }
        names
    }

    /// Starts the operator with the modules of the plan, waits until they are ready, and stops it.
    pub(crate) fn take_over(&self, folder: &str) {
        let modules = self.copy_modules(folder);
        assert!(!modules.is_empty());
        self.follow(folder, "Hand over");
        if self.page(folder).contains("Mark releases") {
            self.follow(folder, "Mark releases");
        }
        let operator = self.stage.start();
        for module in modules {
            operator.wait_for_why(&module, &["state: Ready"]);
        }
        operator.stop();
    }

    /// The objects of helm in a namespace, by kind and name.
    pub(crate) fn objects(within: &Namespace<'_>, selector: &str) -> BTreeMap<String, Value> {
        let arguments = ["get", KINDS, "--selector", selector, "--output", "json"];
        let listed: Value = serde_json::from_str(&within.kubectl(arguments).unwrap()).unwrap();
        let items = listed["items"].as_array().unwrap().iter();
        let key = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
        let objects = items.filter(|object| object["type"] != "helm.sh/release.v1");
        objects.map(|object| (key(object), object.clone())).collect()
    }
}

/// Objects without the marks of their owner: uid, spec and all else must be the same before and after. The generation of
/// a Deployment counts its annotations, too.
pub(crate) fn unowned(objects: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let strip = |object: &Value| {
        let mut object = object.clone();
        let is_deployment = object["kind"] == "Deployment";
        object.as_object_mut().unwrap().remove("status");
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        if is_deployment {
            metadata.remove("generation");
        }
        for (field, marks) in [
            (
                "labels",
                &[
                    "heritage",
                    "app.kubernetes.io/managed-by",
                    "helm.toolkit.fluxcd.io/name",
                    "helm.toolkit.fluxcd.io/namespace",
                ][..],
            ),
            (
                "annotations",
                &["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"][..],
            ),
        ] {
            if let Some(texts) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                texts.retain(|key, _| !marks.contains(&key.as_str()));
                if texts.is_empty() {
                    metadata.remove(field);
                }
            }
        }
        object
    };
    objects
        .iter()
        .map(|(key, object)| (key.clone(), strip(object)))
        .collect()
}

/// The generations of objects.
pub(crate) fn generations(objects: &BTreeMap<String, Value>) -> Vec<(&str, &Value)> {
    let each = objects.iter();
    each.map(|(key, object)| (key.as_str(), &object["metadata"]["generation"]))
        .collect()
}

/// An object of a kind that the testbed does not know.
pub(crate) fn found(within: &Namespace<'_>, kind: &str, name: &str) -> Option<Value> {
    let text = within
        .kubectl(["get", kind, name, "--ignore-not-found", "--output=json"])
        .unwrap();
    (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
}

/// Installs the CRDs of Flux and Argo CD.
pub(crate) fn install_crds(within: &Namespace<'_>) {
    let kubectl = within.kubectl_as(User::Admin);
    for file in ["helmreleases", "helmrepositories", "ocirepositories", "applications"] {
        let packed = fs::read(Path::new(FIXTURES).join(format!("crds/{file}.yaml.gz"))).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        kubectl.feed(["apply", "--server-side", "--filename=-"], &text).unwrap();
    }
    let crds = ["helmreleases.helm.toolkit.fluxcd.io", "applications.argoproj.io"].map(|crd| format!("crd/{crd}"));
    let wait = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        &crds[0],
        &crds[1],
    ];
    // Until a CRD has conditions, kubectl fails at once.
    let established = || kubectl.run(wait).map(Some);
    wait_until(PATIENCE, "the kinds of Flux and Argo CD", established).unwrap();
}

/// A Secret of helm with these contents.
pub(crate) fn record(name: &str, status: &str, contents: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": format!("sh.helm.release.v1.{name}.v1"),
            "labels": {"owner": "helm", "name": name, "version": "1", "status": status}},
        "data": {"release": STANDARD.encode(contents)},
    })
}
