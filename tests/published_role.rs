//! The whole program with the roles that the examples of shell-operator publish: hooks without modules, certificates in
//! files, and no other right. And parts of the program with roles that have only the rights that the original operators
//! need. A target of its own, because it creates CRDs.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::operator::policy::OnTrial;
use certificates::authority::renewed;
use fs_err as fs;
use jiff::Timestamp;
use objects::ensure::{self, Ensured};
use releases::crd;
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

#[path = "cluster/hook_tools.rs"]
mod hook_tools;
#[path = "cluster/tools.rs"]
mod tools;
#[path = "cluster/world.rs"]
#[expect(dead_code, reason = "most of it is about releases")]
mod world;

use world::World;

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const PATIENCE: Duration = Duration::from_mins(1);
const SERVICE: &str = "webhooks";
const BAD: &str = "create configmap bad --dry-run=server";
const DENIED: &str = "denied the request: this one is bad";

/// A hook that denies objects named `bad`, and labels all others.
const ADMISSION: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then
  cat <<'END'
configVersion: v1
kubernetesValidating:
- name: valid.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  matchConditions: [{name: not-the-root, expression: "object.metadata.name != 'kube-root-ca.crt'"}]
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE]}]
kubernetesMutating:
- name: change.@NS@.example.com
  namespace: {labelSelector: {matchLabels: {kubernetes.io/metadata.name: "@NS@"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE]}]
END
  exit
fi
binding=$(jq -r '.[0].binding' "$BINDING_CONTEXT_PATH")
name=$(jq -r '.[0].review.request.name' "$BINDING_CONTEXT_PATH")
case "$binding $name" in
  "valid"*" bad") echo '{"allowed": false, "message": "this one is bad"}' ;;
  "valid"*) echo '{"allowed": true}' ;;
  *) echo '{"allowed": true, "patch": "W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL21ldGFkYXRhL2xhYmVscyIsICJ2YWx1ZSI6IHsiYnkiOiAiaG9vayJ9fV0="}' ;;
esac >"$VALIDATING_RESPONSE_PATH"
"#;

const CONVERSION: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then
  cat <<'END'
configVersion: v1
kubernetesCustomResourceConversion:
- name: widgets
  crdName: widgets.@NS@.example.com
  conversions:
  - {fromVersion: v1alpha1, toVersion: v1}
END
  exit
fi
jq '{convertedObjects: [.[0].review.request | .desiredAPIVersion as $to | .objects[] | .apiVersion = $to | .way = "converted"]}' \
  "$BINDING_CONTEXT_PATH" >"$CONVERSION_RESPONSE_PATH"
"#;

struct Stage {
    /// Prints the logs when a test panics, so it is declared (and dropped) before the folder that contains them.
    namespace: Namespace<'static>,
    folder: TempDir,
    address: SocketAddr,
    port: u16,
}

impl Stage {
    /// A stage with this hook, and a service account with only these rights.
    fn new(prefix: &str, hook: &str, rules: &Value) -> Self {
        let namespace = testbed::shared::plane().namespace(prefix).unwrap();
        let stage = Self {
            address: namespace.service_to_us(SERVICE).unwrap(),
            port: namespace.port().unwrap(),
            namespace,
            folder: tempfile::tempdir().unwrap(),
        };
        let script = stage.path("hooks/hook.sh");
        fs::create_dir(stage.path("hooks")).unwrap();
        fs::write(&script, hook.replace("@NS@", stage.name())).unwrap();
        fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        allow(&stage.namespace, rules);
        fs::write(stage.path("kubeconfig"), kubeconfig(&stage.namespace)).unwrap();
        stage
    }

