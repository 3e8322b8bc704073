//! Commands typed outside of the operator's pod. A real API server passes them on to a kubelet, and the built program
//! runs there beside a running operator. There is no container: the kubelet is kwok's, which starts programs of this
//! machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use fs_err as fs;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options, User};
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const NODE: &str = "outside";
const PATIENCE: Duration = Duration::from_mins(1);
const HOOK: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"onStartup\":1}'; fi\n";

fn executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

struct World<'a> {
    namespace: &'a Namespace<'a>,
    dir: PathBuf,
}

impl World<'_> {
    fn path(&self, inside: &str) -> PathBuf {
        self.dir.join(inside)
    }

    fn plane(&self) -> &ControlPlane {
        self.namespace.plane()
    }

    fn patch_status(&self, what: &[&str], status: &Value) {
        let patch = format!("--patch={}", json!({ "status": status }));
        let arguments = ["patch", "--subresource=status", "--type=merge", &patch];
        self.namespace.kubectl([&arguments[..], what].concat()).unwrap();
    }

    /// A node whose kubelet starts programs in the test's folder.
    fn kubelet(&self) -> Bound {
        let port = self.namespace.port().unwrap();
        self.plane().add_node(NODE).unwrap();
        let status = json!({
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        });
        self.patch_status(&["node", NODE], &status);
        fs::create_dir(self.path("bin")).unwrap();
        fs::os::unix::fs::symlink(PROGRAM, self.path("bin/addon-operator")).unwrap();
        let env = json!([{"name": "DEBUG_UNIX_SOCKET", "value": self.path("debug.socket")}]);
        let runs = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterExec", "metadata": {"name": "programs"},
            "spec": {"execs": [{"local": {"workDir": self.dir, "envs": env}}]},
        });
        let stages = include_str!("../crates/testbed/parts/kwok/stages.yaml");
        fs::write(self.path("kwok.yaml"), format!("{stages}\n---\n{runs}\n")).unwrap();
        let certificate = self.plane().authority();
        let mut command = process::command(testbed::shared::program(Part::Kwok));
        command
            .env_clear()
            .env("PATH", self.path("bin"))
            .arg(flag("kubeconfig", &self.plane().kubeconfig(User::Admin)))
            .arg(flag("config", &self.path("kwok.yaml")))
            .arg(format!(
                "--manage-nodes-with-label-selector=kubernetes.io/hostname={NODE}"
            ))
            .arg(format!("--server-address=127.0.0.1:{port}"))
            .arg(flag("tls-cert-file", &certificate))
            .arg(flag("tls-private-key-file", &certificate.with_extension("key")));
        let log = fs::File::create(self.path("kwok.log")).unwrap().into_parts().0;
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.namespace.show_on_panic("kwok", &self.path("kwok.log"));
        Bound::start(command, Bond::Group).unwrap()
    }

    fn operator(&self) -> Bound {
        fs::create_dir(self.path("hooks")).unwrap();
        executable(&self.path("hooks/greet.sh"), HOOK);
        let mut command = process::command(PROGRAM);
        command
            .args(["hooks", "start"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command
            .env("KUBECONFIG", self.namespace.kubeconfig(User::Operator))
            .env("SHELL_OPERATOR_HOOKS_DIR", self.path("hooks"))
            .env("SHELL_OPERATOR_TMP_DIR", self.path("tmp"))
            .env("SHELL_OPERATOR_LISTEN_PORT", self.namespace.port().unwrap().to_string())
            .env("DEBUG_UNIX_SOCKET", self.path("debug.socket"));
        let log = fs::File::create(self.path("operator.log")).unwrap().into_parts().0;
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.namespace.show_on_panic("operator", &self.path("operator.log"));
        Bound::start(command, Bond::Group).unwrap()
    }

    fn pod(&self, name: &str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "shell-operator"}},
            "spec": {
                "nodeName": NODE,
                "containers": [
                    {"name": "side", "image": "x"},
                    {"name": "shell-operator", "image": "x"},
                    {"name": "addon-operator", "image": "x"},
                ],
            },
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &pod.to_string()).unwrap();
        let running = "--for=jsonpath={.status.phase}=Running";
        self.namespace
            .kubectl(["wait", "pod", name, running, "--timeout=60s"])
            .unwrap();
    }

    fn asked(&self, arguments: &str) -> (bool, String, String) {
        let Output { status, stdout, stderr } = typed(&self.namespace.kubeconfig(User::Operator), arguments);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.success(), text(stdout), text(stderr))
    }

    /// The pods in which a program was run so far, in order.
    fn pods_used(&self) -> Vec<String> {
        let audit = self.plane().audit();
        let records = audit.since(audit.beginning()).unwrap();
        let uses = records.of(User::Operator).that(|record| record.subresource == "exec");
        let mut names: Vec<String> = uses.0.into_iter().map(|record| record.name).collect();
        names.dedup();
        names
    }

    fn lease(&self, holder: &str) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "shell-operator-leader-election"},
            "spec": {"holderIdentity": holder},
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &lease.to_string()).unwrap();
    }

    /// A kubeconfig of a user without any rights.
    fn stranger(&self) -> PathBuf {
        let token = self.namespace.kubectl(["create", "token", "default"]).unwrap();
        let text = fs::read_to_string(self.namespace.kubeconfig(User::Operator)).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["users"][0]["user"]["token"] = token.trim().into();
        let path = self.path("stranger.kubeconfig");
        fs::write(&path, config.to_string()).unwrap();
        path
    }
}

