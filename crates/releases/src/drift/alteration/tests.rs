use super::*;

/// A live object that helm made from a manifest, with changes by other managers.
fn live(spec: &Value, entries: &[(&str, &str, Value)]) -> Value {
    let entries: Vec<Value> = entries
        .iter()
        .map(|(manager, subresource, fields)| {
            json!({"manager": manager, "operation": "Update", "subresource": subresource, "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": fields})
        })
        .collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec, "metadata": {"name": "a", "uid": "u",
        "resourceVersion": "7", "labels": {"heritage": "addon-operator"}, "managedFields": entries}})
}

fn manifest(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "creationTimestamp": null,
        "labels": {"heritage": "addon-operator"}}, "spec": spec, "status": {"ready": 1}})
}

fn heritage() -> Value {
    json!({"f:labels": {"f:heritage": {}}})
}

fn told(manifest: &Value, live: &Value) -> Vec<(String, Option<String>)> {
    let found = alterations_of(manifest, live);
    found.into_iter().map(|one| (one.field(), one.by)).collect()
}

fn by(field: &str, name: &str) -> (String, Option<String>) {
    (field.to_owned(), Some(name.to_owned()))
}

#[test]
fn what_a_person_has_set_is_told_with_the_tool_and_put_right() {
    let wanted = manifest(&json!({"replicas": 1, "paused": false, "note": "x"}));
    let ours = json!({"f:metadata": heritage(), "f:spec": {"f:paused": {}, "f:note": {}}});
    let theirs = json!({"f:spec": {"f:replicas": {}}});
    let found = live(
        &json!({"replicas": 3, "paused": false, "note": "X", "more": 1}),
        &[("helm", "", ours), ("kubectl-edit", "", theirs)],
    );
    // The API server has rewritten a value of helm's, which is no alteration.
    assert_eq!(told(&wanted, &found), [by("spec.replicas", "kubectl-edit")]);
    assert_eq!(
        remedy(&found, &alterations_of(&wanted, &found)),
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 1}})
    );
}

#[test]
fn what_autoscalers_and_controllers_have_set_stays() {
    let wanted = manifest(&json!({"replicas": 1, "size": 1}));
    let rows = [
        ("kube-controller-manager", "scale"),
        ("kubectl", "scale"),
        ("vpa-recommender", ""),
        ("cert-manager-cainjector", ""),
        ("manager", ""),
        ("my.example.com/things-operator", ""),
    ];
    for (manager, subresource) in rows {
        let found = live(
            &json!({"replicas": 3, "size": 1}),
            &[
                ("helm", "", json!({"f:metadata": heritage(), "f:spec": {"f:size": {}}})),
                (manager, subresource, json!({"f:spec": {"f:replicas": {}}})),
            ],
        );
        assert_eq!(told(&wanted, &found), [], "{manager}");
    }
}

#[test]
fn what_was_taken_away_is_put_back() {
    let wanted = manifest(&json!({"size": 1, "nothing": null, "empty": {"a": []}}));
    let found = live(&json!({}), &[("helm", "", json!({"f:metadata": heritage()}))]);
    assert_eq!(told(&wanted, &found), [("spec.size".to_owned(), None)]);
    let patch = remedy(&found, &alterations_of(&wanted, &found));
    assert_eq!(patch["spec"], json!({"size": 1}));
    // Helm still owns the existence of the map, but no field in it.
    let emptied = live(
        &json!({"more": 1}),
        &[
            ("helm", "", json!({"f:metadata": heritage(), "f:spec": {}})),
            ("kubectl-patch", "", json!({"f:spec": {"f:more": {}}})),
        ],
    );
    assert_eq!(told(&wanted, &emptied), [("spec.size".to_owned(), None)]);
}

#[test]
fn items_of_lists_are_found_by_their_keys_and_only_theirs_are_put_right() {
    let wanted = manifest(&json!({"containers": [
        {"name": "b", "image": "b:1", "args": ["x"], "ports": [{"containerPort": 80}]},
        {"name": "gone", "image": "c:1"},
    ]}));
    let ours = json!({"f:metadata": heritage(), "f:spec": {"f:containers": {
        "k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:args": {},
            "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}});
    let theirs = json!({"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {"f:image": {}},
        "k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}}}}});
    let containers = json!([
        {"name": "side", "image": "side:1"},
        {"name": "b", "image": "evil", "args": ["x"], "ports": [{"containerPort": 80, "protocol": "TCP"}]},
    ]);
    let found = live(
        &json!({"containers": containers}),
        &[("helm", "", ours), ("kubectl-patch", "", theirs)],
    );
    assert_eq!(
        told(&wanted, &found),
        [
            by("spec.containers[1].image", "kubectl-patch"),
            ("spec.containers[]".to_owned(), None)
        ]
    );
    let mut expected = containers;
    expected[1]["image"] = json!("b:1");
    expected
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "gone", "image": "c:1"}));
    let patch = remedy(&found, &alterations_of(&wanted, &found));
    assert_eq!(patch["spec"], json!({"containers": expected}));
}

#[test]
fn lists_without_keys_and_sets_are_compared_as_such() {
    let wanted = manifest(&json!({"args": ["a", {"x": 1}], "finalizers": ["one", "two"], "same": [{"x": 1}]}));
    let ours = json!({"f:metadata": heritage(), "f:spec": {"f:finalizers": {"v:\"one\"": {}}, "f:same": {}}});
    let found = live(
        &json!({"args": ["b"], "finalizers": ["one", "theirs"], "same": [{"x": 1.0, "default": true}]}),
        &[("helm", "", ours), ("k9s", "", json!({"f:spec": {"f:args": {}}}))],
    );
    assert_eq!(
        told(&wanted, &found),
        [by("spec.args", "k9s"), ("spec.finalizers[]".to_owned(), None)]
    );
}

#[test]
fn labels_and_annotations_count_and_a_secret_is_read_as_it_is_kept() {
    let wanted = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {"x": "1"}},
        "stringData": {"k": "text"}, "data": {"l": "bA=="}});
    let entries = json!([
        {"manager": "helm", "fieldsV1": {"f:data": {".": {}, "f:l": {}}}},
        {"manager": "kubectl-annotate", "fieldsV1": {"f:metadata": {"f:annotations": {"f:x": {}}}}},
        {"manager": "kubectl-edit", "fieldsV1": {"f:data": {"f:k": {}}}},
    ]);
    let found = json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "b3RoZXI=", "l": "bA=="},
        "metadata": {"name": "a", "annotations": {"x": "2"}, "managedFields": entries}});
    assert_eq!(
        told(&wanted, &found),
        [
            by("data.k", "kubectl-edit"),
            by("metadata.annotations.x", "kubectl-annotate")
        ]
    );
    assert_eq!(
        remedy(&found, &alterations_of(&wanted, &found))["data"],
        json!({"k": "dGV4dA=="})
    );
}

#[test]
fn a_fingerprint_changes_with_every_write_but_those_to_the_side() {
    let entry = |manager: &'static str, subresource: &'static str| (manager, subresource, json!({"f:spec": {}}));
    let print = |entries: &[(&str, &str, Value)]| fingerprint(&live(&json!({}), entries));
    let alone = print(&[entry("helm", "")]);
    assert_eq!(alone, print(&[entry("helm", ""), entry("kubelet", "status")]));
    assert_ne!(alone, print(&[entry("helm", ""), entry("kubectl-edit", "")]));
}
