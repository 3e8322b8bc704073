//! The servers of the aerospike module on a real node. A small program stands in for the server: it reads the mounted
//! file as strictly as a server of the Community Edition. Needs root and the packages of a node.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;

use fs_err as fs;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::plane::{ControlPlane, Options, Pods};
use testbed::registry::programs;
use testbed::registry::push::{Repository, layer};
use testbed::report;
use testbed::wait::wait_until;

use super::stage::{CLUSTERS, PATIENCE, Reviews, Stage, apply, cluster, find, root, settled, try_change, wait_for};

#[test]
fn servers_read_the_file_restart_when_it_changes_and_are_told_when_broken() {
    if testbed::shared::has_no_node() {
        return;
    }
    let asked = Options {
        pods: Pods::Running,
        ..Options::default()
    };
    let plane = ControlPlane::start(&asked);
    assert!(plane.is_ok(), "{}", report::chain(&plane.unwrap_err()));
    let plane = plane.unwrap();
    let image = push_server(&plane);
    let stage = Stage::build(&plane, Reviews::Off);
    stage.configure(
        &json!({"aerospikeEnabled": "true", "aerospike": format!("{{image: {image}, minReadySeconds: 0}}")}),
    );
    let operator = stage.start();
    let namespace = plane.namespace("servers").unwrap();
    wait_for(&namespace, ("crd", CLUSTERS), "its definition", |crd| {
        crd["status"]["acceptedNames"]["kind"] == "AerospikeCluster"
    });

    apply(&namespace, &cluster("db", &json!({"deployments": 2, "maxMemory": 2})));
    let first = settled(&namespace, "db");
    for pod in ["db-0", "db-1"] {
        wait_for_answer(
            &namespace,
            pod,
            &[
                "service.cluster-name db",
                "any info",
                "data-size 1536M",
                "MEM_GB=2",
                "REPL_FACTOR=2",
            ],
        );
    }
    try_change(&namespace, "db", &json!({"logging": "debug", "maxMemory": 1})).unwrap();
    for pod in ["db-0", "db-1"] {
        wait_for_answer(&namespace, pod, &["any debug", "data-size 768M", "MEM_GB=1"]);
    }
    settled(&namespace, "db");

    a_server_that_refuses_the_file_is_told(&namespace, &first);
    drop(operator);
}

/// The first new server breaks, and the other one is not restarted.
fn a_server_that_refuses_the_file_is_told(namespace: &Namespace<'_>, first: &Value) {
    try_change(namespace, "db", &json!({"strongConsistency": true})).unwrap();
    let broken = wait_for(namespace, (CLUSTERS, "db"), "a broken server", |db| {
        db["status"]["brokenNodes"] == 1 && db["status"]["deployed"] == true
    });
    assert!(ready_since(&broken) > ready_since(first), "{broken}");
    let look = || {
        let said = namespace.kubectl(["logs", "db-1"]).unwrap_or_default();
        if said.contains("'strong-consistency' is enterprise-only") {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, "the refusal of the file", look).unwrap();
    wait_for_answer(namespace, "db-0", &["any debug"]);
    try_change(namespace, "db", &json!({"strongConsistency": false})).unwrap();
    settled(namespace, "db");
}

/// The time at which the condition `Ready` got its status.
fn ready_since(cluster: &Value) -> &str {
    let conditions = cluster["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    ready.unwrap()["lastTransitionTime"].as_str().unwrap()
}

/// Waits until the server in a pod answers on the service port with all these words.
fn wait_for_answer(namespace: &Namespace<'_>, pod: &str, words: &[&str]) {
    let look = || {
        let found = find(namespace, "pod", pod).unwrap_or_default();
        let address = found["status"]["podIP"].as_str().unwrap_or_default();
        let address: SocketAddr = format!("{address}:3000")
            .parse()
            .map_err(|_| found["status"].to_string())?;
        let mut said = String::new();
        let stream = namespace.plane().connect(address);
        stream
            .and_then(|mut stream| stream.read_to_string(&mut said))
            .map_err(|error| error.to_string())?;
        if words.iter().all(|word| said.contains(word)) {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, &format!("{words:?} of the server in {pod}"), look).unwrap();
}

/// Pushes an image with the program that stands in for the server, and returns its name.
fn push_server(plane: &ControlPlane) -> String {
    let program = fs::read(root().join("tests/shipped/asd.pl")).unwrap();
    let layers = [programs::layer(&[Path::new("perl")], &[]), layer(&[("asd", &program)])];
    let registry = plane.registry().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = json!({"Entrypoint": ["/bin/perl", "/asd"]});
    runtime.block_on(Repository::at(registry, "aerospike").push("1", &config, &layers));
    format!("{registry}/aerospike:1")
}
