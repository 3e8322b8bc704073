//! `Apply` on a real API server: fields with owners, conflicts between owners, and the status.

use addon_core::failure::Class;
use serde_json::json;

use super::{Stage, config_map};

fn apply(manager: &str, name: &str, data: &str) -> String {
    format!(
        "operation: Apply\nfieldManager: {manager}\nobject: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: NS}}, data: {data}}}\n"
    )
}

#[tokio::test]
async fn an_object_is_created_and_only_own_fields_are_set_and_removed() {
    let stage = Stage::new("apply").await;
    stage.apply(&apply("one", "a", "{x: '1', y: '1'}")).await.unwrap();
    assert_eq!(stage.data("a"), json!({"x": "1", "y": "1"}));
    stage.apply(&apply("two", "a", "{z: '2'}")).await.unwrap();
    // A field that its owner leaves out is removed; those of others stay.
    stage.apply(&apply("one", "a", "{x: '3'}")).await.unwrap();
    assert_eq!(stage.data("a"), json!({"x": "3", "z": "2"}));
    let fields = stage.object("configmap a --show-managed-fields")["metadata"]["managedFields"].clone();
    let managers: Vec<&str> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["one", "two"]);

    // Applying the same again writes nothing.
    let version = |stage: &Stage| stage.object("configmap a")["metadata"]["resourceVersion"].clone();
    let before = version(&stage);
    stage.apply(&apply("one", "a", "{x: '3'}")).await.unwrap();
    assert_eq!(version(&stage), before);
}

#[tokio::test]
async fn a_conflict_names_the_manager_and_the_field_and_can_be_forced() {
    let stage = Stage::new("owned").await;
    stage
        .apply(&apply("module-one", "a", "{x: '1', y: '1'}"))
        .await
        .unwrap();
    let refused = stage.apply(&apply("module-two", "a", "{x: '2'}")).await.unwrap_err();
    assert_eq!(refused.class, Class::Refused);
    let namespace = stage.namespace();
    let begin =
        format!("Apply object v1/ConfigMap/{namespace}/a: cannot patch configmaps 'a' in namespace '{namespace}': ");
    assert!(refused.report.starts_with(&begin), "{refused}");
    for words in ["conflict with \"module-one\"", ".data.x"] {
        assert!(refused.report.contains(words), "{words} is not in {refused}");
    }
    assert!(
        refused.hints.iter().any(|hint| hint.contains("force: true")),
        "{refused:?}"
    );
    assert_eq!(stage.data("a"), json!({"x": "1", "y": "1"}));

    // Equal values have both owners, and are no conflict.
    stage.apply(&apply("module-two", "a", "{y: '1'}")).await.unwrap();
    let forced = format!("{}force: true\n", apply("module-two", "a", "{x: '2'}"));
    stage.apply(&forced).await.unwrap();
    assert_eq!(stage.data("a"), json!({"x": "2", "y": "1"}));
    let lost = stage.apply(&apply("module-one", "a", "{x: '1'}")).await.unwrap_err();
    assert!(lost.report.contains("conflict with \"module-two\""), "{lost}");
}

#[tokio::test]
async fn fields_of_kubectl_are_owned_too() {
    let stage = Stage::new("kubectl").await;
    stage.given(&[config_map("a", &json!({"x": "1"}))]);
    let refused = stage.apply(&apply("one", "a", "{x: '2'}")).await.unwrap_err();
    assert!(refused.report.contains("conflict with \"kubectl"), "{refused}");
    stage.apply(&apply("one", "a", "{y: '2'}")).await.unwrap();
    assert_eq!(stage.data("a"), json!({"x": "1", "y": "2"}));
}

#[tokio::test]
async fn the_status_is_applied_beside_the_rest() {
    let stage = Stage::new("status-apply").await;
    // No controller writes conditions of a Service.
    let condition = json!({
        "type": "Tested", "status": "True", "reason": "Applied", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = String::from(
        "operation: Apply\nfieldManager: one two&three\nsubresource: status\nobject:\n  apiVersion: v1\n  kind: Service\n  \
         metadata: {name: a, namespace: NS}\n  status: {conditions: [CONDITION]}\n",
    )
    .replace("CONDITION", &condition.to_string());
    let absent = |more: &str| {
        format!(
            "operation: Apply\nfieldManager: one\nsubresource: status\n{more}object: {{apiVersion: apps/v1, kind: Deployment, \
             metadata: {{name: a, namespace: NS}}, status: {{observedGeneration: 1}}}}\n"
        )
    };
    let missing = stage.apply(&absent("")).await.unwrap_err();
    assert!(missing.report.contains("\"a\" not found"), "{missing}");
    stage.apply(&absent("ignoreMissingObject: true\n")).await.unwrap();
    stage.given(&[json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]},
    })]);
    stage.apply(&status).await.unwrap();
    assert_eq!(stage.object("service a")["status"]["conditions"], json!([condition]));
    let fields = stage.object("service a --show-managed-fields")["metadata"]["managedFields"].clone();
    assert!(fields.to_string().contains("\"manager\":\"one two&three\""), "{fields}");
}
