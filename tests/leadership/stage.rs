//! A namespace with modules, and replicas of the operator in it: each has the name of a pod, an address and files of
//! its own.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fs_err as fs;
use jiff::Timestamp;
use tempfile::TempDir;
use testbed::audit::{Mark, Records};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::proxy::Proxy;
use testbed::wait::wait_until;
use testbed::watched_helm::WatchedHelm;

/// The longest wait: a lease has to expire, and then a busy machine needs time for a converge.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The kind that the module `eyes` watches.
const SEEN: &str = "ServiceAccount";
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
/// The label of the leading pod.
pub(crate) const LABEL: &str = "addon-operator/leader";
/// The number of the module's objects. There are many, so that helm works on them for some time.
const MEMBERS: usize = 100;
const GLOBAL_HOOK: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then
  echo "$REPLICA config" >>"$NOTES/hooks"
  cat <<END
configVersion: v1
onStartup: 1
kubernetes:
- name: crowd
  kind: ConfigMap
  namespace: {nameSelector: {matchNames: [$IN]}}
  executeHookOnEvent: []
END
  exit 0
fi
echo "$REPLICA runs" >>"$NOTES/hooks"
"#;
/// The hook of modules that have nothing else. Each module watches a kind that no other hook watches.
const MODULE_HOOK: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then
  echo "$REPLICA config" >>"$NOTES/@MODULE@"
  cat <<END
configVersion: v1
kubernetes:
- name: seen
  kind: @KIND@
  namespace: {nameSelector: {matchNames: [$IN]}}
END
  exit 0
fi
echo "$REPLICA runs" >>"$NOTES/@MODULE@"
"#;

pub(crate) struct Stage {
    /// Prints the logs when a test panics, so it is declared (and dropped) before the folder that contains them.
    namespace: Namespace<'static>,
    folder: TempDir,
    port: u16,
    /// The duration of the lease, if it is not the default.
    lease: Option<&'static str>,
}

impl Stage {
    /// A stage with a short lease.
    pub(crate) fn with_lease(prefix: &str, lease: &'static str) -> Self {
        Self {
            lease: Some(lease),
            ..Self::build(prefix)
        }
    }

