//! The modules that copy. The registry secret copier is run directly: the operations that its hook asks for in a given
//! cluster. The demo shows their effect on an API server. The copyrator runs with an operator.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use addon_core::hook::config::{HookConfig, HookKind};
use serde_json::{Value, json};
use testbed::process;

#[path = "copier/copyrator.rs"]
mod copyrator;
#[path = "copier/life.rs"]
mod life;
#[path = "copier/limits.rs"]
mod limits;
#[path = "copier/world.rs"]
mod world;

use life::path;

const REGISTRY: &str = "kubernetes.io/dockerconfigjson";
const LABEL_PATH: &str = "/metadata/labels/registry-secret-copier~1copied-from";

/// The objects in the hook's snapshots.
#[derive(Default)]
struct Seen {
    sources: Vec<Value>,
    copies: Vec<Value>,
    namespaces: Vec<Value>,
    allowed: Vec<&'static str>,
}

impl Seen {
    /// Namespaces with these names, all active.
    fn active(names: &[&str]) -> Self {
        let namespace = |name: &&str| json!({"name": name, "active": true});
        Self {
            namespaces: names.iter().map(namespace).collect(),
            ..Self::default()
        }
    }

    fn terminating(mut self, name: &str) -> Self {
        self.namespaces.push(json!({"name": name, "active": false}));
        self
    }

    fn source(mut self, namespace: &str, name: &str, data: &str) -> Self {
        self.sources.push(
            json!({"namespace": namespace, "name": name, "type": REGISTRY, "data": {"d": data}, "copied": false}),
        );
        self
    }

    fn copy(mut self, namespace: &str, name: &str, data: &str, from: &str) -> Self {
        self.copies
            .push(json!({"namespace": namespace, "name": name, "type": REGISTRY, "data": {"d": data}, "from": from}));
        self
    }

    fn snapshots(&self) -> Value {
        let snapshot =
            |objects: &[Value]| -> Value { objects.iter().map(|object| json!({"filterResult": object})).collect() };
        json!({"sources": snapshot(&self.sources), "copies": snapshot(&self.copies),
               "namespaces": snapshot(&self.namespaces)})
    }

    /// Runs the hook: returns its operations and its log.
    fn run(&self, context: &Value) -> (Vec<Value>, String) {
        self.run_with(context, &self.snapshots()).expect("the hook ends well")
    }

    /// Runs the hook with these snapshots; the error is the hook's message.
    fn run_with(&self, context: &Value, snapshots: &Value) -> Result<(Vec<Value>, String), String> {
        let files = tempfile::tempdir().expect("a temporary folder can be made");
        let file = |name: &str| files.path().join(name);
        let mut context = context.clone();
        context["snapshots"] = snapshots.clone();
        fs_err::write(file("contexts"), json!([context]).to_string()).unwrap();
        let values = json!({"global": {}, "registrySecretCopier": {"sourceNamespaces": self.allowed}});
        fs_err::write(file("values"), values.to_string()).unwrap();
        let mut command = process::command(path("modules/200-registry-secret-copier/hooks/copy.sh"));
        command
            .env("FRAMEWORK_DIR", path("frameworks/shell"))
            .env("BINDING_CONTEXT_PATH", file("contexts"))
            .env("VALUES_PATH", file("values"))
            .env("KUBERNETES_PATCH_PATH", file("patch"));
        let output = process::run(command, None).expect("the hook is executable, and bash is installed");
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        let patch = fs_err::read_to_string(file("patch")).unwrap();
        let operations = patch.lines().map(|line| serde_json::from_str(line).unwrap());
        Ok((operations.collect(), String::from_utf8(output.stdout).unwrap()))
    }

    /// The operations that the hook asks for after a change.
    fn wanted(&self) -> Vec<Value> {
        self.run(&json!({"binding": "namespaces", "type": "Group", "groupName": "copies"}))
            .0
    }
}

