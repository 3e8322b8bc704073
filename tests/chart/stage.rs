//! A namespace with the chart installed. The built program takes the place of one of the pods: it has that pod's name,
//! the environment that the chart gives it, and the token of its account.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::audit::{Mark, Records};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

use super::tool::{chart, helm, image_said, printed};

pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

/// The two kinds of webhooks, each with a Service of its own.
pub(crate) const SIDES: [&str; 2] = ["validating", "conversion"];

/// An address of this machine that is not loopback, because an API server accepts no loopback address for an endpoint.
pub(crate) fn here() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    // No packet is sent: connecting a UDP socket only chooses the source address.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).unwrap();
    socket.local_addr().unwrap().ip()
}

pub(crate) fn name_of(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

pub(crate) struct Stage {
    /// Prints the log when a test panics, so it is declared (and dropped) before the folder that contains it.
    pub(crate) namespace: Namespace<'static>,
    folder: TempDir,
    helm: Part,
}

impl Stage {
    pub(crate) fn build(prefix: &str, helm: Part) -> Self {
        let plane = testbed::shared::plane();
        // In the folder of the control plane, which the next start removes even after a kill.
        let folder = tempfile::Builder::new()
            .prefix("chart-")
            .tempdir_in(plane.folder())
            .unwrap();
        let namespace = plane.namespace(prefix).unwrap();
        // This namespace refuses pods that are not restricted.
        let restricted = "pod-security.kubernetes.io/enforce=restricted";
        plane
            .kubectl(["label", "namespace", namespace.name(), restricted])
            .unwrap();
        Self {
            namespace,
            folder,
            helm,
        }
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    pub(crate) fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text.replace("@NAMESPACE@", self.namespace.name())).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    pub(crate) fn patch(&self, what: &str, patch: &Value) {
        let patch = format!("--patch={patch}");
        let words = what.split(' ').chain(["--type=merge", &patch]);
        self.namespace.kubectl(["patch"].into_iter().chain(words)).unwrap();
    }

    /// Runs a helm command on the chart's release, as a person would.
    pub(crate) fn chart(&self, command: &str, arguments: &[&str]) -> String {
        self.chart_in(&chart(), command, arguments)
    }

    /// Runs a helm command with a chart from another folder.
    pub(crate) fn chart_in(&self, chart: &Path, command: &str, arguments: &[&str]) -> String {
        let namespace = format!("--namespace={}", self.namespace.name());
        let image = image_said();
        let chart = [chart.to_str().unwrap(), &image];
        let chart = (command != "uninstall").then_some(chart);
        let all = [command, "ao"]
            .into_iter()
            .chain(chart.into_iter().flatten())
            .chain(arguments.iter().copied());
        let kubeconfig = self.namespace.kubeconfig(User::Admin);
        printed(helm(self.helm, Some(&kubeconfig), all.chain([namespace.as_str()])))
    }

    /// Writes a copy of the chart whose Services select the pod with the leader's label.
    pub(crate) fn write_older_chart(&self) {
        let copied = process::run(
            {
                let mut copy = process::command("cp");
                copy.arg("-r").arg(chart()).arg(self.path("older"));
                copy
            },
            None,
        );
        assert!(copied.unwrap().status.success());
        let file = self.path("older/templates/services.yaml");
        let text = fs::read_to_string(&file).unwrap();
        let ours = "spec:\n  ports:\n";
        assert_eq!(
            text.matches(ours).count(),
            3,
            "the Service of the webhooks, the one of the notes, and the one of the page"
        );
        let older =
            "spec:\n  publishNotReadyAddresses: true\n  selector: {addon-operator/leader: \"true\"}\n  ports:\n";
        fs::write(file, text.replacen(ours, older, 1)).unwrap();
    }

    /// A file with the output of `rbac generate` for the modules.
    pub(crate) fn rights(&self) -> PathBuf {
        let mut command = process::command(OPERATOR);
        command
            .args(["rbac", "generate"])
            .arg(self.path("modules"))
            .arg("--global-hooks-dir")
            .arg(self.path("global-hooks"))
            .args(["--namespace", self.namespace.name()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HELM_BIN", testbed::shared::program(self.helm))
            .current_dir(self.folder.path());
        let output = process::run(command, None).unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
        let file = self.path("rights.yaml");
        fs::write(&file, output.stdout).unwrap();
        file
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("{arguments} --output=json"))).unwrap()
    }

    /// The pods of the chart, which are pending because there is no node.
    pub(crate) fn pods(&self) -> Vec<Value> {
        let look = || {
            let mut found = self.json("get pods --selector=app.kubernetes.io/name=addon-operator");
            let Value::Array(pods) = found["items"].take() else {
                return Err("no list".to_owned());
            };
            Ok((pods.len() == 2).then_some(pods))
        };
        wait_until(PATIENCE, "two pods", look).unwrap()
    }

    /// The user name of the operator's account.
    pub(crate) fn account(&self) -> String {
        format!("system:serviceaccount:{}:ao-addon-operator", self.namespace.name())
    }

    fn kubeconfig(&self, own: &Path) -> PathBuf {
        let mut config = self.json("config view --raw --minify");
        let token = self.kubectl("create token ao-addon-operator");
        config["users"][0]["user"] = json!({ "token": token.trim() });
        let file = own.join("kubeconfig");
        fs::write(&file, config.to_string()).unwrap();
        file
    }

    /// The environment of a pod's container as a kubelet would make it, with the values that differ on this machine
    /// replaced.
    fn environment(&self, pod: &Value, folder: &Path, webhooks: [SocketAddr; 2]) -> BTreeMap<String, OsString> {
        let (container, address) = (&pod["spec"]["containers"][0], here().to_string());
        let said = container["env"].as_array().unwrap().iter().map(|variable| {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("metadata.name") => name_of(pod),
                Some("metadata.namespace") => self.namespace.name(),
                Some("status.podIP") => address.as_str(),
                other => {
                    assert_eq!(other, None, "no kubelet fills that in here");
                    variable["value"].as_str().unwrap_or_default()
                }
            };
            (variable["name"].as_str().unwrap().to_owned(), OsString::from(value))
        });
        let mut variables: BTreeMap<String, OsString> = said.collect();
        let [validating, conversion] = webhooks;
        let own: [(&str, OsString); 13] = [
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", folder.join("home").into()),
            ("KUBECONFIG", self.kubeconfig(folder).into()),
            ("HELM_BIN", testbed::shared::program(self.helm).into()),
            ("ADDON_OPERATOR_MODULES_DIR", self.path("modules").into()),
            ("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", self.path("global-hooks").into()),
            ("ADDON_OPERATOR_TMP_DIR", folder.join("tmp").into()),
            ("DEBUG_UNIX_SOCKET", folder.join("debug.socket").into()),
            (
                "ADDON_OPERATOR_LISTEN_PORT",
                self.namespace.port().unwrap().to_string().into(),
            ),
            ("VALIDATING_WEBHOOK_LISTEN_ADDRESS", validating.ip().to_string().into()),
            ("VALIDATING_WEBHOOK_LISTEN_PORT", validating.port().to_string().into()),
            ("CONVERSION_WEBHOOK_LISTEN_ADDRESS", conversion.ip().to_string().into()),
            ("CONVERSION_WEBHOOK_LISTEN_PORT", conversion.port().to_string().into()),
        ];
        variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
        // A kubelet would mount the Secret at this path.
        if let Some(token) = variables.get_mut("ADDON_OPERATOR_NOTIFY_TOKEN") {
            let file = folder.join("token");
            fs::write(&file, "secret word").unwrap();
            *token = file.into();
        }
        variables
    }

    /// Makes the Services, which would lead to pods, lead to addresses of this machine.
    fn reached(&self) -> [SocketAddr; 2] {
        SIDES.map(|side| {
            let service = format!("ao-addon-operator-{side}-svc");
            self.kubectl(&format!("delete service {service}"));
            self.namespace.service_to_us(&service).unwrap()
        })
    }

    /// Starts the program in the place of this pod, reachable by the API server.
    pub(crate) fn start(&self, pod: &Value) -> Running {
        self.launch(pod, self.reached())
    }

    /// Starts the program without changing the Services, which then lead to addresses where pods would be.
    pub(crate) fn start_unreached(&self, pod: &Value) -> Running {
        self.launch(pod, SIDES.map(|_| (here(), self.namespace.port().unwrap()).into()))
    }

    fn launch(&self, pod: &Value, webhooks: [SocketAddr; 2]) -> Running {
        // The last part of a pod's name is unique, and the path of a socket must be short.
        let own = self.path(name_of(pod).rsplit('-').next().unwrap());
        fs::create_dir(&own).unwrap();
        let log = own.join("operator.log");
        self.namespace.show_on_panic(name_of(pod), &log);
        let variables = self.environment(pod, &own, webhooks);
        let port = variables["ADDON_OPERATOR_LISTEN_PORT"].to_str().unwrap();
        let address = (here(), port.parse().unwrap()).into();
        let output = fs::File::create(&log).unwrap().into_parts().0;
        let mut command = process::command(OPERATOR);
        // The image sets no arguments either.
        command.current_dir(&own).env_clear().envs(variables);
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let bound = Bound::start(command, Bond::Group).unwrap();
        Running { bound, log, address }
    }

    /// The pods to which the Service of this side leads.
    pub(crate) fn led_to(&self, side: &str) -> Vec<String> {
        let slices = format!("--selector=kubernetes.io/service-name=ao-addon-operator-{side}-svc");
        let found = self.json(&format!("get endpointslices {slices}"));
        let slices = found["items"].as_array().unwrap().iter();
        let endpoints = slices.flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
        let pods = endpoints.map(|endpoint| endpoint["targetRef"]["name"].as_str().unwrap().to_owned());
        // Several slices may list the same pod.
        let pods: BTreeSet<String> = pods.collect();
        pods.into_iter().collect()
    }

    /// The account's requests since the mark, with their answers.
    pub(crate) fn requests(&self, since: Mark) -> Records {
        let account = self.account();
        let all = self.namespace.plane().audit().since(since).unwrap();
        all.that(|record| record.user == account)
    }
}

