//! The stage of a test: a namespace with an operator of its own, two good modules, and functions that read the results.
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

/// Far longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {size: {{ .Values.NAME.size | quote }}}\n";
const HOOK: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; fi\n";

/// The log message at the end of every converge, including the first.
pub(crate) const CONVERGED: &str = "Converge modules finished";

pub(crate) struct Stage {
    /// Prints the logs when a test panics, so it is declared (and dropped) before the folder that contains them.
    namespace: Namespace<'static>,
    folder: TempDir,
    port: u16,
    lives: AtomicU32,
    /// The mark in the audit log after which nothing may be deleted.
    mark: Mark,
    /// Additional environment variables; they override the usual ones.
    extra: BTreeMap<&'static str, OsString>,
    /// The subcommand with which the operator is started.
    command: &'static [&'static str],
}

impl Stage {
    /// A stage with the modules `good` and `victim`. A third one, `late`, is switched on but not on disk yet.
    pub(crate) fn build(prefix: &str) -> Self {
        let plane = testbed::shared::plane();
        // In the folder of the control plane, which the next start removes even after a kill.
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

    /// A stage on which an earlier operator has installed both modules.
    pub(crate) fn installed(prefix: &str) -> Self {
        let stage = Self::build(prefix);
        let operator = stage.start();
        operator.wait_for(&[CONVERGED]);
        operator.stop();
        stage.assert_installed(&["good", "victim"]);
        stage
    }

    /// Adds a module with one ConfigMap of its name, whose data show one value of the module.
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

    /// Writes a file; one that begins with `#!` becomes executable.
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

    /// Sets an environment variable for operators that are started later.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.extra.insert(name, value.into());
    }

    /// Makes operators that are started later serve hooks without modules.
    pub(crate) fn serve_hooks(&mut self) {
        self.command = &["hooks", "start"];
    }

    /// The port of the probes and metrics.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Removes a variable that was set before.
    pub(crate) fn unset(&mut self, name: &str) {
        self.extra.remove(name);
    }

    /// The value of a variable that was set before.
    pub(crate) fn variable(&self, name: &str) -> String {
        self.extra[name].to_str().unwrap().to_owned()
    }

