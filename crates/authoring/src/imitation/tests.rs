use addon_core::failure::Failure;
use addon_core::object::patch;
use kube_access::kinds::Kinds;
use objects::Patcher;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

fn resource(group: &str, kind: &str, plural: &str, is_namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned(),
        versions: vec!["v1".to_owned()],
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        is_namespaced,
        short_names: vec![kind.to_lowercase()[..2].to_owned()],
    }
}

fn imitation() -> Imitation {
    let served = vec![
        resource("", "ConfigMap", "configmaps", true),
        resource("", "Namespace", "namespaces", false),
        resource("apps", "Deployment", "deployments", true),
    ];
    Imitation::new(served)
}

/// A filter language for tests: the program is a key that is added.
#[expect(clippy::unnecessary_wraps, reason = "the type of filters")]
fn jq(program: &str, object: &Value) -> Result<Vec<Value>, Failure> {
    let mut object = object.clone();
    object[program] = json!(1);
    Ok(vec![object])
}

/// Carries out operations as the operator does, and returns the text of the failure.
async fn apply(imitation: &Imitation, operations: Value) -> Result<(), String> {
    let cluster = imitation.cluster("default");
    let patcher = Patcher::new(cluster.clone(), Kinds::new(cluster), jq);
    let documents = operations.as_array().unwrap().iter().map(Value::to_string);
    let operations = patch::parse(&documents.collect::<Vec<_>>().join("\n")).unwrap();
    let applied = patcher.apply(&operations, &CancellationToken::new()).await;
    applied.map_err(|failure| failure.report)
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}, "data": data})
}

fn data(imitation: &Imitation, name: &str) -> Option<Value> {
    let found = imitation.find(&map(name, &Value::Null)).unwrap()?;
    Some(found["data"].clone())
}

#[tokio::test]
async fn every_operation_acts_as_on_an_api_server() {
    let imitation = imitation();
    imitation.put(map("old", &json!({"k": "1"}))).unwrap();
    let on = |operation: &str, name: &str, more: Value| {
        let mut document =
            json!({"operation": operation, "apiVersion": "v1", "kind": "co", "namespace": "a", "name": name});
        document
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        document
    };
    let create = |operation: &str, name: &str, value: &str| json!({"operation": operation, "object": map(name, &json!({"k": value}))});
    apply(
        &imitation,
        json!([
            create("CreateIfNotExists", "old", "2"),
            create("CreateIfNotExists", "new", "2")
        ]),
    )
    .await
    .unwrap();
    assert_eq!(
        (data(&imitation, "old"), data(&imitation, "new")),
        (Some(json!({"k": "1"})), Some(json!({"k": "2"})))
    );
    apply(
        &imitation,
        json!([
            create("CreateOrUpdate", "old", "3"),
            create("CreateOrUpdate", "newer", "3")
        ]),
    )
    .await
    .unwrap();
    assert_eq!(
        (data(&imitation, "old"), data(&imitation, "newer")),
        (Some(json!({"k": "3"})), Some(json!({"k": "3"})))
    );
    let error = apply(&imitation, json!([create("Create", "old", "4")]))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("Create object v1/ConfigMap/a/old: ") && error.contains("configmaps \"old\" already exists"),
        "{error}"
    );
    let changes = json!([
        on(
            "MergePatch",
            "old",
            json!({"mergePatch": {"data": {"m": "x", "k": null}}})
        ),
        on(
            "JSONPatch",
            "old",
            json!({"jsonPatch": [{"op": "test", "path": "/data/m", "value": "x"},
            {"op": "add", "path": "/data/j", "value": "y"}]})
        ),
        on("JQPatch", "new", json!({"jqFilter": "more"})),
        on(
            "MergePatch",
            "newer",
            json!({"subresource": "status", "mergePatch": {"data": {"k": "5"}, "status": {"s": 1}}})
        ),
        on(
            "MergePatch",
            "none",
            json!({"ignoreMissingObject": true, "mergePatch": {"a": 1}})
        ),
        on("DeleteInBackground", "none", json!({})),
    ]);
    apply(&imitation, changes).await.unwrap();
    assert_eq!(data(&imitation, "old"), Some(json!({"m": "x", "j": "y"})));
    let newer = imitation.find(&map("newer", &Value::Null)).unwrap().unwrap();
    assert_eq!(
        (&newer["data"], &newer["status"]),
        (&json!({"k": "3"}), &json!({"s": 1}))
    );
    assert_eq!(imitation.find(&map("new", &Value::Null)).unwrap().unwrap()["more"], 1);
    let deletes = ["Delete", "DeleteNonCascading"];
    apply(
        &imitation,
        json!([on(deletes[0], "old", json!({})), on(deletes[1], "new", json!({}))]),
    )
    .await
    .unwrap();
    assert_eq!((data(&imitation, "old"), data(&imitation, "new")), (None, None));
}