    pub(crate) fn build(prefix: &str) -> Self {
        let plane = testbed::shared::plane();
        // In the folder of the control plane, which the next start removes even after a kill.
        let folder = tempfile::Builder::new()
            .prefix("stage-")
            .tempdir_in(plane.folder())
            .unwrap();
        let namespace = plane.namespace(prefix).unwrap();
        let stage = Self {
            port: namespace.port().unwrap(),
            namespace,
            folder,
            lease: None,
        };
        let mut objects = String::new();
        for member in 0..MEMBERS {
            let _ = writeln!(
                objects,
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: crowd-{member}}}"
            );
        }
        let flags = ["crowd", "eyes", "shy", "off"].map(|module| format!("{module}Enabled: {}\n", module != "off"));
        stage.write("modules/values.yaml", &flags.concat());
        for (order, module, kind) in [(20, "eyes", SEEN), (30, "shy", "LimitRange"), (40, "off", "LimitRange")] {
            let hook = MODULE_HOOK.replace("@MODULE@", module).replace("@KIND@", kind);
            stage.write(&format!("modules/0{order}-{module}/hooks/watch.sh"), &hook);
        }
        stage.write(
            "modules/030-shy/enabled",
            "#!/bin/sh\necho false >\"$MODULE_ENABLED_RESULT\"\n",
        );
        stage.write(
            "modules/010-crowd/Chart.yaml",
            "apiVersion: v2\nname: crowd\nversion: 0.1.0\n",
        );
        stage.write("modules/010-crowd/templates/crowd.yaml", &objects);
        stage.write("global-hooks/note.sh", GLOBAL_HOOK);
        fs::create_dir(stage.path("notes")).unwrap();
        stage
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    pub(crate) fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace<'static> {
        &self.namespace
    }

    /// A proxy before the API server, and the kubeconfig for an operator behind it.
    pub(crate) fn proxy(&self) -> (Proxy, PathBuf) {
        let (plane, namespace) = (self.namespace.plane(), self.namespace.name());
        let proxy = Proxy::start(plane, User::Operator).unwrap();
        let kubeconfig = self.path("through-the-proxy");
        fs::write(&kubeconfig, proxy.kubeconfig(plane, User::Operator, namespace)).unwrap();
        (proxy, kubeconfig)
    }

    /// The lines of the notes with this name.
    pub(crate) fn notes(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("notes").join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// The statuses of the release's revisions, the oldest first.
    pub(crate) fn history(&self) -> String {
        let columns = "-o=custom-columns=S:.metadata.labels.status --no-headers";
        let states = self.kubectl(&format!(
            "get secrets -l owner=helm,name=crowd --sort-by=.metadata.creationTimestamp {columns}"
        ));
        states.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Waits until the revisions have these statuses.
    pub(crate) fn wait_for_history(&self, states: &str) {
        let look = || match self.history() {
            found if found == states => Ok(Some(())),
            found => Err(found),
        };
        wait_until(PATIENCE, &format!("the history '{states}'"), look).unwrap();
    }

    pub(crate) fn lease(&self, field: &str) -> String {
        self.lease_of("addon-operator", field)
    }

    pub(crate) fn lease_of(&self, program: &str, field: &str) -> String {
        self.kubectl(&format!(
            "get lease {program}-leader-election -o=jsonpath={{.spec.{field}}}"
        ))
    }

    /// The time at which the lease runs out without a renewal.
    pub(crate) fn end_of_lease(&self) -> Timestamp {
        let lasts = self.lease("leaseDurationSeconds").parse().unwrap();
        self.lease("renewTime").parse::<Timestamp>().unwrap() + Duration::from_secs(lasts)
    }

    /// The requests in the stage's namespace by operators with this user, and by their helms.
    pub(crate) fn requests(&self, since: Mark, user: User) -> Records {
        let all = self.namespace.plane().audit().since(since).unwrap();
        all.of(user)
            .within(self.namespace.name())
            .that(|record| !record.user_agent.starts_with("kubectl"))
    }

    /// The requests by operators with this user for the kind that the module `eyes` watches. A watch counts when it has
    /// ended.
    pub(crate) fn looks(&self, since: Mark, user: User) -> Records {
        self.requests(since, user)
            .that(|record| record.resource == "serviceaccounts")
    }

    /// Starts a replica with this kubeconfig.
    pub(crate) fn start(&self, replica: &'static str, kubeconfig: PathBuf) -> Replica {
        self.launch(replica, kubeconfig, "ADDON_OPERATOR", &["start"], None)
    }

    /// Starts a replica whose log goes into a pipe, which only the caller can read.
    pub(crate) fn start_unread(&self, replica: &'static str, kubeconfig: PathBuf) -> (Replica, PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        let replica = self.launch_into(writer.into(), replica, kubeconfig, "ADDON_OPERATOR", &["start"], None);
        (replica, reader)
    }

    /// Starts a replica beside a pod of its name, which gets the leader's label while the replica leads.
    pub(crate) fn start_marked(&self, replica: &'static str, kubeconfig: PathBuf) -> Replica {
        self.launch(replica, kubeconfig, "ADDON_OPERATOR", &["start"], Some(LABEL))
    }

    /// The pods with the leader's label.
    pub(crate) fn marked(&self) -> String {
        self.kubectl(&format!("get pods --selector={LABEL}=true --output=name"))
    }

    /// Starts a replica that serves hooks without modules.
    pub(crate) fn start_hooks(&self, replica: &'static str, kubeconfig: PathBuf) -> Replica {
        self.launch(replica, kubeconfig, "SHELL_OPERATOR", &["hooks", "start"], None)
    }

    fn launch(
        &self,
        replica: &'static str,
        kubeconfig: PathBuf,
        prefix: &str,
        arguments: &[&str],
        label: Option<&str>,
    ) -> Replica {
        let output = fs::File::create(self.path(&format!("{replica}.log"))).unwrap();
        self.launch_into(
            output.into_parts().0.into(),
            replica,
            kubeconfig,
            prefix,
            arguments,
            label,
        )
    }

    fn launch_into(
        &self,
        output: OwnedFd,
        replica: &'static str,
        kubeconfig: PathBuf,
        prefix: &str,
        arguments: &[&str],
        label: Option<&str>,
    ) -> Replica {
        let place = 2 + replica.bytes().next_back().unwrap() - b'a';
        let address = SocketAddr::from((Ipv4Addr::new(127, 0, 0, place), self.port));
        let log = self.path(&format!("{replica}.log"));
        self.namespace.show_on_panic(replica, &log);
        let notes = self.path("notes").into_os_string().into_string().unwrap();
        let helm = WatchedHelm::new(self.namespace.plane().program(Part::Helm3), &notes).unwrap();
        fs::create_dir_all(self.path(replica)).unwrap();
        helm.write(&self.path(replica).join("helm"), replica).unwrap();
        let own = |name: &str| self.path(replica).join(name).into_os_string();
        let named = |name: &str| format!("{prefix}_{name}");
        let mut variables: BTreeMap<String, OsString> = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".into()),
            ("HOME".to_owned(), own("home")),
            ("KUBECONFIG".to_owned(), kubeconfig.into()),
            ("HELM_BIN".to_owned(), own("helm")),
            ("REPLICA".to_owned(), replica.into()),
            ("NOTES".to_owned(), notes.into()),
            ("IN".to_owned(), self.namespace.name().into()),
            (named("HA"), "true".into()),
            (named("POD"), replica.into()),
            (named("NAMESPACE"), self.namespace.name().into()),
            (named("MODULES_DIR"), self.path("modules").into()),
            (named("GLOBAL_HOOKS_DIR"), self.path("global-hooks").into()),
            (named("HOOKS_DIR"), self.path("global-hooks").into()),
            (named("TMP_DIR"), own("tmp")),
            (named("LISTEN_ADDRESS"), address.ip().to_string().into()),
            (named("LISTEN_PORT"), self.port.to_string().into()),
            ("DEBUG_UNIX_SOCKET".to_owned(), own("debug.socket")),
        ]);
        variables.extend(label.map(|label| (named("LEADER_LABEL"), label.into())));
        variables.extend(self.lease.map(|lease| (named("LEASE_DURATION"), lease.into())));
        let mut command = process::command(OPERATOR);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(variables);
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Replica {
            bound: Bound::start(command, Bond::Group).unwrap(),
            address,
            log,
            socket: own("debug.socket"),
            identity: format!("{replica}.127-0-0-{place}.{}.pod", self.namespace.name()),
        }
    }
}