    fn name(&self) -> &str {
        self.namespace.name()
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn kubectl(&self, arguments: &str) -> String {
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// The output of kubectl, whether it fails or not.
    fn say(&self, arguments: &str) -> String {
        let said = self.namespace.kubectl(arguments.split(' '));
        said.unwrap_or_else(|error| error.to_string())
    }

    fn apply(&self, manifest: &Value) -> String {
        let kubectl = self.namespace.kubectl_as(User::Admin);
        let said = kubectl.feed(["apply", "-f", "-"], &manifest.to_string());
        said.unwrap_or_else(|error| error.to_string())
    }

    fn wait_for(&self, arguments: &str, wanted: &str) {
        let said = || {
            let said = self.say(arguments);
            if said.contains(wanted) { Ok(Some(())) } else { Err(said) }
        };
        wait_until(PATIENCE, &format!("'{wanted}' from kubectl {arguments}"), said).unwrap();
    }

    /// Writes a new authority and a new certificate to the files.
    fn certify(&self) {
        let host = format!("{SERVICE}.{}.svc", self.name());
        let stored = renewed(None, &[host], Timestamp::now()).unwrap().unwrap();
        for (file, text) in [("tls.crt", stored.cert), ("tls.key", stored.key), ("ca.crt", stored.ca)] {
            fs::write(self.path(file), text).unwrap();
        }
    }

    fn start(&self, side: &str) -> Life {
        let log = self.path("operator.log");
        self.namespace.show_on_panic("operator", &log);
        let output = fs::File::create(&log).unwrap().into_parts().0;
        let mut command = process::command(PROGRAM);
        let variable = |name: &str| format!("{side}_WEBHOOK_{name}");
        command
            .args(["hooks", "start"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("KUBECONFIG", self.path("kubeconfig"))
            .env("SHELL_OPERATOR_NAMESPACE", self.name())
            .env("SHELL_OPERATOR_HOOKS_DIR", self.path("hooks"))
            .env("SHELL_OPERATOR_TMP_DIR", self.path("tmp"))
            .env("SHELL_OPERATOR_LISTEN_PORT", self.port.to_string())
            .env("DEBUG_UNIX_SOCKET", self.path("debug.socket"))
            .env("VALIDATING_WEBHOOK_CONFIGURATION_NAME", self.name())
            .env(variable("SERVICE_NAME"), SERVICE)
            .env(variable("LISTEN_ADDRESS"), self.address.ip().to_string())
            .env(variable("LISTEN_PORT"), self.address.port().to_string())
            .env(variable("SERVER_CERT"), self.path("tls.crt"))
            .env(variable("SERVER_KEY"), self.path("tls.key"))
            .env(variable("CA"), self.path("ca.crt"));
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Life {
            bound: Bound::start(command, Bond::Group).unwrap(),
            log,
        }
    }
}

/// Creates a service account with only these rights.
fn allow(namespace: &Namespace<'_>, rules: &Value) {
    let name = namespace.name();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules});
    let kubectl = namespace.kubectl_as(User::Admin);
    kubectl.feed(["apply", "-f", "-"], &role.to_string()).unwrap();
    let binding = format!("create clusterrolebinding {name} --clusterrole={name} --serviceaccount={name}:example");
    for command in ["create serviceaccount example", &binding] {
        namespace.kubectl(command.split(' ')).unwrap();
    }
}

/// The text of a kubeconfig for the account that `allow` creates.
fn kubeconfig(namespace: &Namespace<'_>) -> String {
    let plane = namespace.plane();
    let token = namespace.kubectl(["create", "token", "example"]).unwrap();
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": plane.server(), "certificate-authority": plane.authority()}}],
        "users": [{"name": "u", "user": {"token": token.trim()}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace.name()}}]});
    kubeconfig.to_string()
}

/// A world whose operator acts as an account with only these rights.
async fn world(prefix: &str, rules: &Value) -> World {
    let mut world = World::new(prefix).await;
    allow(&world.namespace, rules);
    let file = world.module_dir().with_file_name("kubeconfig");
    fs::write(&file, kubeconfig(&world.namespace)).unwrap();
    world.parts.kubeconfig = file;
    world.restart().await;
    world
}

/// A running operator.
struct Life {
    bound: Bound,
    log: PathBuf,
}

impl Life {
    /// Stops the operator, and returns the rights that its log says are missing: verb and resource, and the verb that
    /// it uses instead.
    fn complaints(mut self) -> Vec<String> {
        process::signal(self.bound.id(), libc::SIGTERM);
        wait_until(PATIENCE, "the end of the operator", || self.bound.ended()).unwrap();
        complaints(&self.log)
    }
}

fn complaints(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap();
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut found: Vec<String> = records
        .filter(|record| matches!(record["level"].as_str(), Some("warn" | "error")))
        .map(|record| match record["verb"].as_str() {
            Some(verb) => format!(
                "{verb} {} -> {}",
                record["resource"].as_str().unwrap(),
                record["instead"].as_str().unwrap()
            ),
            None => record["error"]
                .as_str()
                .and_then(|error| error.split(" '").next())
                .map_or_else(|| record.to_string(), str::to_owned),
        })
        .collect();
    found.sort();
    found
}

#[test]
fn admission_works_with_the_role_of_the_published_examples() {
    let rule = |resource: &str| {
        json!({"apiGroups": ["admissionregistration.k8s.io"], "resources": [resource],
            "verbs": ["create", "list", "update"]})
    };
    let kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let stage = Stage::new("example", ADMISSION, &json!(kinds.map(rule)));
    stage.certify();
    let life = stage.start("VALIDATING");
    stage.wait_for(BAD, DENIED);
    stage.wait_for(
        "create configmap good --dry-run=server -o=jsonpath={.metadata.labels}",
        r#"{"by":"hook"}"#,
    );
    let each = |complaint: &str| kinds.map(|kind| complaint.replace("KIND", kind));
    let mut first = [each("cannot watch KIND"), each("get KIND -> list")].concat();
    first.sort();
    assert_eq!(life.complaints(), first);

    // The configurations exist, but trust another authority.
    stage.certify();
    let life = stage.start("VALIDATING");
    stage.wait_for(BAD, DENIED);
    let mut second = [&first[..], &each("patch KIND -> update")].concat();
    second.sort();
    assert_eq!(life.complaints(), second);
    for kind in kinds {
        stage.kubectl(&format!("delete {kind} {}-hooks", stage.name()));
    }
}

