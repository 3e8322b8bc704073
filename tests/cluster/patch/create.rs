//! Patches that create objects.

use addon_core::failure::Class;
use serde_json::{Value, json};

use super::{Stage, config_map};

fn create(operation: &str, name: &str, value: &str) -> String {
    format!(
        "---\noperation: {operation}\nobject:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {{name: {name}, namespace: NS}}\n  data: {{a: {value}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exists_is_refused_kept_or_replaced() {
    let stage = Stage::new("create").await;
    stage.given(&[config_map("old", &json!({"a": "old", "b": "old"}))]);
    let failure = stage
        .apply(
            &[
                create("Create", "before", "new"),
                create("Create", "old", "new"),
                create("Create", "after", "new"),
            ]
            .concat(),
        )
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    assert_eq!(stage.data("before"), json!({"a": "new"}));
    assert_eq!(stage.data("after"), json!({"a": "new"}));
    assert_eq!(stage.data("old"), json!({"a": "old", "b": "old"}));

    stage
        .apply(
            &[
                create("CreateIfNotExists", "old", "new"),
                create("CreateIfNotExists", "kept", "new"),
            ]
            .concat(),
        )
        .await
        .unwrap();
    assert_eq!(stage.data("old"), json!({"a": "old", "b": "old"}));
    assert_eq!(stage.data("kept"), json!({"a": "new"}));

    stage
        .apply(
            &[
                create("CreateOrUpdate", "old", "new"),
                create("CreateOrUpdate", "made", "new"),
            ]
            .concat(),
        )
        .await
        .unwrap();
    assert_eq!(stage.data("old"), json!({"a": "new"}), "replaced as a whole");
    assert_eq!(stage.data("made"), json!({"a": "new"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_any_notation_reach_the_server_as_what_they_are() {
    let stage = Stage::new("create-numbers").await;
    for (operation, port) in [
        ("operation: CreateOrUpdate\n", "80"),
        ("operation: CreateOrUpdate\n", "8080.0"),
        ("operation: CreateOrUpdate\n", "0x1F90"),
    ] {
        let object = "object: {apiVersion: v1, kind: Endpoints, metadata: {name: ports, namespace: NS}, \
                      subsets: [{addresses: [{ip: 192.0.2.2}], ports: [{port: PORT}]}]}";
        stage
            .apply(&format!("{operation}{}", object.replace("PORT", port)))
            .await
            .unwrap();
    }
    let json = r#"{"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "ports", "namespace": "NS"},
        "subsets": [{"addresses": [{"ip": "192.0.2.2"}], "ports": [{"port": 9.0}, {"port": 8e1, "name": "b"}]}]}}"#;
    let failure = stage.apply(json).await.unwrap_err();
    // The server has parsed the numbers and now demands a name for each port.
    assert!(failure.report.contains("Required value"), "{failure}");
    assert_eq!(stage.object("endpoints ports")["subsets"][0]["ports"][0]["port"], 8080);
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_one_object_at_the_same_time_all_have_their_turn() {
    let stage = Stage::new("create-race").await;
    let writers = ["one", "two", "three"].map(|value| create("CreateOrUpdate", "shared", value));
    for outcome in futures::future::join_all(writers.iter().map(|text| stage.apply(text))).await {
        outcome.unwrap();
    }
    assert_ne!(stage.data("shared"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_may_go_by_any_of_its_names_and_a_name_may_be_left_to_the_server() {
    let stage = Stage::new("create-names").await;
    stage
        .apply("operation: Create\nobject: {kind: cm, metadata: {generateName: made-, namespace: NS}, data: {a: b}}")
        .await
        .unwrap();
    let made = stage.object("configmaps");
    let names = made["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("made-")).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_cluster_are_created_and_deleted_without_a_namespace() {
    let stage = Stage::new("create-role").await;
    let role = format!("{}:reader", stage.namespace());
    stage
        .apply(&format!(
            "operation: CreateOrUpdate\nobject: {{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: '{role}'}}, \
             rules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]}}"
        ))
        .await
        .unwrap();
    assert_eq!(
        stage.object(&format!("clusterrole {role}"))["rules"][0]["verbs"],
        json!(["get"])
    );
    stage
        .apply(&format!("operation: Delete\nkind: clusterroles\nname: '{role}'"))
        .await
        .unwrap();
    assert_eq!(stage.object(&format!("clusterrole {role}")), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_does_not_exist_is_what_the_error_tells() {
    let stage = Stage::new("create-nowhere").await;
    let text = create("CreateOrUpdate", "a", "b").replace("NS", "nowhere-to-be-found");
    let failure = stage.apply(&text).await.unwrap_err();
    assert!(
        failure.report.ends_with("namespaces \"nowhere-to-be-found\" not found"),
        "{failure}"
    );
    assert_eq!(failure.class, Class::Refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_finds_wrong_with_an_object_is_told() {
    let stage = Stage::new("create-invalid").await;
    let failure = stage.apply(&create("Create", "Not_A_Name", "b")).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    assert!(failure.report.contains("RFC 1123"), "{failure}");
}