#[tokio::test]
async fn what_an_api_server_refuses_is_refused() {
    let imitation = imitation();
    imitation.put(map("one", &json!({"k": "1"}))).unwrap();
    let rows = [
        (
            json!([{"operation": "MergePatch", "kind": "ConfigMap", "namespace": "a", "name": "none", "mergePatch": {"a": 1}}]),
            "configmaps \"none\" not found",
        ),
        (
            json!([{"operation": "JSONPatch", "kind": "ConfigMap", "namespace": "a", "name": "one",
            "jsonPatch": [{"op": "test", "path": "/data/k", "value": "2"}]}]),
            "the server rejected the patch",
        ),
        (
            json!([{"operation": "Delete", "kind": "Gadget", "name": "one"}]),
            "Cannot get GroupVersionResource info",
        ),
        (
            json!([{"operation": "MergePatch", "kind": "ConfigMap", "name": "one", "mergePatch": {"a": 1}}]),
            "none is named",
        ),
        (
            json!([{"operation": "MergePatch", "kind": "deployment", "namespace": "a", "name": "x", "subresource": "scale",
            "mergePatch": {"a": 1}}]),
            "only the subresource status",
        ),
    ];
    for (operations, expected) in rows {
        let error = apply(&imitation, operations).await.unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert_eq!(data(&imitation, "one"), Some(json!({"k": "1"})));
}

#[tokio::test]
async fn an_object_with_finalizers_stays_until_they_are_gone() {
    let imitation = imitation();
    let namespace = |more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object
    };
    imitation.put(namespace(json!({"finalizers": ["x"]}))).unwrap();
    let delete = json!([{"operation": "DeleteInBackground", "kind": "Namespace", "name": "n"}]);
    apply(&imitation, delete).await.unwrap();
    let found = imitation.find(&namespace(json!({}))).unwrap().unwrap();
    assert!(found["metadata"]["deletionTimestamp"].is_string());
    let release = json!([{"operation": "MergePatch", "kind": "Namespace", "name": "n", "mergePatch": {"metadata": {"finalizers": null}}}]);
    apply(&imitation, release).await.unwrap();
    assert_eq!(imitation.find(&namespace(json!({}))).unwrap(), None);
}

#[tokio::test]
async fn names_are_generated_and_places_are_checked() {
    let imitation = imitation();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-", "namespace": "a"}});
    apply(
        &imitation,
        json!([{"operation": "Create", "object": object}, {"operation": "Create", "object": object}]),
    )
    .await
    .unwrap();
    let names: Vec<String> = imitation
        .objects("", "ConfigMap")
        .iter()
        .map(|one| one["metadata"]["name"].to_string())
        .collect();
    assert_eq!(names, ["\"g-00001\"", "\"g-00002\""]);
    let put = |object: Value| imitation.put(object).unwrap_err().to_string();
    assert_eq!(put(json!({"kind": "ConfigMap"})), "it has no apiVersion");
    assert_eq!(
        put(json!({"apiVersion": "v1", "kind": "ConfigMap"})),
        "it has no metadata.name"
    );
    assert_eq!(
        put(json!({"apiVersion": "x/v1", "kind": "Y", "metadata": {"name": "a"}})),
        "the kind Y of x/v1 is unknown"
    );
    assert_eq!(
        put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "b"}})),
        "objects of kind Namespace live in no namespace, and 'b' is named"
    );
    imitation
        .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}))
        .unwrap();
    assert!(
        imitation
            .objects("", "ConfigMap")
            .iter()
            .any(|one| one["metadata"]["namespace"] == "default")
    );
    let ghost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}});
    imitation.remove(&ghost).unwrap();
    assert_eq!(imitation.find(&ghost).unwrap(), None);
}

