//! Commands typed outside of the operator's pod. A real API server passes them on to a real kubelet, which runs the
//! program beside a running operator. Needs root and the packages of a node.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::audit::Mark;
use testbed::files::put;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options, Pods, User};
use testbed::process::{self, Bond, Bound};
use testbed::reader::Only;
use testbed::registry::programs;
use testbed::registry::push::{Repository, layer};
use testbed::wait::wait_until;
use tokio::runtime::Runtime;

#[path = "outside/moving_in.rs"]
mod moving_in;

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const PATIENCE: Duration = Duration::from_mins(2);
const HOOK: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"onStartup\":1}'; fi\n";

/// A hook that writes a line.
const TUNES: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"onStartup\":1}'; exit; fi\necho tuned\n";
/// A Deployment whose pods write a line each second, beside a container whose image is nowhere.
const BEATS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: site}
spec:
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: IMAGE
        command: [sh, -c, 'while :; do echo a beat; sleep 1; done']
      - name: absent
        image: registry.invalid/nothing:1
";

/// The operator of a pod ends before its container does, so that commands in the pod find none.
const OPERATOR: &str = "addon-operator hooks start & echo $! >/shared/process; wait; sleep 100000";

struct World<'a> {
    namespace: &'a Namespace<'a>,
    folder: TempDir,
    image: String,
}

impl<'a> World<'a> {
    fn build(plane: &ControlPlane, namespace: &'a Namespace<'a>) -> Self {
        let name = namespace.name();
        namespace.kubectl(["create", "serviceaccount", "operator"]).unwrap();
        let account = format!("--serviceaccount={name}:operator");
        let binding = [
            "create",
            "clusterrolebinding",
            name,
            "--clusterrole=cluster-admin",
            &account,
        ];
        namespace.kubectl(binding).unwrap();
        let below = programs::layer(&["sh", "sleep", "rm"].map(Path::new), &[]);
        let above = programs::layer(&[Path::new(PROGRAM)], &[]);
        let config = json!({ "Env": ["PATH=/bin", "DEBUG_UNIX_SOCKET=/shared/debug.socket"] });
        let hooks = layer(&[
            ("hooks/greet.sh", HOOK.as_bytes()),
            ("modules/values.yaml", b"siteEnabled: true"),
            ("modules/010-site/hooks/tune.sh", TUNES.as_bytes()),
            ("global-hooks/readme.txt", b"none"),
        ]);
        let registry = plane.registry().unwrap();
        let repository = Repository::at(registry, "operator");
        Runtime::new()
            .unwrap()
            .block_on(repository.push("1", &config, &[below, above, hooks]));
        Self {
            namespace,
            folder: tempfile::tempdir_in(plane.folder()).unwrap(),
            image: format!("{registry}/operator:1"),
        }
    }

    fn plane(&self) -> &ControlPlane {
        self.namespace.plane()
    }

