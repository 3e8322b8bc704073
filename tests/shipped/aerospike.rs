//! The aerospike module with an operator, on a real API server with the controllers of Kubernetes. No test runs a
//! server: its pods become ready because a simulated node says so.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{
    CLUSTERS, PATIENCE, apply, cluster, condition, find, is_settled, list, settled, shared_plane, try_change,
    try_create, wait_for,
};

const KINDS: [&str; 4] = ["configmap", "service", "poddisruptionbudget", "statefulset"];

fn namespace(prefix: &str) -> Namespace<'static> {
    shared_plane().namespace(prefix).unwrap()
}

/// The names and ids of all objects of a kind.
fn named(namespace: &Namespace<'_>, kind: &str) -> Vec<(String, String)> {
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    let objects = list(namespace, kind).into_iter();
    objects
        .map(|object| (text(&object, "name"), text(&object, "uid")))
        .collect()
}

fn pods(namespace: &Namespace<'_>) -> Vec<(String, String)> {
    named(namespace, "pods")
}

#[test]
fn a_published_cluster_becomes_servers_with_file_names_and_budget() {
    let namespace = namespace("published");
    let spec = json!({"deployments": 3, "maxMemory": 4, "maxCPU": 250, "logging": "warning", "compressionLevel": 4,
        "replicationFactor": 3, "strongConsistency": true, "heartbeat": {"interval": 200}, "keepalive": {"enabled": true, "interval": 7}});
    let said = try_create(&namespace, &cluster("db", &spec), &[]).unwrap();
    assert!(
        said.contains("Warning: spec.strongConsistency: a server of the Community Edition"),
        "{said}"
    );
    let db = settled(&namespace, "db");
    assert_eq!(db["spec"], spec, "a complete spec stays as it is");
    for kind in KINDS {
        let object = find(&namespace, kind, "db").unwrap();
        let owner = json!([{"apiVersion": "aerospike.dzolotov.tech/v1alpha1", "kind": "AerospikeCluster", "name": "db",
            "uid": db["metadata"]["uid"], "controller": true}]);
        assert_eq!(object["metadata"]["ownerReferences"], owner, "{kind}");
        assert_eq!(
            object["metadata"]["labels"]["app.kubernetes.io/instance"], "db",
            "{kind}"
        );
    }
    a_server_has_its_environment_limits_and_file(&namespace);
    // The controllers of Kubernetes find the servers by the selectors.
    let look = || {
        let said = namespace.kubectl(["get", "endpointslices", "--output=jsonpath={..addresses}"]);
        let said = said.unwrap();
        if said.matches('.').count() == 9 {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, "three addresses", look).unwrap();
    wait_for(&namespace, ("poddisruptionbudget", "db"), "one may go", |budget| {
        budget["status"]["disruptionsAllowed"] == 1
    });
    let table = namespace.kubectl(["get", CLUSTERS]).unwrap();
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["NAME", "SERVERS", "BROKEN", "DEPLOYED", "READY", "AGE"]);
    assert_eq!(words[1][..5], ["db", "3", "0", "true", "True"]);
}

fn a_server_has_its_environment_limits_and_file(namespace: &Namespace<'_>) {
    let pod = find(namespace, "pod", "db-2").unwrap();
    assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/instance"], "db");
    let server = &pod["spec"]["containers"][0];
    assert_eq!(
        server["env"],
        json!([{"name": "MEM_GB", "value": "4"}, {"name": "REPL_FACTOR", "value": "3"}])
    );
    assert_eq!(server["resources"]["limits"], json!({"cpu": "2500m", "memory": "4Gi"}));
    let config_map = find(namespace, "configmap", "db").unwrap();
    let file = config_map["data"]["aerospike.conf"].as_str().unwrap();
    let lines = [
        "any warning",
        "interval 200",
        "keepalive-intvl 7",
        "strong-consistency true",
        "compression-level 4",
    ];
    for line in lines {
        assert!(file.contains(&format!("{line}\n")), "{line}: {file}");
    }
}