#[tokio::test]
async fn fields_that_are_applied_have_owners() {
    let imitation = imitation();
    imitation.put(map("old", &json!({"k": "1", "given": "yes"}))).unwrap();
    let of = |manager: &str, name: &str, data: Value| json!({"operation": "Apply", "fieldManager": manager, "object": map(name, &data)});
    let applied = apply(
        &imitation,
        json!([
            of("one", "new", json!({"a": "1", "b": "1"})),
            of("two", "new", json!({"c": "2"})),
            of("one", "new", json!({"b": "2"})),
            of("one", "old", json!({"k": "2"})),
        ]),
    );
    applied.await.unwrap();
    assert_eq!(data(&imitation, "new"), Some(json!({"b": "2", "c": "2"})));
    assert_eq!(data(&imitation, "old"), Some(json!({"k": "2", "given": "yes"})));

    let refused = apply(&imitation, json!([of("two", "new", json!({"b": "3", "c": "2"}))])).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.contains("Apply failed with 1 conflict: conflict with \"one\": .data.b"),
        "{refused}"
    );
    let mut forced = of("two", "new", json!({"b": "3"}));
    forced["force"] = json!(true);
    apply(&imitation, json!([forced])).await.unwrap();
    assert_eq!(data(&imitation, "new"), Some(json!({"b": "3"})));
    // The field is no longer of the first manager, so it is not removed.
    apply(&imitation, json!([of("one", "new", json!({"d": "4"}))]))
        .await
        .unwrap();
    assert_eq!(data(&imitation, "new"), Some(json!({"b": "3", "d": "4"})));
}

#[tokio::test]
async fn lists_are_not_merged_by_guessing() {
    let imitation = imitation();
    let object = |items: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "a"}, "spec": {"items": items}});
    let of = |items: Value| json!([{"operation": "Apply", "fieldManager": "one", "object": object(items)}]);
    apply(&imitation, of(json!([1]))).await.unwrap();
    apply(&imitation, of(json!([2]))).await.unwrap();
    imitation.put(object(json!([3]))).unwrap();
    apply(&imitation, of(json!([3]))).await.unwrap();
    imitation.put(object(json!([4]))).unwrap();
    let refused = apply(&imitation, of(json!([5]))).await.unwrap_err();
    assert!(
        refused.contains("does not merge the list .spec.items with the existing one"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_status_is_applied_to_an_object_that_exists() {
    let imitation = imitation();
    let status = |name: &str, more: Value| {
        let mut operation = json!({
            "operation": "Apply", "fieldManager": "one", "subresource": "status",
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "a"}, "status": {"ready": 1}, "spec": {"no": 1}},
        });
        if let (Some(operation), Value::Object(more)) = (operation.as_object_mut(), more) {
            operation.extend(more);
        }
        json!([operation])
    };
    let refused = apply(&imitation, status("a", json!({}))).await.unwrap_err();
    assert!(refused.contains("\"a\" not found"), "{refused}");
    apply(&imitation, status("a", json!({"ignoreMissingObject": true})))
        .await
        .unwrap();
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "a"}});
    imitation.put(deployment.clone()).unwrap();
    apply(&imitation, status("a", json!({}))).await.unwrap();
    let found = imitation.find(&deployment).unwrap().unwrap();
    assert_eq!((&found["status"], &found["spec"]), (&json!({"ready": 1}), &Value::Null));
    let mut whole = deployment.clone();
    whole["spec"] = json!({"size": 1});
    let whole = json!([{"operation": "Apply", "fieldManager": "one", "object": whole}]);
    apply(&imitation, whole).await.unwrap();
    apply(&imitation, status("a", json!({}))).await.unwrap();
    let found = imitation.find(&deployment).unwrap().unwrap();
    assert_eq!(
        (&found["status"], &found["spec"]),
        (&json!({"ready": 1}), &json!({"size": 1}))
    );
}