fn create(namespace: &str, name: &str, data: &str, from: &str) -> Value {
    json!({"operation": "CreateIfNotExists", "object": {
        "apiVersion": "v1", "kind": "Secret", "type": REGISTRY, "data": {"d": data},
        "metadata": {"namespace": namespace, "name": name, "labels": {"registry-secret-copier/copied-from": from}}}})
}

fn delete(namespace: &str, name: &str) -> Value {
    json!({"operation": "DeleteInBackground", "apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": name})
}

fn change(namespace: &str, name: &str, data: &str, (was, from): (&str, &str)) -> Value {
    json!({"operation": "JSONPatch", "apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": name,
           "ignoreMissingObject": true, "jsonPatch": [
               {"op": "test", "path": LABEL_PATH, "value": was},
               {"op": "add", "path": LABEL_PATH, "value": from},
               {"op": "add", "path": "/data", "value": {"d": data}}]})
}

#[test]
fn a_source_is_copied_into_each_active_namespace_but_its_own() {
    let seen = Seen::active(&["default", "one", "two"])
        .terminating("going")
        .source("default", "registry", "x");
    assert_eq!(
        seen.wanted(),
        [
            create("one", "registry", "x", "default"),
            create("two", "registry", "x", "default")
        ]
    );
}

#[test]
fn when_all_is_as_it_should_be_nothing_is_written() {
    let seen = Seen::active(&["default", "one"])
        .source("default", "registry", "x")
        .copy("one", "registry", "x", "default");
    assert_eq!(seen.wanted(), [] as [Value; 0]);
    assert_eq!(Seen::default().wanted(), [] as [Value; 0]);
}

#[test]
fn a_copy_follows_its_source_but_is_never_taken_by_force() {
    let seen = Seen::active(&["default", "one"])
        .source("default", "registry", "new")
        .copy("one", "registry", "old", "default");
    assert_eq!(
        seen.wanted(),
        [change("one", "registry", "new", ("default", "default"))]
    );
}

#[test]
fn a_copy_without_a_source_goes_unless_its_namespace_does() {
    let seen = Seen::active(&["default", "one"])
        .terminating("going")
        .copy("one", "registry", "x", "default")
        .copy("going", "registry", "x", "default");
    assert_eq!(seen.wanted(), [delete("one", "registry")]);
}

#[test]
fn another_source_of_that_name_takes_the_copies_over() {
    let seen = Seen::active(&["b", "one"])
        .source("b", "registry", "y")
        .copy("one", "registry", "x", "a");
    assert_eq!(seen.wanted(), [change("one", "registry", "y", ("a", "b"))]);
}

#[test]
fn of_two_sources_of_one_name_the_first_counts_and_the_log_names_the_other() {
    let seen = Seen::active(&["a", "b", "one"])
        .source("b", "registry", "y")
        .source("a", "registry", "x");
    let context = json!({"binding": "sources", "type": "Group", "groupName": "copies"});
    let (operations, said) = seen.run(&context);
    assert_eq!(operations, [create("one", "registry", "x", "a")]);
    let record: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&record["level"], &record["namespace"]), (&json!("warn"), &json!("b")));
    assert_eq!(
        (&record["secret"], &record["copied_from"]),
        (&json!("registry"), &json!("a"))
    );
}

#[test]
fn a_type_that_changed_needs_a_new_copy() {
    let mut seen = Seen::active(&["default", "one"])
        .source("default", "registry", "x")
        .copy("one", "registry", "x", "default");
    seen.copies[0]["type"] = json!("kubernetes.io/dockercfg");
    assert_eq!(
        seen.wanted(),
        [delete("one", "registry"), create("one", "registry", "x", "default")]
    );
}

