//! A namespace with an operator of its own, two modules that are fine, and what a test looks at.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;
use testbed::audit::Mark;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::reader::Only;
use testbed::wait::wait_until;

/// Far more than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {size: {{ .Values.NAME.size | quote }}}\n";
const HOOK: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; fi\n";

/// The message of the end of every converge, the first one included.
pub(crate) const CONVERGED: &str = "Converge modules finished";

pub(crate) struct Stage {
    /// Shows the logs in the folder, so it goes first.
    namespace: Namespace<'static>,
    folder: TempDir,
    port: u16,
    lives: AtomicU32,
    /// The beginning of the time in which nothing may be deleted.
    mark: Mark,
    /// Variables on top of the usual ones, or instead of them.
    extra: BTreeMap<&'static str, OsString>,
    /// By which it is started.
    command: &'static [&'static str],
}

impl Stage {
    /// With the modules `good` and `victim` on disk, and a third one, `late`, that is switched on and not there yet.
    pub(crate) fn build(prefix: &str) -> Self {
        let plane = testbed::shared::plane();
        // In the folder of the control plane, which is swept even after a kill.
        let folder = tempfile::Builder::new()
            .prefix("stage-")
            .tempdir_in(plane.folder())
            .unwrap();
        let mark = plane.audit().mark().unwrap();
        let namespace = plane.namespace(prefix).unwrap();
        let stage = Self {
            mark,
            port: namespace.port().unwrap(),
            namespace,
            folder,
            lives: AtomicU32::new(0),
            extra: BTreeMap::new(),
            command: &["start"],
        };
        fs::create_dir(stage.path("global-hooks")).unwrap();
        stage.write(
            "modules/values.yaml",
            "goodEnabled: true\nvictimEnabled: true\nlateEnabled: true\n",
        );
        stage.add_module("010-good");
        stage.add_module("020-victim");
        stage.write("modules/020-victim/hooks/hook.sh", HOOK);
        stage
    }

    /// The same after a first life in which both were installed.
    pub(crate) fn installed(prefix: &str) -> Self {
        let stage = Self::build(prefix);
        let operator = stage.start();
        operator.wait_for(&[CONVERGED]);
        operator.stop();
        stage.assert_installed(&["good", "victim"]);
        stage
    }

    /// A module with one ConfigMap of its name, which shows one of its values.
    pub(crate) fn add_module(&self, dir: &str) {
        let name = dir.rsplit('-').next().unwrap();
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
        self.write(&format!("modules/{dir}/Chart.yaml"), &chart);
        self.write(
            &format!("modules/{dir}/templates/a.yaml"),
            &TEMPLATE.replace("NAME", name),
        );
        self.write(
            &format!("modules/{dir}/values.yaml"),
            &format!("{name}: {{size: small}}\n"),
        );
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Writes a file; a script becomes executable.
    pub(crate) fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Gives operators that are started from now on another variable.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.extra.insert(name, value.into());
    }

    /// Has operators that are started from now on serve hooks alone.
    pub(crate) fn serve_hooks(&mut self) {
        self.command = &["hooks", "start"];
    }