/// A running operator. Dropping it kills it, also when its test fails.
pub(crate) struct Running {
    bound: Bound,
    log: PathBuf,
    address: SocketAddr,
}

impl Running {
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(Path::new(&self.log)).unwrap()
    }

    pub(crate) fn wait_until_ready(&self) {
        use std::io::{Read as _, Write as _};
        let look = || -> std::io::Result<Option<()>> {
            let Ok(mut stream) = std::net::TcpStream::connect(self.address) else {
                return Ok(None);
            };
            stream.set_read_timeout(Some(PATIENCE))?;
            write!(stream, "GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer.contains("Startup converge done.").then_some(()))
        };
        wait_until(PATIENCE, "readiness", look).unwrap();
    }

    /// The output of a debug command, which has to succeed.
    pub(crate) fn ask(&self, arguments: &str) -> String {
        let mut command = process::command(OPERATOR);
        let socket = self.log.with_file_name("debug.socket");
        command
            .args(arguments.split(' '))
            .env_clear()
            .env("DEBUG_UNIX_SOCKET", socket);
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        process::signal(self.bound.id(), libc::SIGKILL);
        wait_until(PATIENCE, "the end of a killed operator", || self.bound.ended()).unwrap();
    }

    /// Stops the operator, which has to end with success.
    pub(crate) fn stop(mut self) {
        process::signal(self.bound.id(), libc::SIGTERM);
        let status = wait_until(PATIENCE, "the end of the operator", || self.bound.ended()).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.said());
    }
}
