//! The operator as a process outside of the cluster, with its modules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

use super::case::Case;
use crate::installed::stage::PATIENCE;

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

/// The folder of an operator.
pub(super) struct Outside<'a> {
    namespace: &'a Namespace<'a>,
    folder: TempDir,
    enabled: Mutex<String>,
}

impl<'a> Outside<'a> {
    pub(super) fn build(namespace: &'a Namespace<'a>) -> Self {
        let outside = Self {
            namespace,
            folder: tempfile::tempdir_in(namespace.plane().folder()).unwrap(),
            enabled: Mutex::default(),
        };
        fs::create_dir(outside.path("global-hooks")).unwrap();
        outside
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn write(&self, inside: &Path, text: &str) {
        let path = self.folder.path().join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the files of a module. Its value `cured` chooses between its objects.
    pub(super) fn add(&self, case: &Case) {
        let name = case.name;
        let mut enabled = self.enabled.lock().unwrap();
        writeln!(enabled, "{name}Enabled: true").unwrap();
        self.write(Path::new("modules/values.yaml"), &enabled);
        let folder = Path::new("modules").join(format!("100-{name}"));
        let write = |file: &str, text: &str| self.write(&folder.join(file), text);
        write("Chart.yaml", &format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n"));
        write("values.yaml", &format!("{name}: {{cured: false}}\n"));
        let (ill, well) = (documents(&case.ill), documents(&case.well));
        let template = format!("{{{{- if .Values.{name}.cured }}}}\n{well}{{{{- else }}}}\n{ill}{{{{- end }}}}\n");
        write("templates/all.yaml", &template);
        if !case.kinds.is_empty() {
            write("crds/kinds.yaml", &documents(&case.kinds));
        }
        if !case.description.is_empty() {
            write("module.yaml", case.description);
        }
    }

    /// Cures these modules with one edit.
    pub(super) fn configure<'n>(&self, cured: impl Iterator<Item = &'n str>) {
        let data: BTreeMap<&str, &str> = cured.map(|name| (name, "cured: true")).collect();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "addon-operator" }, "data": data,
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.apply(&map.to_string()).unwrap();
    }

    pub(super) fn start(&self) -> Operator<'_> {
        let log = self.path("operator.log");
        self.namespace.show_on_panic("operator", &log);
        let output = fs::File::create(&log).unwrap().into_parts().0;
        let plane = self.namespace.plane();
        let port = self.namespace.port().unwrap().to_string();
        let mut command = process::command(OPERATOR);
        command.arg("start").current_dir(self.folder.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        command.env("KUBECONFIG", self.namespace.kubeconfig(User::Operator));
        command.env("HELM_BIN", plane.program(Part::Helm3));
        command.env("ADDON_OPERATOR_NAMESPACE", self.namespace.name());
        command.env("ADDON_OPERATOR_MODULES_DIR", self.path("modules"));
        command.env("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", self.path("global-hooks"));
        command.env("ADDON_OPERATOR_TMP_DIR", self.path("tmp"));
        command.env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
        command.env("ADDON_OPERATOR_LISTEN_PORT", port);
        command.env("DEBUG_UNIX_SOCKET", self.path("debug.socket"));
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Operator {
            outside: self,
            bound: Bound::start(command, Bond::Group).unwrap(),
            log,
            turns: Mutex::default(),
        }
    }
}

fn documents(objects: &[Value]) -> String {
    objects.iter().fold(String::new(), |mut text, object| {
        writeln!(text, "---\n{object}").unwrap();
        text
    })
}

/// A running operator. Dropping it kills it.
pub(super) struct Operator<'a> {
    outside: &'a Outside<'a>,
    bound: Bound,
    log: PathBuf,
    /// The healths of each module that were seen one after the other: `Healthy` or `other`.
    turns: Mutex<BTreeMap<String, Vec<&'static str>>>,
}

impl Operator<'_> {
    /// The health of each module, and the sentence for which it is not healthy.
    pub(super) fn healths(&self) -> Result<BTreeMap<String, (String, String)>, String> {
        let said = self.read("/module/status.json").map_err(|error| error.to_string())?;
        let (_, body) = said.split_once("\r\n\r\n").unwrap_or_default();
        let modules: Vec<Value> = serde_json::from_str(body).map_err(|error| format!("{error}: {said}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let healths: BTreeMap<_, _> = modules
            .iter()
            .map(|module| {
                (
                    text(&module["name"]),
                    (text(&module["health"]), text(&module["unhealthy"])),
                )
            })
            .collect();
        let mut turns = self.turns.lock().unwrap();
        for (name, (health, _)) in &healths {
            let word = if health == "Healthy" { "Healthy" } else { "other" };
            let of_module = turns.entry(name.clone()).or_default();
            if of_module.last() != Some(&word) {
                of_module.push(word);
            }
        }
        Ok(healths)
    }

    /// The healths of a module that were seen one after the other.
    pub(super) fn turns(&self, name: &str) -> Vec<&'static str> {
        self.turns.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    /// How often a module was told unhealthy and healthy. Each record of the log has an Event beside it.
    pub(super) fn news(&self, name: &str) -> (usize, usize) {
        let said = fs::read_to_string(&self.log).unwrap();
        let module = format!("\"{name}\"");
        let count = |message: &str| {
            let records = said
                .lines()
                .filter(|line| line.contains(message) && line.contains(&module));
            records.count()
        };
        (count("\"Module is not healthy\""), count("\"Module is healthy again\""))
    }

    /// Reads the socket itself: a program for each look would take the machine from the node.
    fn read(&self, path: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(self.outside.path("debug.socket"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn ask(&self, words: &str) -> Result<String, String> {
        let mut command = process::command(OPERATOR);
        let socket = self.outside.path("debug.socket");
        command
            .args(words.split(' '))
            .env_clear()
            .env("DEBUG_UNIX_SOCKET", socket);
        let output = process::run(command, None).map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// The operator's answer to a person.
    pub(super) fn evidence(&self) -> String {
        let shown = |words: &str| self.ask(words).unwrap_or_else(|error| error);
        let mut text = shown("module list -o wide");
        for name in self.turns.lock().unwrap().keys() {
            text += "---\n";
            text += &shown(&format!("why {name}"));
        }
        text
    }

    /// Stops the operator, which has to end with success.
    pub(super) fn stop(mut self) {
        process::signal(self.bound.id(), libc::SIGTERM);
        let code = wait_until(PATIENCE, "the end of the operator", || self.bound.ended())
            .unwrap()
            .code();
        let said = fs::read_to_string(&self.log).unwrap();
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