    /// The port of probes and metrics.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Takes a variable of that name away again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.extra.remove(name);
    }

    /// What such a variable was set to.
    pub(crate) fn variable(&self, name: &str) -> String {
        self.extra[name].to_str().unwrap().to_owned()
    }

    pub(crate) fn namespace(&self) -> &Namespace<'static> {
        &self.namespace
    }

    /// What kubectl says to the admin.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// Creates the ConfigMap of the operator, or replaces it.
    pub(crate) fn configure(&self, data: &Value) {
        let config_map = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data,
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl
            .feed(["apply", "--filename=-"], &config_map.to_string())
            .unwrap();
    }

    /// The newest revisions' numbers and what the objects show, as in `good:1:small victim:2:large`.
    pub(crate) fn sizes(&self) -> String {
        let of_helm = Only::Labels("app.kubernetes.io/managed-by=Helm");
        let objects = self.namespace.objects("configmaps", of_helm).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or("<none>").to_owned();
        let pair = |object: &Value| {
            format!(
                "{}:{}",
                text(&object["metadata"]["name"]),
                text(&object["data"]["size"])
            )
        };
        objects.iter().map(pair).collect::<Vec<_>>().join(" ")
    }

    /// All that the modules have in the cluster: kind, name, uid, when it began to be deleted, and what it shows.
    pub(crate) fn objects(&self) -> Vec<String> {
        let columns = "N:.metadata.name,U:.metadata.uid,D:.metadata.deletionTimestamp,S:.data.size";
        let listed = self.kubectl(&format!(
            "get configmaps,persistentvolumeclaims -l app.kubernetes.io/managed-by=Helm \
             -o=custom-columns=K:.kind,{columns} --no-headers"
        ));
        let rows = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        rows.collect()
    }

    /// Waits until the objects show that, as in `good:small victim:large`.
    pub(crate) fn wait_for_sizes(&self, expected: &str) {
        let look = || {
            let sizes = self.sizes();
            if sizes == expected { Ok(Some(())) } else { Err(sizes) }
        };
        wait_until(PATIENCE, expected, look).unwrap();
    }

    /// These releases and no others are deployed, their objects exist, and nothing was deleted since the beginning.
    pub(crate) fn assert_installed(&self, modules: &[&str]) {
        let columns = "-o=custom-columns=N:.metadata.labels.name,S:.metadata.labels.status --no-headers";
        let secrets = self.kubectl(&format!("get secrets -l owner=helm,status!=superseded {columns}"));
        let mut releases: Vec<String> = secrets
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        releases.sort();
        let expected: Vec<String> = modules.iter().map(|name| format!("{name} deployed")).collect();
        assert_eq!(releases, expected);
        let names = self.kubectl("get configmaps -o=custom-columns=N:.metadata.name --no-headers");
        for module in modules {
            assert!(
                names.lines().any(|name| name == *module),
                "{module} has no object: {names}"
            );
        }
        let deletes = self
            .namespace
            .plane()
            .audit()
            .since(self.mark)
            .unwrap()
            .of(User::Operator);
        let deletes = deletes.within(self.namespace.name()).deleting();
        // Our own notes come and go.
        let notes = ["addon-operator-state", "addon-operator-intents"];
        let deletes = deletes.that(|record| !notes.contains(&record.name.as_str()));
        assert!(deletes.is_empty(), "{deletes}");
    }

    /// The output of a command that talks to the cluster.
    pub(crate) fn command(&self, arguments: &str) -> String {
        let mut command = process::command(OPERATOR);
        command.args(arguments.split(' ')).env_clear().envs(self.environment());
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn start(&self) -> Operator<'_> {
        let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let log = self.path(&format!("operator-{number}.log"));
        self.namespace.show_on_panic(&format!("operator, life {number}"), &log);
        let output = fs::File::create(&log).unwrap().into_parts().0;
        let mut command = process::command(OPERATOR);
        command
            .args(self.command)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Operator {
            stage: self,
            bound: Bound::start(command, Bond::Group).unwrap(),
            log,
        }
    }

    /// The output of a command that asks no operator.
    pub(crate) fn tell(arguments: &[&str]) -> String {
        let mut command = process::command(OPERATOR);
        command.args(arguments).env_clear();
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts an operator that has to give up, and returns what it said.
    pub(crate) fn refused(&self) -> String {
        let mut operator = self.start();
        let code = wait_until(PATIENCE, "a refused start", || operator.bound.ended())
            .unwrap()
            .code();
        let said = operator.said();
        assert_eq!(code, Some(1), "{said}");
        said
    }

    fn environment(&self) -> BTreeMap<&'static str, OsString> {
        let plane = self.namespace.plane();
        let own = |name: &str| self.path(name).into_os_string();
        let mut variables = BTreeMap::from([
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", own("home")),
            ("KUBECONFIG", self.namespace.kubeconfig(User::Operator).into()),
            ("HELM_BIN", plane.program(Part::Helm3).into()),
            ("ADDON_OPERATOR_NAMESPACE", self.namespace.name().into()),
            ("ADDON_OPERATOR_MODULES_DIR", own("modules")),
            ("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", own("global-hooks")),
            ("ADDON_OPERATOR_TMP_DIR", own("tmp")),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
            ("ADDON_OPERATOR_LISTEN_PORT", self.port.to_string().into()),
            ("DEBUG_UNIX_SOCKET", own("debug.socket")),
        ]);
        variables.extend(self.extra.clone());
        variables
    }
}

