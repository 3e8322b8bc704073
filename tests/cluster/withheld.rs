//! New webhook configurations of a chart whose servers are not up yet.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use addon_core::failure::Class;
use addon_core::operator::event::SyncAction;
use serde_json::{Value, json};
use testbed::plane::User;

use super::world::{CHART, TEMPLATE, World, with_each_helm};

/// A Deployment whose pod no node takes, and its Service.
const SERVER: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: server}\nspec:\n  selector: {matchLabels: {app: server}}\n  template:\n    metadata: {labels: {app: server}}\n    spec: {containers: [{name: c, image: i}]}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: server}\nspec: {selector: {app: server}, ports: [{port: 443}]}\n";

/// A configuration whose webhook takes in objects of the namespace.
pub(crate) fn configuration(world: &World, name: &str, service: &str, operation: &str, resources: &[&str]) -> Value {
    let namespace = world.namespace.name();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "clientConfig": {"service": {"namespace": namespace, "name": service}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": resources}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 2,
            "admissionReviewVersions": ["v1"],
        }],
    })
}

fn feed(world: &World, object: &Value) {
    let admin = world.namespace.kubectl_as(User::Admin);
    admin.feed(["create", "--filename=-"], &object.to_string()).unwrap();
}

/// Gives a Service a ready endpoint, behind which nothing listens.
pub(crate) fn give_endpoint(world: &World, service: &str) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-by-hand"), "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}],
        "ports": [],
    });
    feed(world, &slice);
}

pub(crate) fn take_endpoint(world: &World, service: &str) {
    world.kubectl(&format!("delete endpointslice {service}-by-hand"));
}

fn is_there(world: &World, name: &str) -> bool {
    let found = world.kubectl(&format!(
        "get validatingwebhookconfiguration {name} --ignore-not-found -o=name"
    ));
    !found.is_empty()
}

fn count_upgrades(world: &World) -> usize {
    world.helm_calls().iter().filter(|call| *call == "upgrade").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_would_wedge_everything_waits_for_its_server() {
    with_each_helm(async |helm| {
        let mut world = World::with("wedging", helm).await;
        let name = format!("waits.{}.example.com", world.namespace.name());
        let webhook = configuration(&world, &name, "server", "*", &["secrets"]).to_string();
        let files = [
            ("Chart.yaml", CHART),
            ("templates/a.yaml", TEMPLATE),
            ("templates/s.yaml", SERVER),
            ("templates/w.yaml", &webhook),
        ];
        world.module("one", &files).await;
        let two = CHART.replace("one", "two");
        let object = TEMPLATE
            .replace("shown", "two")
            .replace("{{ .Values.one.x | quote }}", "always");
        world
            .module("two", &[("Chart.yaml", &two), ("templates/a.yaml", &object)])
            .await;

        let values = json!({"one": {"x": "a"}});
        let failure = world.sync(values.clone()).await.unwrap_err();
        assert_eq!(failure.class, Class::Unavailable, "{failure}");
        let service = format!("{name} (Service '{}/server')", world.namespace.name());
        assert!(failure.report.contains(&service), "{failure}");
        assert_eq!(
            (world.history().as_str(), is_there(&world, &name)),
            ("1:deployed", false)
        );
        world.sync_module("two", values.clone()).await.unwrap();

        // Also after a restart helm is not started only to wait.
        world.restart().await;
        let before = count_upgrades(&world);
        assert_eq!(world.sync(values.clone()).await.unwrap_err(), failure);
        assert_eq!(count_upgrades(&world), before);
        world.kubectl("delete configmap shown");
        world.sync(values.clone()).await.unwrap_err();
        assert_eq!(world.kubectl("get configmap/shown -o=jsonpath={.data.x}"), "a");
        world.delete().await.unwrap();
        assert_eq!(
            world.kubectl("get configmap,deployment -l heritage=addon-operator -o=name"),
            "configmap/two\n"
        );
        world.delete_release("two").await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_applied_once_its_server_is_ready_and_stays_then() {
    with_each_helm(async |helm| {
        let mut world = World::with("ready", helm).await;
        let names = ["waits", "elsewhere"].map(|word| format!("{word}.{}.example.com", world.namespace.name()));
        // Deletions alone, so that helm can write its records.
        let webhooks = names.each_ref().map(|name| {
            let service = name.split('.').next().unwrap();
            configuration(&world, name, service, "DELETE", &["secrets"]).to_string()
        });
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "elsewhere"}, "spec": {"type": "ExternalName", "externalName": "example.com"}});
        feed(&world, &service);
        let files = [
            ("Chart.yaml", CHART),
            ("templates/a.yaml", TEMPLATE),
            ("templates/w.yaml", &webhooks.join("\n---\n")),
        ];
        world.module("one", &files).await;
        let values = |x: &str| json!({"one": {"x": x}});
        world.sync(values("a")).await.unwrap_err();
        let are_there = |world: &World| names.each_ref().map(|name| is_there(world, name));
        assert_eq!(are_there(&world), [false, true], "a name of another host has no endpoints");

        give_endpoint(&world, "waits");
        let synced = world.sync(values("a")).await.unwrap();
        assert_eq!((synced.action, are_there(&world)), (SyncAction::Upgraded, [true, true]));
        assert_eq!(world.sync(values("a")).await.unwrap().revision, 2);

        take_endpoint(&world, "waits");
        assert_eq!(world.sync(values("a")).await.unwrap().revision, 2);
        assert_eq!(world.sync(values("b")).await.unwrap().action, SyncAction::Upgraded);
        assert_eq!(are_there(&world), [true, true]);

        // A person who deletes the dead webhook is not asked to do so again.
        world.kubectl(&format!("delete validatingwebhookconfiguration {}", names[0]));
        world.sync(values("b")).await.unwrap_err();
        assert_eq!(are_there(&world), [false, true]);
        give_endpoint(&world, "waits");
        world.sync(values("b")).await.unwrap();
        assert_eq!(are_there(&world), [true, true]);
        world.delete().await.unwrap();
        assert_eq!((world.history().as_str(), are_there(&world)), ("", [false, false]));
    })
    .await;
}