#[test]
fn only_registry_secrets_of_allowed_namespaces_are_sources_and_copies_never_are() {
    let sources = || Seen::active(&["default", "one"]).source("default", "registry", "x");
    let mut opaque = sources();
    opaque.sources[0]["type"] = json!("Opaque");
    let mut copied = sources();
    copied.sources[0]["copied"] = json!(true);
    let mut foreign = sources();
    foreign.allowed = vec!["other"];
    for seen in [opaque, copied, foreign] {
        assert_eq!(seen.wanted(), [] as [Value; 0]);
    }
    let mut allowed = sources();
    allowed.allowed = vec!["other", "default"];
    assert_eq!(allowed.wanted(), [create("one", "registry", "x", "default")]);
}

#[test]
fn when_the_module_is_switched_off_all_copies_go() {
    let seen = Seen::active(&["default", "one", "two"])
        .source("default", "registry", "x")
        .copy("one", "registry", "x", "default")
        .copy("two", "registry", "x", "default");
    let (operations, _) = seen.run(&json!({"binding": "afterDeleteHelm"}));
    assert_eq!(operations, [delete("one", "registry"), delete("two", "registry")]);
}

#[test]
fn what_is_not_known_is_not_taken_for_nothing() {
    let seen = Seen::active(&["default", "one"]).copy("one", "registry", "x", "default");
    let context = json!({"binding": "copies", "type": "Group", "groupName": "copies"});
    for binding in ["sources", "copies", "namespaces"] {
        let mut snapshots = seen.snapshots();
        snapshots[binding].take();
        let complaint = seen.run_with(&context, &snapshots).unwrap_err();
        assert!(
            complaint.contains(&format!("there is no snapshot of {binding}")),
            "{complaint}"
        );
    }
}

#[test]
fn five_thousand_namespaces_are_no_trouble() {
    let names: Vec<String> = (0..5000).map(|n| format!("namespace-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen = Seen::active(&names).source("default", "registry", "x");
    assert_eq!(seen.wanted().len(), 5000);
}

/// The filters of the hook's configuration, run with the machine's jq.
#[test]
fn the_filters_find_what_the_hook_works_with() {
    let mut command = process::command(path("modules/200-registry-secret-copier/hooks/copy.sh"));
    command.env("FRAMEWORK_DIR", path("frameworks/shell")).arg("--config");
    let output = process::run(command, None).unwrap();
    let config = HookConfig::parse(&String::from_utf8(output.stdout).unwrap(), HookKind::Module).unwrap();
    let filtered = |binding: usize, object: &Value| -> Value {
        let mut command = process::command("jq");
        command.arg(config.kubernetes[binding].jq_filter.as_ref().unwrap());
        let output = process::run(command, Some(object.to_string().as_bytes())).expect("jq is installed");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let copy = json!({"metadata": {"namespace": "one", "name": "r", "labels": {"registry-secret-copier/copied-from": "a"}},
                      "type": REGISTRY, "data": {"d": "x"}});
    let plain = json!({"metadata": {"namespace": "a", "name": "r"}, "type": "Opaque"});
    assert_eq!(
        filtered(0, &copy),
        json!({"namespace": "one", "name": "r", "type": REGISTRY, "data": {"d": "x"}, "copied": true})
    );
    assert_eq!(
        filtered(0, &plain),
        json!({"namespace": "a", "name": "r", "type": "Opaque", "data": {}, "copied": false})
    );
    assert_eq!(
        filtered(1, &copy),
        json!({"namespace": "one", "name": "r", "type": REGISTRY, "data": {"d": "x"}, "from": "a"})
    );
    let rows = [
        (json!({"metadata": {"name": "n"}, "status": {"phase": "Active"}}), true),
        (
            json!({"metadata": {"name": "n"}, "status": {"phase": "Terminating"}}),
            false,
        ),
        (
            json!({"metadata": {"name": "n", "deletionTimestamp": "now"}, "status": {"phase": "Active"}}),
            false,
        ),
        (json!({"metadata": {"name": "n"}}), false),
    ];
    for (namespace, active) in rows {
        assert_eq!(
            filtered(2, &namespace),
            json!({"name": "n", "active": active}),
            "{namespace}"
        );
    }
}