/// A running operator. It is killed at the end of its test, whatever becomes of that.
pub(crate) struct Operator<'a> {
    stage: &'a Stage,
    bound: Bound,
    log: PathBuf,
}

impl Operator<'_> {
    pub(crate) fn process(&self) -> u32 {
        self.bound.id()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// The log records that hold all these words.
    pub(crate) fn records(&self, words: &[&str]) -> Vec<String> {
        let fits = |line: &&str| words.iter().all(|word| line.contains(word));
        self.said().lines().filter(fits).map(ToOwned::to_owned).collect()
    }

    /// Waits for a log record that holds all these words.
    pub(crate) fn wait_for(&self, words: &[&str]) -> String {
        self.wait_for_more(words, 1)
    }

    /// Waits until there are as many such records.
    pub(crate) fn wait_for_more(&self, words: &[&str], number: usize) -> String {
        let look = || Ok::<_, String>(self.records(words).into_iter().nth(number - 1));
        wait_until(PATIENCE, &format!("{number} times {words:?} in the log"), look).unwrap()
    }

    /// What a path on the public port answers.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.try_get(path).unwrap()
    }

    pub(crate) fn try_get(&self, path: &str) -> io::Result<(u16, String)> {
        get_from(&format!("127.0.0.1:{}", self.stage.port), path)
    }

    /// Waits for an Event with that reason, and returns all of the namespace.
    pub(crate) fn wait_for_event(&self, reason: &str) -> String {
        let look = || {
            let events = self.stage.kubectl("get events -o yaml");
            let found = events.contains(&format!("reason: {reason}"));
            if found { Ok(Some(events)) } else { Err(events) }
        };
        wait_until(PATIENCE, reason, look).unwrap()
    }

    /// Waits until a path answers with that status and all these words.
    pub(crate) fn wait_for_answer(&self, path: &str, code: u16, words: &[&str]) {
        let look = || {
            let (found, body) = self.try_get(path).map_err(|error| error.to_string())?;
            let fits = found == code && words.iter().all(|word| body.contains(word));
            if fits {
                Ok(Some(()))
            } else {
                Err(format!("{found} {body}"))
            }
        };
        wait_until(PATIENCE, path, look).unwrap();
    }

    /// What a command of the command line says.
    pub(crate) fn ask(&self, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All that a command of the command line says, whether it fails or not.
    pub(crate) fn try_ask(&self, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// The error output of a command of the command line that has to fail.
    pub(crate) fn ask_in_vain(&self, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8(output.stderr).unwrap()
    }

    fn command(&self, arguments: &str) -> std::process::Command {
        let mut command = process::command(OPERATOR);
        command
            .args(arguments.split(' '))
            .env_clear()
            .env("DEBUG_UNIX_SOCKET", self.stage.path("debug.socket"));
        command
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.bound.id()
    }

    /// Asks it to stop, which it has to do well.
    pub(crate) fn stop(mut self) {
        process::signal(self.bound.id(), libc::SIGTERM);
        let code = wait_until(PATIENCE, "the end of the operator", || self.bound.ended())
            .unwrap()
            .code();
        assert_eq!(code, Some(0), "{}", self.said());
        assert!(!self.said().contains("panicked"), "{}", self.said());
    }
}

/// What a path at any address answers.
pub(crate) fn get_from(address: &str, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    code.zip(body).ok_or_else(|| io::Error::other(answer))
}

/// All of them stand in one text.
#[track_caller]
pub(crate) fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

pub(crate) fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}
