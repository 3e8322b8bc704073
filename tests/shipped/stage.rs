//! A control plane on which pods become ready without running, and an operator with the aerospike module alone. It has
//! full rights in its own namespace, and elsewhere only those that `rbac generate` finds.
#![expect(clippy::unwrap_used, reason = "what only tests call has no better way to end")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::{ControlPlane, Options, Pods, User};
use testbed::process::{self, Bond, Bound};
use testbed::reader::Only;
use testbed::wait::wait_until;

/// Far longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) const CLUSTERS: &str = "aerospikeclusters.aerospike.dzolotov.tech";
pub(crate) const MODULE: &str = "modules/500-aerospike";
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn plane() -> ControlPlane {
    let asked = Options {
        pods: Pods::Alive,
        ..Options::default()
    };
    ControlPlane::start(&asked).unwrap()
}

/// Whether the API server can ask the operator.
#[derive(Clone, Copy)]
pub(crate) enum Reviews {
    Served,
    /// From the network of a real node the operator cannot be reached.
    Off,
}

/// An operator's namespace and files. Operators can be started here one after the other.
pub(crate) struct Stage<'a> {
    /// Prints the logs when a test panics, so it is declared (and dropped) before the folder that contains them.
    pub(crate) namespace: Namespace<'a>,
    folder: TempDir,
    port: u16,
    /// The address of the reviews, if they are served.
    address: Option<SocketAddr>,
}

impl<'a> Stage<'a> {
    pub(crate) fn build(plane: &'a ControlPlane, reviews: Reviews) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("stage-")
            .tempdir_in(plane.folder())
            .unwrap();
        for inside in ["modules", "global-hooks"] {
            fs::create_dir(folder.path().join(inside)).unwrap();
        }
        let module = folder.path().join("modules/500-aerospike");
        fs::os::unix::fs::symlink(root().join(MODULE), module).unwrap();
        let namespace = plane.namespace("operator").unwrap();
        let stage = Self {
            port: namespace.port().unwrap(),
            address: match reviews {
                Reviews::Served => Some(namespace.service_to_us("webhooks").unwrap()),
                Reviews::Off => None,
            },
            namespace,
            folder,
        };
        stage.restrict();
        stage
    }

    /// Takes all rights from the operator except those of the module, and those that its chart would give.
    fn restrict(&self) {
        let mut command = self.command();
        let modules = self.folder.path().join("modules");
        command.args(["rbac", "generate", "--output=json"]).arg(modules);
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut rules = found["rbac"]["moduleRules"]["cluster"].as_array().unwrap().clone();
        rules.push(json!({"apiGroups": ["admissionregistration.k8s.io"], "verbs": ["*"],
            "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]}));
        let operator = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": User::Operator.name()});
        let bind = |kind: &str, rules: &Value| {
            let refer = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "operator"});
            [
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "operator"}, "rules": rules}),
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
                    "metadata": {"name": "operator"}, "roleRef": refer, "subjects": [operator]}),
            ]
        };
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let own = bind("Role", &all);
        for object in bind("ClusterRole", &json!(rules)).iter().chain(&own) {
            apply(&self.namespace, object);
        }
        self.namespace
            .kubectl(["delete", "clusterrolebinding", "testbed-operator"])
            .unwrap();
    }

    /// Creates or changes the operator's ConfigMap.
    pub(crate) fn configure(&self, data: &Value) {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data});
        apply(&self.namespace, &object);
    }

    /// Starts an operator. Dropping the value kills it.
    pub(crate) fn start(&self) -> Bound {
        let log = self.folder.path().join("operator.log");
        self.namespace.show_on_panic("operator", &log);
        let output = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let output = output.into_parts().0;
        let mut command = self.command();
        command.arg("start").current_dir(self.folder.path());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Bound::start(command, Bond::Group).unwrap()
    }

    fn command(&self) -> Command {
        let own = |name: &str| self.folder.path().join(name).into_os_string();
        let mut command = process::command(OPERATOR);
        command.env_clear().envs(BTreeMap::from([
            ("PATH", testbed::jq::search_path().into()),
            ("ADDON_OPERATOR_PROGRAM", OPERATOR.into()),
            ("HOME", own("home")),
            ("KUBECONFIG", self.namespace.kubeconfig(User::Operator).into()),
            ("HELM_BIN", self.namespace.plane().program(Part::Helm3).into()),
            ("FRAMEWORK_DIR", root().join("frameworks/shell").into()),
            ("ADDON_OPERATOR_NAMESPACE", self.namespace.name().into()),
            ("ADDON_OPERATOR_MODULES_DIR", own("modules")),
            ("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", own("global-hooks")),
            ("ADDON_OPERATOR_TMP_DIR", own("tmp")),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
            ("ADDON_OPERATOR_LISTEN_PORT", self.port.to_string().into()),
            ("DEBUG_UNIX_SOCKET", own("debug.socket")),
        ]));
        if let Some(address) = self.address {
            command.envs([
                ("VALIDATING_WEBHOOK_SERVICE_NAME", "webhooks".to_owned()),
                ("VALIDATING_WEBHOOK_LISTEN_ADDRESS", address.ip().to_string()),
                ("VALIDATING_WEBHOOK_LISTEN_PORT", address.port().to_string()),
            ]);
        }
        command
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("operator.log")).unwrap_or_default()
    }

    /// Waits until both reviews answer.
    pub(crate) fn wait_for_reviews(&self) {
        let bad = cluster("bad", &json!({"deployments": 0}));
        let look = || {
            let said = try_create(&self.namespace, &bad, &["--dry-run=server"]);
            let said = said.expect_err("a cluster without servers is refused");
            let kind = "validatingwebhookconfigurations";
            let listed = self
                .namespace
                .kubectl(["get", kind, "--output=jsonpath={..name}"])
                .unwrap();
            let are = said.contains("denied the request") && listed.contains("limits.aerospike");
            if are { Ok(Some(())) } else { Err(said + &self.log()) }
        };
        wait_until(PATIENCE, "a review", look).unwrap();
    }
}