    pub(crate) fn namespace(&self) -> &Namespace<'static> {
        &self.namespace
    }

    /// The output of kubectl as the admin.
    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// Creates or replaces the operator's ConfigMap.
    pub(crate) fn configure(&self, data: &Value) {
        let config_map = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data,
        });
        self.namespace.apply("configmap", &config_map).unwrap();
    }

    /// The revision of each release and the size that its object shows, as in `good:1:small victim:2:large`.
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

    /// All objects of the modules, a line each: kind, name, uid, deletion time, and data.
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

    /// Waits until the objects show these sizes, as in `good:small victim:large`.
    pub(crate) fn wait_for_sizes(&self, expected: &str) {
        let look = || {
            let sizes = self.sizes();
            if sizes == expected { Ok(Some(())) } else { Err(sizes) }
        };
        wait_until(PATIENCE, expected, look).unwrap();
    }

    /// Checks that exactly these releases are deployed, that their objects exist, and that nothing was deleted since
    /// the stage was built.
    pub(crate) fn assert_installed(&self, modules: &[&str]) {
        let records = Only::Labels("owner=helm,status!=superseded");
        let records = self.namespace.metadata("secrets", records).unwrap();
        let label = |record: &Value, name: &str| record["metadata"]["labels"][name].as_str().unwrap().to_owned();
        let mut releases: Vec<String> = records
            .iter()
            .map(|record| format!("{} {}", label(record, "name"), label(record, "status")))
            .collect();
        releases.sort();
        let expected: Vec<String> = modules.iter().map(|name| format!("{name} deployed")).collect();
        assert_eq!(releases, expected);
        let names = self.namespace.metadata("configmaps", Only::All).unwrap();
        for module in modules {
            assert!(
                names.iter().any(|object| object["metadata"]["name"] == *module),
                "{module} has no object: {names:?}"
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
        // The operator creates and deletes its own state Secrets, and copies of modules from registries.
        let notes = [
            "addon-operator-state",
            "addon-operator-intents",
            "addon-operator-source-",
        ];
        let deletes = deletes.that(|record| !notes.iter().any(|note| record.name.starts_with(note)));
        assert!(deletes.is_empty(), "{deletes}");
    }

    /// The outcome of an addon-operator command that needs neither a cluster nor an operator.
    pub(crate) fn said(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = process::command(OPERATOR);
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("TMPDIR", self.folder.path());
        process::run(command, None).unwrap()
    }

    /// The output of an addon-operator command that reads the cluster.
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

    /// The output of an addon-operator command that needs neither a cluster nor an operator.
    pub(crate) fn tell(arguments: &[&str]) -> String {
        let mut command = process::command(OPERATOR);
        command.args(arguments).env_clear();
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts an operator that has to refuse to run, and returns its log.
    pub(crate) fn refused(&self) -> String {
        let mut operator = self.start();
        let code = wait_until(PATIENCE, "a refused start", || operator.bound.ended())
            .unwrap()
            .code();
        let said = operator.said();
        assert_eq!(code, Some(1), "{said}");
        said
    }

    /// The variables of an operator.
    pub(crate) fn environment(&self) -> BTreeMap<&'static str, OsString> {
        let plane = self.namespace.plane();
        let own = |name: &str| self.path(name).into_os_string();
        let mut variables = BTreeMap::from([
            ("PATH", testbed::jq::search_path().into()),
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

/// A running operator. Dropping it kills it, also when its test fails.
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

    /// The log records that contain all these words.
    pub(crate) fn records(&self, words: &[&str]) -> Vec<String> {
        let fits = |line: &&str| words.iter().all(|word| line.contains(word));
        self.said().lines().filter(fits).map(ToOwned::to_owned).collect()
    }

    /// Waits for a log record that contains all these words, and returns it.
    pub(crate) fn wait_for(&self, words: &[&str]) -> String {
        self.wait_for_more(words, 1)
    }

    /// Waits until this many log records contain all these words.
    pub(crate) fn wait_for_more(&self, words: &[&str], number: usize) -> String {
        let last = || self.said().lines().last().unwrap_or("an empty log").to_owned();
        let look = || {
            self.records(words)
                .into_iter()
                .nth(number - 1)
                .map(Some)
                .ok_or_else(last)
        };
        wait_until(PATIENCE, &format!("{number} times {words:?} in the log"), look).unwrap()
    }

    /// The status and body of a path on the public port.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.try_get(path).unwrap()
    }

    pub(crate) fn try_get(&self, path: &str) -> io::Result<(u16, String)> {
        get_from(&format!("127.0.0.1:{}", self.stage.port), path)
    }

    /// Waits for an Event with that reason, and returns all Events of the namespace.
    pub(crate) fn wait_for_event(&self, reason: &str) -> String {
        let look = || {
            let events = self.stage.kubectl("get events -o yaml");
            let found = events.contains(&format!("reason: {reason}"));
            if found { Ok(Some(events)) } else { Err(events) }
        };
        wait_until(PATIENCE, reason, look).unwrap()
    }

    /// Waits until a path answers with this status and all these words.
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

    /// The output of a debug command, which has to succeed.
    pub(crate) fn ask(&self, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the answer about a module contains all of these texts.
    pub(crate) fn wait_for_why(&self, module: &str, texts: &[&str]) {
        let claim = format!("why {module} says {texts:?}");
        wait_until(PATIENCE, &claim, || {
            let said = self.try_ask(&format!("why {module}"));
            let all = texts.iter().all(|text| said.contains(text));
            all.then_some(Some(())).ok_or(said)
        })
        .unwrap();
    }

    /// The output of a debug command, whether it fails or not.
    pub(crate) fn try_ask(&self, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// The error output of a debug command that has to fail.
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

    /// The answer to a command that ends with this exit code.
    pub(crate) fn ask_for_code(&self, code: i32, arguments: &str) -> String {
        let output = process::run(self.command(arguments), None).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, arguments: &str) -> std::process::Command {
        let mut command = process::command(OPERATOR);
        command
            .args(arguments.split(' '))
            .env_clear()
            .env("DEBUG_UNIX_SOCKET", self.stage.path("debug.socket"));
        command
    }

    /// The operator's process id.
    pub(crate) fn id(&self) -> u32 {
        self.bound.id()
    }

    /// Stops the operator, which has to end with success.
    pub(crate) fn stop(mut self) {
        process::signal(self.bound.id(), libc::SIGTERM);
        let code = wait_until(PATIENCE, "the end of the operator", || self.bound.ended())
            .unwrap()
            .code();
        assert_eq!(code, Some(0), "{}", self.said());
        assert!(!self.said().contains("panicked"), "{}", self.said());
    }
}

/// The status and body of a path at any address.
pub(crate) fn get_from(address: &str, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    // A server that does not answer must fail the test, not block it.
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    code.zip(body).ok_or_else(|| io::Error::other(answer))
}

/// Checks that a text contains all these words.
#[track_caller]
pub(crate) fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

pub(crate) fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}
