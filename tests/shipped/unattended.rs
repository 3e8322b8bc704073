//! The aerospike module while it is off, and while no operator runs.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::wait::wait_until;

use super::stage::{
    CLUSTERS, PATIENCE, Reviews, Stage, apply, cluster, condition, find, plane, settled, try_change, try_create,
    wait_for,
};

#[test]
fn the_module_is_off_at_first_and_its_clusters_outlive_operator_and_module() {
    let plane = plane();
    let stage = Stage::build(&plane, Reviews::Served);
    let namespace = plane.namespace("clusters").unwrap();
    let operator = stage.start();
    let look = || {
        let log = stage.log();
        if log.contains("Converge modules finished") {
            Ok(Some(()))
        } else {
            Err(log)
        }
    };
    wait_until(PATIENCE, "the first converge", look).unwrap();
    assert!(
        find(&namespace, "crd", CLUSTERS).is_none(),
        "a module that is off has no definition"
    );
    assert!(!reviews(&namespace).contains("aerospike"));

    let section = "{image: server, minReadySeconds: 0}";
    stage.configure(&json!({"aerospikeEnabled": "true", "aerospike": section}));
    wait_for(&namespace, ("crd", CLUSTERS), "its definition", |crd| {
        crd["status"]["acceptedNames"]["kind"] == "AerospikeCluster"
    });
    stage.wait_for_reviews();
    drop(operator);
    the_schema_holds_the_limits(&namespace);

    apply(&namespace, &cluster("plain", &json!({"deployments": 2})));
    apply(
        &namespace,
        &cluster("hasty", &json!({"deployments": 1, "heartbeat": {"interval": 10}})),
    );
    let operator = stage.start();
    clusters_without_a_review_are_completed_and_judged(&namespace);

    drop(operator);
    try_change(&namespace, "plain", &json!({"deployments": 3})).unwrap();
    namespace.kubectl(["delete", "service", "plain"]).unwrap();
    let operator = stage.start();
    settled(&namespace, "plain");
    values_and_the_switch_are_followed(&stage, &namespace);
    drop(operator);
}

fn clusters_without_a_review_are_completed_and_judged(namespace: &Namespace<'_>) {
    let plain = settled(namespace, "plain");
    assert_eq!(plain["spec"], json!({"deployments": 2}), "no review has completed it");
    let set = find(namespace, "statefulset", "plain").unwrap();
    assert!(
        set.to_string().contains(r#"{"name":"REPL_FACTOR","value":"2"}"#),
        "{set}"
    );
    let hasty = wait_for(namespace, (CLUSTERS, "hasty"), "a condition", |hasty| {
        condition(hasty, "Accepted")[0] == "False"
    });
    assert_eq!(
        condition(&hasty, "Accepted"),
        [
            "False",
            "Invalid",
            "spec.heartbeat.interval: must be at least 50, is 10"
        ]
    );
    assert!(find(namespace, "configmap", "hasty").is_none());
}

fn values_and_the_switch_are_followed(stage: &Stage<'_>, namespace: &Namespace<'_>) {
    let image = |name: &str| {
        stage.configure(
            &json!({"aerospikeEnabled": "true", "aerospike": format!("{{image: {name}, minReadySeconds: 0}}")}),
        );
        wait_for(namespace, ("statefulset", "plain"), name, |set| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] == name
        })
    };
    let set = image("newer");

    stage.configure(&json!({"aerospikeEnabled": "false"}));
    let look = || {
        let said = reviews(namespace);
        if said.contains("aerospike") {
            Err(said)
        } else {
            Ok(Some(()))
        }
    };
    wait_until(PATIENCE, "the end of the reviews", look).unwrap();
    let after = find(namespace, "statefulset", "plain").unwrap();
    assert_eq!(
        (&after["metadata"]["uid"], &after["spec"]),
        (&set["metadata"]["uid"], &set["spec"])
    );
}

/// The names of all webhooks.
fn reviews(namespace: &Namespace<'_>) -> String {
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    namespace
        .kubectl(["get", kinds, "--output=jsonpath={..webhooks[*].name}"])
        .unwrap()
}

fn the_schema_holds_the_limits(namespace: &Namespace<'_>) {
    let long = "n".repeat(53);
    let rows: [(&str, Value, &str); 12] = [
        ("a", json!({}), "spec.deployments: Required value"),
        ("a", json!({"deployments": 0}), "spec.deployments: Invalid value: 0"),
        (
            "a",
            json!({"deployments": 2, "replicationFactor": 3}),
            "spec.replicationFactor: Invalid value",
        ),
        (
            "a",
            json!({"deployments": 1, "logging": "loud"}),
            "spec.logging: Unsupported value",
        ),
        (
            "a",
            json!({"deployments": 1, "compressionLevel": 10}),
            "spec.compressionLevel: Invalid value",
        ),
        (
            "a",
            json!({"deployments": 1, "maxCPU": -1}),
            "spec.maxCPU: Invalid value",
        ),
        (
            "a",
            json!({"deployments": 1, "maxMemory": "1"}),
            "spec.maxMemory: Invalid value",
        ),
        (
            "a",
            json!({"deployments": 1, "keepalive": {"interval": -1}}),
            "spec.keepalive.interval: Invalid value",
        ),
        (
            "a",
            json!({"deployments": 1, "storage": {}}),
            "spec.storage.size: Required value",
        ),
        (
            "a",
            json!({"deployments": 1, "storage": {"size": 1, "className": "A"}}),
            "spec.storage.className: Invalid value",
        ),
        ("1a", json!({"deployments": 1}), "metadata.name: must be at most 52"),
        (&long, json!({"deployments": 1}), "metadata.name: must be at most 52"),
    ];
    for (name, spec, message) in rows {
        let said = try_create(namespace, &cluster(name, &spec), &[]).unwrap_err();
        assert!(said.contains(message), "{spec}: {said}");
    }
    the_schema_keeps_the_storage(namespace);
}

fn the_schema_keeps_the_storage(namespace: &Namespace<'_>) {
    let kept = json!({"deployments": 1, "storage": {"size": 1}});
    apply(namespace, &cluster("kept", &kept));
    for storage in [json!({"size": 2}), json!({"className": "fast"}), Value::Null] {
        let said = try_change(namespace, "kept", &json!({"storage": storage})).unwrap_err();
        assert!(said.contains("cannot be"), "{storage}: {said}");
    }
    try_change(namespace, "kept", &json!({"deployments": 2, "storage": {"size": 1}})).unwrap();
    namespace.kubectl(["delete", CLUSTERS, "kept"]).unwrap();
}