#[test]
fn defaults_are_stored_and_all_violations_come_in_one_answer() {
    let namespace = namespace("reviewed");
    apply(
        &namespace,
        &cluster("small", &json!({"deployments": 1, "maxMemory": 0, "logging": ""})),
    );
    let small = settled(&namespace, "small");
    let spec = json!({"deployments": 1, "maxMemory": 1, "maxCPU": 100, "logging": "info", "replicationFactor": 1, "strongConsistency": false,
        "heartbeat": {"interval": 150}, "keepalive": {"enabled": true, "interval": 1}});
    assert_eq!(small["spec"], spec);
    let bad = json!({"deployments": 0, "replicationFactor": 2, "maxCPU": "all", "heartbeat": {"interval": 5}});
    let said = try_create(&namespace, &cluster("bad", &bad), &[]).unwrap_err();
    let message = "denied the request: 4 to correct: spec.deployments: must be at least 1, is 0; \
                   spec.maxCPU: must be a whole number, is \"all\"; \
                   spec.replicationFactor: must not exceed spec.deployments, which is 0, is 2; \
                   spec.heartbeat.interval: must be at least 50, is 5";
    assert!(said.contains(message), "{said}");
    let said = try_change(&namespace, "small", &json!({"storage": {"size": 1}})).unwrap_err();
    assert!(said.contains("spec.storage: cannot be changed"), "{said}");
    let said = try_change(&namespace, "small", &json!({"replicationFactor": 2, "deployments": 3})).unwrap();
    assert!(said.contains("patched"), "{said}");
    let said = try_change(&namespace, "small", &json!({"deployments": 1})).unwrap_err();
    assert!(
        said.contains("spec.replicationFactor: must not exceed spec.deployments"),
        "{said}"
    );
}

#[test]
fn servers_are_scaled_and_restarted_only_when_their_configuration_changes() {
    let namespace = namespace("changed");
    apply(&namespace, &cluster("db", &json!({"deployments": 2})));
    let first = settled(&namespace, "db");
    let before = pods(&namespace);
    try_change(&namespace, "db", &json!({"deployments": 3})).unwrap();
    settled(&namespace, "db");
    let scaled = pods(&namespace);
    assert_eq!(
        (scaled.len(), &scaled[..2]),
        (3, &before[..]),
        "a new server restarts none"
    );

    try_change(&namespace, "db", &json!({"logging": "debug"})).unwrap();
    let look = || {
        let now = pods(&namespace);
        let all_new = now.len() == 3 && now.iter().all(|pod| !scaled.contains(pod));
        if all_new { Ok(Some(())) } else { Err(format!("{now:?}")) }
    };
    wait_until(PATIENCE, "three new pods", look).unwrap();
    let last = settled(&namespace, "db");
    let config_map = find(&namespace, "configmap", "db").unwrap();
    assert!(config_map.to_string().contains("any debug"), "{config_map}");
    let since = |cluster: &Value| cluster["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(condition(&last, "Accepted"), ["True", "Valid", "the spec is valid"]);
    assert_eq!(since(&last), since(&first), "the condition has not changed");

    try_change(&namespace, "db", &json!({"deployments": 1, "replicationFactor": 1})).unwrap();
    let look = || {
        let now = pods(&namespace);
        if now.len() == 1 {
            Ok(Some(()))
        } else {
            Err(format!("{now:?}"))
        }
    };
    wait_until(PATIENCE, "one pod", look).unwrap();
    settled(&namespace, "db");
}

#[test]
fn edits_of_the_objects_are_reverted_and_nothing_is_written_without_a_reason() {
    let (edited, other) = (namespace("edited"), namespace("other"));
    apply(&edited, &cluster("db", &json!({"deployments": 1})));
    settled(&edited, "db");
    let wanted = find(&edited, "configmap", "db").unwrap()["data"].clone();
    edited.kubectl(["scale", "statefulset", "db", "--replicas=2"]).unwrap();
    let patch = "--patch={\"data\": {\"aerospike.conf\": \"broken\"}}";
    edited.kubectl(["patch", "configmap", "db", patch]).unwrap();
    edited.kubectl(["label", "statefulset", "db", "mine=yes"]).unwrap();
    edited.kubectl(["delete", "service", "db"]).unwrap();
    wait_for(&edited, ("statefulset", "db"), "one replica", |set| {
        set["spec"]["replicas"] == 1 && set["metadata"]["labels"]["mine"] == "yes"
    });
    wait_for(&edited, ("configmap", "db"), "the file again", |map| {
        map["data"] == wanted
    });
    wait_for(&edited, ("service", "db"), "names again", |service| {
        service["spec"]["clusterIP"] == "None"
    });
    let look = || {
        let now = pods(&edited);
        if now.len() == 1 {
            Ok(Some(()))
        } else {
            Err(format!("{now:?}"))
        }
    };
    wait_until(PATIENCE, "one pod", look).unwrap();
    settled(&edited, "db");

    // A run for another cluster looks at this one, too. The first such run may still find effects of the edits.
    apply(&other, &cluster("first", &json!({"deployments": 1})));
    settled(&other, "first");
    let audit = shared_plane().audit();
    let mark = audit.mark().unwrap();
    apply(&other, &cluster("second", &json!({"deployments": 1})));
    settled(&other, "second");
    let written = |namespace: &Namespace<'_>| {
        let records = audit.since(mark).unwrap().of(User::Operator);
        records.within(namespace.name()).mutating()
    };
    assert!(!written(&other).is_empty());
    assert!(written(&edited).is_empty(), "{}", written(&edited));
}