#[test]
fn conversion_works_with_the_role_of_the_published_example_and_with_that_of_the_source() {
    for (verbs, complaints) in [
        (
            ["list", "update"],
            [
                "get customresourcedefinitions -> list",
                "patch customresourcedefinitions -> update",
            ]
            .as_slice(),
        ),
        (["get", "update"], &["patch customresourcedefinitions -> update"]),
    ] {
        let rules = json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "verbs": verbs}]);
        let stage = Stage::new("example", CONVERSION, &rules);
        let group = format!("{}.example.com", stage.name());
        let version = |name: &str, storage: bool| {
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        };
        stage.apply(
            &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}"), "annotations": {"kept": "yes"}},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": [version("v1alpha1", false), version("v1", true)]}}),
        );
        stage.kubectl(&format!(
            "wait --for=condition=Established crd/widgets.{group} --timeout=30s"
        ));
        stage.certify();
        let life = stage.start("CONVERSION");
        let strategy = "-o=jsonpath={.spec.conversion.strategy},{.metadata.annotations.kept},{.spec.versions[*].name}";
        stage.wait_for(
            &format!("get crd widgets.{group} {strategy}"),
            "Webhook,yes,v1alpha1 v1",
        );
        // The API server does not know the webhook yet: until then it stores objects unconverted.
        let converted = || {
            stage.say(&format!("delete widgets.v1.{group} one --ignore-not-found"));
            stage.apply(
                &json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Widget", "metadata": {"name": "one"}}),
            );
            let way = stage.say(&format!("get widgets.v1.{group} one -o=jsonpath={{.way}}"));
            if way == "converted" { Ok(Some(())) } else { Err(way) }
        };
        wait_until(PATIENCE, "a converted widget", converted).unwrap();
        assert_eq!(life.complaints(), complaints, "{verbs:?}");
        stage.say(&format!("delete crd widgets.{group} --wait=false"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_kept_with_the_rights_on_secrets_that_helm_needs() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "create", "update", "delete"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
    ]);
    let mut world = world("unpatched", &rules).await;
    world.simple_module().await;
    // Charts may depend on the list of served APIs, which other tests change meanwhile.
    for (values, revision) in [
        (json!({"x": "a"}), 1),
        (json!({"x": "a", "y": 1}), 1),
        (json!({"x": "b"}), 2),
        (json!({"x": "b"}), 2),
    ] {
        let synced = world.sync(json!({"one": values})).await.unwrap();
        assert_eq!(synced.revision, revision, "{values}");
        let marked = world.kubectl(&format!(
            "get secret sh.helm.release.v1.one.v{revision} -o=jsonpath={{.metadata.annotations.addon-operator/inputs}}"
        ));
        assert_eq!(marked.len(), 32, "{marked}");
    }
    let intents = world.kubectl("get secret addon-operator-intents -o=jsonpath={.data}");
    assert_eq!(
        intents.matches("intent.").count(),
        1,
        "only the last run is remembered: {intents}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_modules_need_beforehand_take_neither_patch_nor_watch() {
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["get", "create", "update"]});
    let rules = json!([
        rule("apiextensions.k8s.io", "customresourcedefinitions"),
        rule("", "configmaps")
    ]);
    let world = world("beforehand", &rules).await;
    let cluster = &world.tools.ground.cluster;
    let group = format!("{}.example.com", world.namespace.name());
    let name = format!("widgets.{group}");
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let config_map =
        |x: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"x": x}});
    for (label, ensured) in [
        ("a", Ensured::Created),
        ("b", Ensured::Updated),
        ("b", Ensured::Unchanged),
    ] {
        let labels = [("is".to_owned(), label.to_owned())].into();
        let made = crd::ensure_crd(cluster, &name, &definition, &labels, OnTrial::No).await;
        assert_eq!(made.unwrap(), ensured);
        crd::await_crd(cluster, &name).await.unwrap();
        assert_eq!(
            ensure::ensure_object(cluster, &config_map(label)).await.unwrap(),
            ensured
        );
    }
    let shown = world.kubectl(&format!("get crd {name} -o=jsonpath={{.metadata.labels.is}}"));
    assert_eq!(shown, "b");
    assert_eq!(world.kubectl("get configmap made -o=jsonpath={.data.x}"), "b");
    world.kubectl(&format!("delete crd {name} --wait=false"));
}