/// A running operator. Dropping it kills it, also when its test fails.
pub(crate) struct Replica {
    bound: Bound,
    pub(crate) address: SocketAddr,
    log: PathBuf,
    socket: OsString,
    pub(crate) identity: String,
}

impl Replica {
    pub(crate) fn said(&self) -> String {
        // A replica whose log goes into a pipe has no file.
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until the log contains these words this many times.
    pub(crate) fn wait_for(&self, words: &str, times: usize) {
        let look = || Ok::<_, String>((self.said().matches(words).count() >= times).then_some(()));
        wait_until(PATIENCE, &format!("'{words}' in the log"), look).unwrap();
    }

    /// The status and body of a path on the public port.
    pub(crate) fn get(&self, path: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address)?;
        // A server that does not answer must fail the test, not block it.
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        code.zip(body).ok_or_else(|| io::Error::other(answer))
    }

    /// Waits until a path answers with this status and these words.
    pub(crate) fn wait_for_answer(&self, path: &str, code: u16, words: &str) {
        let look = || match self.get(path) {
            Ok((found, body)) if found == code && body.contains(words) => Ok(Some(())),
            other => Err(format!("{other:?}")),
        };
        wait_until(PATIENCE, path, look).unwrap();
    }

    pub(crate) fn wait_until_ready(&self) {
        self.wait_for_answer("/readyz", 200, "Startup converge done.");
    }

    /// The error output of a debug command that has to fail.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let mut command = process::command(OPERATOR);
        command
            .args(arguments.split(' '))
            .env_clear()
            .env("DEBUG_UNIX_SOCKET", &self.socket);
        let output = process::run(command, None).unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.signal(libc::SIGKILL);
        self.wait_for_end();
    }

    pub(crate) fn process(&self) -> u32 {
        self.bound.id()
    }

    pub(crate) fn signal(&self, signal: i32) {
        process::signal(self.bound.id(), signal);
    }

    /// Waits for the end, and returns the exit code, if there is one.
    pub(crate) fn wait_for_end(&mut self) -> Option<i32> {
        let ended = wait_until(PATIENCE, "the end of the operator", || self.bound.ended());
        ended.unwrap().code()
    }

    /// Stops the operator, which has to end with success. Returns the time of its end.
    pub(crate) fn stop(mut self) -> Instant {
        process::signal(self.bound.id(), libc::SIGTERM);
        let status = wait_until(PATIENCE, "the end of the operator", || self.bound.ended()).unwrap();
        let ended = Instant::now();
        assert_eq!(status.code(), Some(0), "{}", self.said());
        assert!(!self.said().contains("panicked"), "{}", self.said());
        ended
    }
}