#[test]
fn objects_of_another_owner_are_left_alone_and_the_condition_names_them() {
    let namespace = namespace("foreign");
    apply(
        &namespace,
        &json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 0, "serviceName": "theirs", "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "theirs", "image": "theirs"}]}}}}),
    );
    namespace
        .kubectl(["create", "configmap", "files", "--from-literal=mine=yes"])
        .unwrap();
    let before = find(&namespace, "statefulset", "db").unwrap();
    for name in ["db", "files"] {
        apply(&namespace, &cluster(name, &json!({"deployments": 1})));
    }
    let told = |name: &str, reason: &str, object: &str| {
        let found = wait_for(&namespace, (CLUSTERS, name), reason, |cluster| {
            let [status, why, message] = condition(cluster, "Prepared");
            status == "False" && why == reason && message.starts_with(object)
        });
        assert_eq!(
            (&found["status"]["deployed"], &found["status"]["brokenNodes"]),
            (&json!(false), &json!(1))
        );
    };
    told(
        "db",
        "Foreign",
        &format!("StatefulSet {}/db: belongs to", namespace.name()),
    );
    told(
        "files",
        "Missing",
        &format!("ConfigMap {}/files, StatefulSet ", namespace.name()),
    );
    let after = find(&namespace, "statefulset", "db").unwrap();
    for field in ["spec", "metadata"] {
        assert_eq!(after[field]["labels"], before[field]["labels"]);
    }
    assert_eq!(after["spec"], before["spec"]);
    let files = find(&namespace, "configmap", "files").unwrap();
    assert_eq!(files["data"], json!({"mine": "yes"}));
    assert!(find(&namespace, "statefulset", "files").is_none());

    namespace.kubectl(["delete", "configmap", "files"]).unwrap();
    // Its end is an event, after which both clusters are looked at.
    namespace.kubectl(["delete", "statefulset", "db"]).unwrap();
    settled(&namespace, "db");
    settled(&namespace, "files");
}

#[test]
fn servers_are_not_ready_while_a_rollout_is_stuck() {
    let namespace = namespace("stuck");
    apply(&namespace, &cluster("db", &json!({"deployments": 2})));
    settled(&namespace, "db");
    let hold = |finalizers: &str| {
        let patch = format!("--patch={{\"metadata\": {{\"finalizers\": {finalizers}}}}}");
        let patch = ["patch", "pod", "db-1", "--type=merge", &patch];
        namespace.kubectl(patch).unwrap();
    };
    // The last server is restarted first, and cannot go.
    hold("[\"test.example/hold\"]");
    try_change(&namespace, "db", &json!({"logging": "debug"})).unwrap();
    let counts = "2 of 2 servers are ready, but of the StatefulSet: 0 of 2 pods are of the newest version";
    wait_for(&namespace, (CLUSTERS, "db"), "a stuck rollout", |cluster| {
        condition(cluster, "Ready") == ["False", "RollingOut", counts]
    });
    hold("null");
    let db = settled(&namespace, "db");
    assert_eq!(
        condition(&db, "Ready"),
        ["True", "AllReady", "2 of 2 servers are ready"]
    );
}