    /// A pod with an operator, and with containers beside it.
    fn pod(&self, name: &str) {
        let container = |name: &str, script: &str| {
            json!({
                "name": name, "image": self.image, "command": ["sh", "-c", script],
                "env": [{"name": "SHELL_OPERATOR_HOOKS_DIR", "value": "/hooks"},
                    {"name": "SHELL_OPERATOR_TMP_DIR", "value": "/shared/tmp"}],
                "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
            })
        };
        let waits = "sleep 100000";
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "shell-operator"}},
            "spec": {
                "serviceAccountName": "operator",
                "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "shared", "emptyDir": {}}],
                "containers": [
                    {"name": "side", "image": self.image, "command": ["sh", "-c", waits]},
                    container("shell-operator", OPERATOR),
                    container("addon-operator", waits),
                ],
            },
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &pod.to_string()).unwrap();
        let ready = ["wait", "pod", name, "--for=condition=Ready", "--timeout=120s"];
        self.namespace.kubectl(ready).unwrap();
    }

    /// A pod with an operator that has a module without a chart.
    fn keeper(&self) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "keeper", "labels": {"app": "addon-operator"}},
            "spec": {
                "serviceAccountName": "operator",
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "addon-operator", "image": self.image, "command": ["addon-operator", "start"],
                    "env": [{"name": "MODULES_DIR", "value": "/modules"}, {"name": "GLOBAL_HOOKS_DIR", "value": "/global-hooks"},
                        {"name": "ADDON_OPERATOR_TMP_DIR", "value": "/shared/tmp"}],
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                }],
                "volumes": [{"name": "shared", "emptyDir": {}}],
            },
        });
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &pod.to_string()).unwrap();
    }

    /// Opens the page of the operator in the pod through a forwarded port.
    fn open_page(&self) {
        self.keeper();
        let wait = ["wait", "pod", "keeper", "--for=condition=Ready", "--timeout=120s"];
        self.namespace.kubectl(wait).unwrap();
        let port = self.namespace.port().unwrap();
        let mut command = process::command(PROGRAM);
        command
            .args(["page", "--no-browser", "--port", &port.to_string()])
            .env_clear();
        command.env("KUBECONFIG", self.namespace.kubeconfig(User::Operator));
        command.stdout(Stdio::piped());
        let mut bound = Bound::start(command, Bond::Group).unwrap();
        let mut address = String::new();
        BufReader::new(bound.take_stdout().unwrap())
            .read_line(&mut address)
            .unwrap();
        assert_eq!(address, format!("http://127.0.0.1:{port}/\n"));
        let look = || {
            let body = get(port).map_err(|error| error.to_string())?;
            if body.contains("site") { Ok(Some(())) } else { Err(body) }
        };
        wait_until(PATIENCE, "the page through the forwarded port", look).unwrap();
    }

    /// Plans a modules directory of this machine, which the pod has not.
    fn plan_files(&self) {
        put(self.folder.path(), "next/values.yaml", "siteEnabled: true").unwrap();
        put(self.folder.path(), "next/010-site/hooks/other.sh", TUNES).unwrap();
        let plan = format!(
            "plan --pod keeper --modules-dir {}",
            self.folder.path().join("next").display()
        );
        let Output { status, stdout, stderr } = typed(&self.namespace.kubeconfig(User::Operator), &plan);
        let (said, why) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert_eq!(status.code(), Some(2), "{said}{why}");
        let told = "1. site runs\n   files    ";
        let hook = "hooks    hooks/other.sh (onStartup), which has not run";
        assert!(said.contains(told) && said.contains(hook), "{said}");
        let left = self
            .namespace
            .kubectl(["exec", "keeper", "--", "sh", "-c", "echo /shared/tmp/*plan-*"])
            .unwrap();
        assert_eq!(left, "/shared/tmp/*plan-*\n", "unpacked files are left");
    }

    /// Shows the lines of a release's pods and of a module's hooks.
    fn show_lines(&self) {
        put(
            self.folder.path(),
            "site/Chart.yaml",
            "apiVersion: v2\nname: site\nversion: 0.1.0\n",
        )
        .unwrap();
        put(
            self.folder.path(),
            "site/templates/a.yaml",
            &BEATS.replace("IMAGE", &self.image),
        )
        .unwrap();
        let mut helm = process::command(self.plane().program(Part::Helm3));
        helm.args(["install", "site"]).arg(self.folder.path().join("site"));
        helm.env("KUBECONFIG", self.namespace.kubeconfig(User::Admin));
        let installed = process::run(helm, None).unwrap();
        assert!(installed.status.success(), "{installed:?}");

        let look = || {
            let (good, said, why) = self.asked("module logs site");
            let is_whole = said.contains("/main  a beat\n") && said.contains("hook hooks/tune.sh  tuned\n");
            // The container that cannot start hides no others.
            if good && is_whole && why.contains("warning: cannot get pods/log") && why.contains("absent") {
                Ok(Some(()))
            } else {
                Err(said + &why)
            }
        };
        wait_until(PATIENCE, "the lines of the module", look).unwrap();
        let (_, said, _) = self.asked("module logs site --container main --tail 1");
        assert!(said.lines().count() == 1 && said.ends_with("/main  a beat\n"), "{said}");
        let (good, _, why) = self.asked("module logs nobody");
        assert!(!good && why.contains("module 'nobody' has no pods"), "{why}");
        let Output { status, stderr, .. } = typed(&self.stranger(), "module logs site");
        let why = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && why.contains("is forbidden"), "{why}");
        self.show_lines_without_hooks();

        let mut command = process::command(PROGRAM);
        command
            .args(["module", "logs", "site", "--tail", "1", "--follow"])
            .env_clear();
        command.env("KUBECONFIG", self.namespace.kubeconfig(User::Operator));
        command.stdout(Stdio::piped());
        let mut following = Bound::start(command, Bond::Group).unwrap();
        let lines = BufReader::new(following.take_stdout().unwrap()).lines();
        let lines: Vec<String> = lines.take(5).map(Result::unwrap).collect();
        let beats = lines.iter().filter(|line| line.ends_with("  a beat"));
        assert!(beats.count() >= 3, "{lines:?}");
    }

    /// Shows the lines of the pods to a person who may not read the operator's log.
    fn show_lines_without_hooks(&self) {
        let pods = self.namespace.objects("pods", Only::Labels("app=site")).unwrap();
        let site = &pods[0]["metadata"]["name"];
        let rules = json!([
            {"apiGroups": ["", "apps", "batch"], "verbs": ["get", "list"], "resources": ["secrets", "pods", "replicasets", "jobs"]},
            {"apiGroups": [""], "verbs": ["get"], "resources": ["pods/log"], "resourceNames": [site]},
        ]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}, "rules": rules});
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.feed(["create", "--filename=-"], &role.to_string()).unwrap();
        let account = format!("--serviceaccount={}:default", self.namespace.name());
        let bind = ["create", "rolebinding", "reader", "--role=reader", &account];
        self.namespace.kubectl(bind).unwrap();
        let reader = self.stranger();
        let look = || {
            let Output { status, stdout, stderr } = typed(&reader, "module logs site");
            let said = String::from_utf8(stdout).unwrap();
            if status.success() && said.contains("/main  a beat\n") && !said.contains("tuned") {
                Ok(Some(()))
            } else {
                Err(said + &String::from_utf8_lossy(&stderr))
            }
        };
        wait_until(PATIENCE, "the lines without those of hooks", look).unwrap();
    }

    /// Ends the operator of a pod; its container goes on.
    fn end(&self, pod: &str) {
        let end = "read -r process </shared/process; kill $process";
        let words = ["exec", pod, "--container=shell-operator", "--", "sh", "-c", end];
        self.namespace.kubectl(words).unwrap();
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
        self.namespace
            .kubectl_as(User::Admin)
            .apply(&lease.to_string())
            .unwrap();
    }

    /// Waits until a command has asked for the lease since the mark.
    fn await_question(&self, since: Mark) {
        let look = || {
            let records = self.plane().audit().since(since).unwrap();
            let asked = records
                .within(self.namespace.name())
                .that(|record| record.verb == "get" && record.resource == "leases");
            (!asked.is_empty()).then_some(Some(())).ok_or("no question")
        };
        wait_until(PATIENCE, "a question for the lease", look).unwrap();
    }

    /// A kubeconfig of a user without any rights.
    fn stranger(&self) -> PathBuf {
        let token = self.namespace.kubectl(["create", "token", "default"]).unwrap();
        let text = fs::read_to_string(self.namespace.kubeconfig(User::Operator)).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config["users"][0]["user"]["token"] = token.trim().into();
        let path = self.folder.path().join("stranger.kubeconfig");
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

#[test]
fn what_is_typed_outside_is_answered_by_the_operator_in_its_pod() {
    if testbed::shared::has_no_node() {
        return;
    }
    let asked = Options {
        pods: Pods::Running,
        ..Options::default()
    };
    let plane = ControlPlane::start(&asked).unwrap();
    let namespace = plane.namespace("outside").unwrap();
    let world = World::build(&plane, &namespace);
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
    // A leader that was lost holds the lease for a while, and the command waits for the next one.
    world.lease("lost");
    let mark = plane.audit().mark().unwrap();
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.asked("hooks hook list --kube-context testbed"));
        world.await_question(mark);
        world.lease(&format!("second.127-0-0-1.{}.pod", namespace.name()));
        let (good, said, why) = asked.join().unwrap();
        assert!(good, "{said}{why}");
    });
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
    world.end("first");
    let look = || {
        let (good, said, why) = world.asked("hooks hook list --pod first");
        if !good && why.contains("debug socket") {
            Ok(Some(()))
        } else {
            Err(said + &why)
        }
    };
    wait_until(PATIENCE, "no operator in the pod", look).unwrap();

    world.open_page();
    world.plan_files();
    world.show_lines();
    world.move_in(&plane.namespace("moving").unwrap());
}

/// The answer of the page at a port of this machine.
fn get(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
