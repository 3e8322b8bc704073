//! The objects of the cluster that cases need: a node that is dead, and volumes.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::{Value, json};
use testbed::plane::ControlPlane;
use testbed::wait::wait_until;

use super::Places;
use crate::installed::stage::PATIENCE;

/// The node without a kubelet. Only pods that tolerate everything come to it.
pub(super) const DEAD: &str = "dead";

/// Adds a node that never takes up a pod, in the place of a machine that has lost its power. A real one, killed, would
/// cost seconds, and do the same.
pub(super) fn add_a_dead_node(plane: &ControlPlane) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": DEAD },
        "spec": { "taints": [{ "key": "dead", "effect": "NoSchedule" }] },
    });
    let admin = plane.admin();
    admin.feed(["create", "--filename=-"], &node.to_string()).unwrap();
    let room = json!({ "status": { "capacity": { "pods": "10" }, "allocatable": { "pods": "10" } } });
    let patch = format!("--patch={room}");
    admin
        .run(["patch", "node", DEAD, "--subresource=status", "--type=merge", &patch])
        .unwrap();
}

/// The storage class of which no object exists.
const CLASS: &str = "fast";

pub(super) fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": {
            "storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Mi" } },
        },
    })
}

/// A volume for the claim.
pub(super) fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "storageClassName": CLASS, "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Mi" },
            "hostPath": { "path": "/tmp" },
        },
    })
}

/// A kind whose objects say whether they are ready.
pub(super) fn widgets() -> Value {
    let schema = json!({
        "type": "object", "properties": {
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.health.example.com" },
        "spec": {
            "group": "health.example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

pub(super) fn widget(name: &str) -> Value {
    json!({ "apiVersion": "health.example.com/v1", "kind": "Widget", "metadata": { "name": name } })
}

/// The command that writes the condition of a widget.
pub(super) fn report(name: &str, status: &str, reason: &str, message: &str) -> Vec<String> {
    let condition = json!({ "type": "Ready", "status": status, "reason": reason, "message": message });
    let patch = json!({ "status": { "conditions": [condition] } });
    let words = ["patch", "widget", name, "--subresource=status", "--type=merge"].map(str::to_owned);
    words.into_iter().chain([format!("--patch={patch}")]).collect()
}

/// Waits for a widget, and writes its condition.
pub(super) fn is_not_ready(places: &Places<'_>, name: &str) {
    let words = report(name, "False", "NoSuchPart", "part 7 is unknown");
    let patch = || places.own.kubectl(&words).map(Some);
    wait_until(PATIENCE, "a widget", patch).unwrap();
}