#[test]
fn volumes_outlive_a_scale_down_and_the_cluster_and_all_else_goes_with_it() {
    let namespace = namespace("deleted");
    let spec = json!({"deployments": 2, "storage": {"size": 5, "className": "fast"}});
    apply(&namespace, &cluster("db", &spec));
    let claims = || named(&namespace, "persistentvolumeclaims");
    let look = || {
        let now = claims();
        if now.len() == 2 {
            Ok(Some(now))
        } else {
            Err(format!("{now:?}"))
        }
    };
    let first = wait_until(PATIENCE, "two volumes", look).unwrap();
    assert_eq!((&*first[0].0, &*first[1].0), ("data-db-0", "data-db-1"));
    // There is no such class, so no server starts.
    wait_for(&namespace, (CLUSTERS, "db"), "two broken servers", |cluster| {
        cluster["status"]["brokenNodes"] == 2 && cluster["status"]["deployed"] == true
    });
    // The pods change, too, while none of them can be scheduled.
    try_change(&namespace, "db", &json!({"deployments": 1, "replicationFactor": 1})).unwrap();
    wait_for(&namespace, ("statefulset", "db"), "one replica", |set| {
        set["status"]["replicas"] == 1 && set["spec"]["replicas"] == 1
    });
    assert_eq!(claims(), first);
    namespace.kubectl(["delete", CLUSTERS, "db"]).unwrap();
    for kind in KINDS {
        wait_for(&namespace, (kind, "db"), "its end", Value::is_null);
    }
    let look = || {
        let now = pods(&namespace);
        if now.is_empty() {
            Ok(Some(()))
        } else {
            Err(format!("{now:?}"))
        }
    };
    wait_until(PATIENCE, "no pod", look).unwrap();
    assert_eq!(claims(), first);

    // A new cluster of that name has the old volumes.
    apply(&namespace, &cluster("db", &spec));
    let pod = wait_for(&namespace, ("pod", "db-1"), "its return", |pod| !pod.is_null());
    assert!(pod["spec"].to_string().contains(r#""claimName":"data-db-1""#), "{pod}");
    assert_eq!(claims(), first);
}

#[test]
fn a_namespace_with_clusters_can_be_deleted() {
    let namespace = namespace("going");
    apply(&namespace, &cluster("db", &json!({"deployments": 1})));
    settled(&namespace, "db");
    let plane = shared_plane();
    plane
        .kubectl(["delete", "namespace", namespace.name(), "--wait=false"])
        .unwrap();
    let look = || {
        let said = plane.kubectl([
            "get",
            "namespace",
            namespace.name(),
            "--ignore-not-found",
            "--output=yaml",
        ])?;
        let gone = said.trim().is_empty();
        if gone {
            Ok(Some(()))
        } else {
            Ok::<_, testbed::kubectl::KubectlError>(None)
        }
    };
    wait_until(PATIENCE, "the end of the namespace", look).unwrap();
}

#[test]
fn fifty_clusters_are_made_together() {
    let namespace = namespace("fifty");
    let items: Vec<Value> = (0..50)
        .map(|number| cluster(&format!("db-{number}"), &json!({"deployments": 1})))
        .collect();
    apply(&namespace, &json!({"apiVersion": "v1", "kind": "List", "items": items}));
    let look = || {
        let now = list(&namespace, CLUSTERS);
        let settled = now.iter().filter(|cluster| is_settled(cluster)).count();
        if settled == 50 {
            Ok(Some(()))
        } else {
            Err(format!("{settled} are settled"))
        }
    };
    wait_until(PATIENCE, "fifty clusters", look).unwrap();
}