/// The control plane of all tests that leave the operator running.
pub(crate) fn shared_plane() -> &'static ControlPlane {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    static STAGE: OnceLock<(Stage<'static>, Bound)> = OnceLock::new();
    let plane = PLANE.get_or_init(plane);
    STAGE.get_or_init(|| {
        let stage = Stage::build(plane, Reviews::Served);
        stage.configure(&json!({"aerospikeEnabled": "true", "aerospike": "{image: server, minReadySeconds: 0}"}));
        let operator = stage.start();
        stage.wait_for_reviews();
        (stage, operator)
    });
    plane
}

pub(crate) fn cluster(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "aerospike.dzolotov.tech/v1alpha1", "kind": "AerospikeCluster", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn apply(namespace: &Namespace<'_>, object: &Value) {
    let kubectl = namespace.kubectl_as(User::Admin);
    kubectl.apply(&object.to_string()).unwrap();
}

/// All that kubectl prints: warnings and the answer, or the refusal.
pub(crate) fn try_create(namespace: &Namespace<'_>, object: &Value, more: &[&str]) -> Result<String, String> {
    let mut command = namespace.kubectl_as(User::Admin).command();
    command.args(["create", "--filename=-"]).args(more);
    let output = process::run(command, Some(object.to_string().as_bytes())).unwrap();
    let said = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// Patches a cluster's spec.
pub(crate) fn try_change(namespace: &Namespace<'_>, name: &str, spec: &Value) -> Result<String, String> {
    let patch = format!("--patch={}", json!({"spec": spec}));
    let said = namespace.kubectl(["patch", CLUSTERS, name, "--type=merge", &patch]);
    said.map_err(|error| testbed::report::chain(&error))
}

/// An object, if it exists.
pub(crate) fn find(namespace: &Namespace<'_>, kind: &str, name: &str) -> Option<Value> {
    if kind != "crd" {
        return namespace.object(bare(kind), name).unwrap();
    }
    let said = namespace.kubectl(["get", kind, name, "--ignore-not-found", "--output=json"]);
    let said = said.unwrap();
    (!said.trim().is_empty()).then(|| serde_json::from_str(&said).unwrap())
}

pub(crate) fn list(namespace: &Namespace<'_>, kind: &str) -> Vec<Value> {
    namespace.objects(bare(kind), Only::All).unwrap()
}

/// The name of a kind without its group.
fn bare(kind: &str) -> &str {
    kind.split_once('.').map_or(kind, |(bare, _)| bare)
}

/// Waits until an object fulfils a condition, and returns it.
pub(crate) fn wait_for(
    namespace: &Namespace<'_>,
    (kind, name): (&str, &str),
    what: &str,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let look = || {
        let object = find(namespace, kind, name).unwrap_or(Value::Null);
        if fits(&object) {
            Ok(Some(object))
        } else {
            Err(object.to_string())
        }
    };
    let found = wait_until(PATIENCE, &format!("{kind} {name}: {what}"), look);
    assert!(found.is_ok(), "{}\n{}", found.unwrap_err(), namespace.evidence());
    found.unwrap()
}

pub(crate) fn is_settled(cluster: &Value) -> bool {
    let status = &cluster["status"];
    status["deployed"] == true
        && status["brokenNodes"] == 0
        && condition(cluster, "Ready")[0] == "True"
        && status["observedGeneration"] == cluster["metadata"]["generation"]
}

/// Waits until all objects of a cluster are as wanted, and all its servers are ready.
pub(crate) fn settled(namespace: &Namespace<'_>, name: &str) -> Value {
    wait_for(namespace, (CLUSTERS, name), "all servers ready", is_settled)
}

/// A condition's status, reason and message.
pub(crate) fn condition<'a>(cluster: &'a Value, kind: &str) -> [&'a str; 3] {
    let conditions = cluster["status"]["conditions"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    ["status", "reason", "message"].map(|field| found.and_then(|found| found[field].as_str()).unwrap_or_default())
}
