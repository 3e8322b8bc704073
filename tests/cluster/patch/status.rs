//! Objects of a kind that somebody defined, and the part of them that tells their state.

use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::super::world::PATIENCE;
use super::Stage;

impl Stage {
    fn group(&self) -> String {
        format!("{}.example.com", self.namespace())
    }

    /// The definition of Widgets, with or without a state of their own.
    fn definition(&self, subresources: &Value) -> String {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{}", self.group())},
            "spec": {
                "group": self.group(),
                "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": subresources}],
            },
        });
        json!({"operation": "CreateOrUpdate", "object": definition}).to_string()
    }

    /// Defines Widgets by a patch, and makes one as soon as they are served.
    async fn define(&self, subresources: Value) {
        self.apply(&self.definition(&subresources)).await.unwrap();
        let widgets = format!("widgets.{}", self.group());
        let served = || self.world.namespace.kubectl(["get", &widgets]).map(Some);
        wait_until(PATIENCE, "the kind", served).unwrap();
        let widget = json!({"operation": "Create", "object": {"apiVersion": format!("{}/v1", self.group()), "kind": "Widget",
            "metadata": {"name": "a", "namespace": self.namespace()}, "spec": {"size": 1}}});
        self.apply(&widget.to_string()).await.unwrap();
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

    async fn undefine(&self) {
        let name = format!("widgets.{}", self.group());
        self.apply(&format!("operation: DeleteInBackground\nkind: crd\nname: {name}"))
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_an_object_changes_apart_from_the_rest() {
    let stage = Stage::new("status").await;
    stage.define(json!({"status": {}})).await;
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
    stage.undefine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_that_part_is_hinted_at() {
    let stage = Stage::new("no-status").await;
    stage.define(json!({})).await;
    let text = stage.patch("MergePatch", "mergePatch: {status: {step: 1}}\nsubresource: /status");
    let failure = stage.apply(&text).await.unwrap_err();
    assert!(failure.hints[0].contains("no subresource 'status'"), "{failure:?}");
    assert_eq!(stage.widget()["status"], Value::Null);
    stage.undefine().await;
}
