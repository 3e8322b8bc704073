//! Patches of custom resources and of their status.

use addon_core::failure::{Class, Failure};
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::super::world::PATIENCE;
use super::{Stage, patcher};

impl Stage {
    fn group(&self) -> String {
        format!("{}.example.com", self.namespace())
    }

    /// The CRD of Widgets, with these subresources.
    fn definition(&self, scope: &str, subresources: &Value) -> String {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{}", self.group())},
            "spec": {
                "group": self.group(),
                "scope": scope,
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": subresources}],
            },
        });
        json!({"operation": "CreateOrUpdate", "object": definition}).to_string()
    }

    /// Creates the CRD of Widgets by a patch, and waits until they are served.
    async fn define(&self, scope: &str, subresources: Value) {
        self.apply(&self.definition(scope, &subresources)).await.unwrap();
        let widgets = format!("widgets.{}", self.group());
        let served = || self.world.namespace.kubectl(["get", &widgets]).map(Some);
        wait_until(PATIENCE, "the kind", served).unwrap();
    }

    /// Deletes the CRD, and waits until the kind is no longer served.
    async fn undefine(&self) {
        let widgets = format!("widgets.{}", self.group());
        let definition = format!("operation: Delete\nkind: crd\nname: {widgets}");
        self.apply(&definition).await.unwrap();
        let unserved = || {
            let refused = self.world.namespace.kubectl(["get", &widgets]).is_err();
            Ok::<_, String>(refused.then_some(()))
        };
        wait_until(PATIENCE, "the end of the kind", unserved).unwrap();
    }

    /// Creates or replaces a Widget with this metadata.
    async fn make(&self, metadata: Value, size: u32) -> Result<(), Failure> {
        let api_version = format!("{}/v1", self.group());
        let widget = json!({"apiVersion": api_version, "kind": "Widget", "metadata": metadata, "spec": {"size": size}});
        self.apply(&json!({"operation": "CreateOrUpdate", "object": widget}).to_string())
            .await
    }

    async fn make_here(&self, size: u32) {
        self.make(json!({"name": "a", "namespace": self.namespace()}), size)
            .await
            .unwrap();
    }

    fn widget(&self) -> Value {
        let widget = self.object(&format!("widgets.{} a", self.group()));
        json!({"spec": widget["spec"], "status": widget["status"]})
    }

    fn patch(&self, operation: &str, payload: &str) -> String {
        format!(
            "operation: {operation}\napiVersion: {}/v1\nkind: wd\nnamespace: NS\nname: a\n{payload}\n",
            self.group()
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_an_object_changes_apart_from_the_rest() {
    let stage = Stage::new("status").await;
    stage.define("Namespaced", json!({"status": {}})).await;
    stage.make_here(1).await;
    for (operation, payload, spelling) in [
        (
            "MergePatch",
            "mergePatch: {spec: {size: 2}, status: {step: 1}}",
            "/status",
        ),
        (
            "JSONPatch",
            "jsonPatch: [{op: replace, path: /status/step, value: 2}, {op: replace, path: /spec/size, value: 2}]",
            "status",
        ),
        ("JQPatch", "jqFilter: set /status/step 3", "/status"),
    ] {
        let before = stage.widget()["status"]["step"].as_i64().unwrap_or_default();
        stage
            .apply(&stage.patch(operation, &format!("{payload}\nsubresource: {spelling}")))
            .await
            .unwrap();
        assert_eq!(
            stage.widget(),
            json!({"spec": {"size": 1}, "status": {"step": before + 1}}),
            "{operation}"
        );
    }
    stage
        .apply(&stage.patch("MergePatch", "mergePatch: {spec: {size: 2}, status: {step: 9}}"))
        .await
        .unwrap();
    assert_eq!(stage.widget(), json!({"spec": {"size": 2}, "status": {"step": 3}}));
    stage
        .apply(&stage.patch("JQPatch", "jqFilter: set /spec/size 3.0"))
        .await
        .unwrap();
    assert_eq!(stage.widget(), json!({"spec": {"size": 3}, "status": {"step": 3}}));
    stage.make_here(4).await;
    assert_eq!(stage.widget(), json!({"spec": {"size": 4}, "status": {"step": 3}}));
    stage.undefine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_filter_leaves_the_same_is_not_written_even_if_it_is_spelt_in_another_way() {
    let stage = Stage::new("same").await;
    stage.define("Namespaced", json!({})).await;
    stage.make_here(4).await;
    // The resource version is old, so a write would be refused.
    stage
        .apply(&stage.patch("JQPatch", "jqFilter: float /spec/size"))
        .await
        .unwrap();
    stage.undefine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_that_part_is_hinted_at() {
    let stage = Stage::new("no-status").await;
    stage.define("Namespaced", json!({})).await;
    stage.make_here(1).await;
    let text = stage.patch("MergePatch", "mergePatch: {status: {step: 1}}\nsubresource: /status");
    let failure = stage.apply(&text).await.unwrap_err();
    assert!(failure.hints[0].contains("no subresource 'status'"), "{failure:?}");
    assert_eq!(stage.widget()["status"], Value::Null);
    stage.undefine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_gone_is_not_an_object_that_is_gone() {
    let stage = Stage::new("kind-gone").await;
    stage.define("Namespaced", json!({})).await;
    let patch = stage.patch("MergePatch", "mergePatch: {spec: {size: 2}}\nignoreMissingObject: true");
    stage.apply(&patch).await.unwrap();
    stage.undefine().await;
    for text in [patch, stage.patch("Delete", "")] {
        let failure = stage.apply(&text).await.unwrap_err();
        assert_eq!(failure.class, Class::Refused, "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_left_its_namespaces_is_found_where_it_is() {
    let stage = Stage::new("kind-moved").await;
    stage.define("Namespaced", json!({})).await;
    stage.make_here(1).await;
    // Another client changes the CRD, so this patcher's discovery cache is outdated.
    let other = Stage {
        patcher: patcher(stage.world.tools.ground.cluster.clone()),
        world: stage.world,
    };
    other.undefine().await;
    other.define("Cluster", json!({})).await;
    let stage = Stage {
        patcher: stage.patcher,
        world: other.world,
    };
    stage.make(json!({"name": "a"}), 2).await.unwrap();
    assert_eq!(stage.widget()["spec"], json!({"size": 2}));
    stage.undefine().await;
}