/// The result for a person who types this outside of the pod, with a kubeconfig.
fn typed(kubeconfig: &Path, arguments: &str) -> Output {
    let mut command = process::command(PROGRAM);
    command.args(arguments.split(' ')).env_clear();
    command
        .env("KUBECONFIG", kubeconfig)
        .env("DEBUG_UNIX_SOCKET", "/nowhere/debug.socket");
    process::run(command, None).unwrap()
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

#[test]
fn what_is_typed_outside_is_answered_by_the_operator_in_its_pod() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let namespace = plane.namespace("outside").unwrap();
    let dir = tempfile::Builder::new().tempdir_in(plane.folder()).unwrap();
    let world = World {
        namespace: &namespace,
        dir: dir.path().to_owned(),
    };
    let _kubelet = world.kubelet();
    let mut operator = world.operator();
    world.pod("first");

    let answered = |arguments: &str| {
        let look = || match world.asked(arguments) {
            (true, said, _) => Ok(Some(said)),
            (false, _, why) => Err(why),
        };
        wait_until(PATIENCE, arguments, look).unwrap()
    };
    // The namespace is that of the kubeconfig, unless the command names one.
    assert_eq!(answered("hooks hook list --kube-context testbed"), "[\"greet.sh\"]\n\n");
    let listed = format!("hooks hook list -o yaml --namespace {}", namespace.name());
    assert_eq!(answered(&listed), "- greet.sh\n\n");

    let (_, said, _) = world.asked("hooks raw /nowhere --pod first");
    assert!(said.contains("404 page not found"), "{said}");
    let (good, _, why) = world.asked("hooks hook list --pod nobody");
    assert!(!good && why.contains("pods \"nobody\" not found"), "{why}");
    let (good, _, why) = world.asked("queue list --kube-context testbed");
    let none = "is labelled as addon-operator and runs\nhint: --namespace names the namespace to search, and --pod";
    assert!(!good && why.contains(none), "{why}");

    // A command that changes the ConfigMap first asks the operator in the pod for the version to approve.
    let (_, said, _) = world.asked("channel status --pod first");
    assert!(said.starts_with("state:      off\n"), "{said}");
    let (good, said, why) = world.asked("channel approve --yes --pod first");
    assert!(
        !good && said.is_empty() && why.contains("no version is available: the state is off"),
        "{said}{why}"
    );

    // With two pods the leader is asked, once there is one.
    world.pod("second");
    let (good, _, why) = world.asked("hooks hook list --kube-context testbed");
    assert!(
        !good && why.contains("are labelled as shell-operator: first, second\nhint: --pod"),
        "{why}"
    );
    world.lease(&format!("second.127-0-0-1.{}.pod", namespace.name()));
    assert_eq!(answered("hooks hook list --kube-context testbed"), "[\"greet.sh\"]\n\n");
    assert_eq!(world.pods_used(), ["first", "second"]);

    // A user who must not run programs in the pod gets an error and no answer.
    let Output { status, stdout, stderr } = typed(&world.stranger(), "hooks hook list --pod first");
    let why = String::from_utf8(stderr).unwrap();
    assert!(
        !status.success() && stdout.is_empty() && why.contains("is forbidden"),
        "{why}"
    );

    // Standard error of the program in the pod is passed on too.
    process::signal(operator.id(), libc::SIGTERM);
    wait_until(PATIENCE, "the end of the operator", || operator.ended()).unwrap();
    let (good, _, why) = world.asked("hooks hook list --pod first");
    assert!(!good && why.contains("debug socket"), "{why}");
    drop(operator);
    drop(namespace);
}
