//! The limits of one run of the copyrator's hook, run directly.

use serde_json::{Value, json};
use testbed::process;

use super::path;

/// Runs the hook with these snapshots, and returns its operations.
fn planned(snapshots: &Value) -> Vec<Value> {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str| files.path().join(name);
    let context = json!([{"binding": "rules", "type": "Group", "groupName": "copies", "snapshots": snapshots}]);
    fs_err::write(file("contexts"), context.to_string()).unwrap();
    fs_err::write(file("values"), json!({"copyrator": {"ruleNamespaces": []}}).to_string()).unwrap();
    let mut command = process::command(path("modules/400-copyrator/hooks/copy.sh"));
    command
        .env("FRAMEWORK_DIR", path("frameworks/shell"))
        .env("BINDING_CONTEXT_PATH", file("contexts"))
        .env("VALUES_PATH", file("values"))
        .env("KUBERNETES_PATCH_PATH", file("patch"));
    let output = process::run(command, None).expect("the hook is executable, and bash is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let patch = fs_err::read_to_string(file("patch")).unwrap();
    assert!(
        patch.len() < 16 << 20,
        "the operator refuses a file of {} bytes",
        patch.len()
    );
    patch.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn five_thousand_namespaces_are_written_in_parts_that_the_operator_accepts() {
    let filtered = |objects: Vec<Value>| -> Value {
        objects
            .into_iter()
            .map(|object| json!({"filterResult": object}))
            .collect()
    };
    let namespaces = (0..5000)
        .map(|n| json!({"name": format!("n{n}"), "labels": {}, "active": true}))
        .collect();
    let namespaces = filtered(namespaces);
    let rule = json!({"namespace": "n0", "name": "rule", "generation": 1, "going": false,
        "rule": {"ruleType": "configmap", "selector": {"copy": "yes"}}});
    let parts = [(1000, 500), (1_000_000, 8)];
    for (size, most) in parts {
        let data = json!({"a": "x".repeat(size)});
        let source = json!({"namespace": "n0", "name": "settings", "labels": {"copy": "yes"}, "annotations": {},
            "data": {"a": [size, 1]}, "binary": {}, "version": "u/1", "size": size, "values": {"data": data, "binary": {}}});
        let snapshots = json!({"rules": filtered(vec![rule.clone()]), "statuses": [], "namespaces": namespaces,
            "configmaps": filtered(vec![source]), "secrets": []});
        let operations = planned(&snapshots);
        let created = operations
            .iter()
            .filter(|operation| operation["operation"] == "CreateIfNotExists")
            .count();
        assert_eq!((created, operations.len()), (most, most + 1), "with {size} bytes");
        let status = &operations[most]["jsonPatch"][0]["value"];
        assert_eq!((&status["wanted"], &status["copies"]), (&json!(4999), &json!(0)));
    }
}
