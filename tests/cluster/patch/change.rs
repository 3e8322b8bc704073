//! Patches that change objects.

use addon_core::failure::Class;
use serde_json::{Value, json};

use super::{Stage, config_map};

fn patch(operation: &str, name: &str, payload: &str) -> String {
    format!("---\noperation: {operation}\napiVersion: v1\nkind: ConfigMap\nnamespace: NS\nname: {name}\n{payload}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_patch_sets_keys_and_null_takes_them_away() {
    let stage = Stage::new("merge").await;
    let before = json!({"a": "old", "b": "old"});
    stage.given(&["structure", "yaml", "json"].map(|name| config_map(name, &before)));
    let text = [
        patch(
            "MergePatch",
            "structure",
            "mergePatch: {metadata: {labels: {on: 'yes'}}, data: {a: null, c: new}}",
        ),
        patch("MergePatch", "yaml", "mergePatch: |\n  data:\n    a: null\n    c: new"),
        patch(
            "MergePatch",
            "json",
            r#"mergePatch: '{"data": {"a": null, "c": "new"}}'"#,
        ),
    ];
    stage.apply(&text.concat()).await.unwrap();
    for name in ["structure", "yaml", "json"] {
        assert_eq!(stage.data(name), json!({"b": "old", "c": "new"}), "{name}");
    }
    assert_eq!(
        stage.object("configmap structure")["metadata"]["labels"],
        json!({"on": "yes"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_patch_takes_all_of_its_steps_or_none() {
    let stage = Stage::new("json").await;
    stage.given(&[config_map("a", &json!({"a": "old", "b": "old", "c": "old"}))]);
    let steps = "jsonPatch:\n- {op: remove, path: /data/b}\n- {op: test, path: /data/a, value: old}\n- {op: replace, path: /data/a, value: new}\n\
                 - {op: move, from: /data/c, path: /data/d}\n- {op: copy, from: /data/d, path: /data/e~1f}\n".replace("e~1f", "e.f");
    let annotate = "jsonPatch: |\n  [{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {}},\n   \
                    {\"op\": \"add\", \"path\": \"/metadata/annotations/example.com~1d\", \"value\": \"slash\"}]";
    stage
        .apply(&[patch("JSONPatch", "a", &steps), patch("JSONPatch", "a", annotate)].concat())
        .await
        .unwrap();
    let after = json!({"a": "new", "d": "old", "e.f": "old"});
    assert_eq!(stage.data("a"), after);
    assert_eq!(
        stage.object("configmap a")["metadata"]["annotations"],
        json!({"example.com/d": "slash"})
    );

    let failing = "jsonPatch: [{op: add, path: /data/g, value: new}, {op: remove, path: /data/none}]";
    let failure = stage.apply(&patch("JSONPatch", "a", failing)).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    assert!(
        failure.report.starts_with(&format!(
            "Filter object v1/ConfigMap/{}/a: JSONPatch: ",
            stage.namespace()
        )),
        "{failure}"
    );
    assert_eq!(stage.data("a"), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_there_fails_unless_that_is_to_be_ignored() {
    let stage = Stage::new("missing").await;
    for (operation, payload) in [
        ("MergePatch", "mergePatch: {data: {a: b}}"),
        ("JSONPatch", "jsonPatch: [{op: add, path: /data, value: {}}]"),
        ("JQPatch", "jqFilter: ."),
    ] {
        let text = patch(operation, "none", payload);
        let failure = stage.apply(&text).await.unwrap_err();
        assert_eq!(failure.class, Class::Refused);
        let start = format!("Filter object v1/ConfigMap/{}/none: {operation}: ", stage.namespace());
        assert!(failure.report.starts_with(&start), "{failure}");
        assert!(failure.report.ends_with("configmaps \"none\" not found"), "{failure}");
        stage.apply(&format!("{text}ignoreMissingObject: true")).await.unwrap();
        let elsewhere = text.replace("NS", "nowhere-to-be-found");
        stage
            .apply(&format!("{elsewhere}ignoreMissingObject: true"))
            .await
            .unwrap();
    }
    assert_eq!(stage.object("configmap none"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_changes_the_object_and_the_same_again_is_not_written() {
    let stage = Stage::new("jq").await;
    stage.given(&[config_map("a", &json!({"a": "1"}))]);
    let version = |stage: &Stage| stage.object("configmap a")["metadata"]["resourceVersion"].clone();
    let before = version(&stage);
    stage.apply(&patch("JQPatch", "a", "jqFilter: .")).await.unwrap();
    stage
        .apply(&patch("JQPatch", "a", "jqFilter: set /data/a \"1\""))
        .await
        .unwrap();
    assert_eq!(version(&stage), before);
    stage
        .apply(&patch("JQPatch", "a", "jqFilter: set /data/a \"2\""))
        .await
        .unwrap();
    assert_eq!(stage.data("a"), json!({"a": "2"}));
    assert_ne!(version(&stage), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_has_to_give_one_object() {
    let stage = Stage::new("jq-one").await;
    stage.given(&[config_map("a", &json!({"a": "1"}))]);
    for (filter, problem) in [
        (".,.", "jqFilter gives 2 results instead of one object"),
        ("empty", "jqFilter gives 0 results instead of one object"),
        (
            "set  null",
            "jqFilter gives something that is no object instead of one object",
        ),
        ("error of its own", "of its own"),
    ] {
        let failure = stage
            .apply(&patch("JQPatch", "a", &format!("jqFilter: '{filter}'")))
            .await
            .unwrap_err();
        assert_eq!(failure.class, Class::HookFailed, "{failure}");
        assert!(failure.report.ends_with(&format!("JQPatch: {problem}")), "{failure}");
    }
    let failure = stage
        .apply(&patch("JQPatch", "a", "jqFilter: set /metadata/name \"b\""))
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Refused, "{failure}");
    assert_eq!(stage.data("a"), json!({"a": "1"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slower_tries_again_four_times_in_all() {
    let stage = Stage::new("jq-race").await;
    stage.given(&[config_map("a", &json!({})), config_map("b", &json!({}))]);
    stage
        .apply(&patch("JQPatch", "a", "jqFilter: meanwhile 3"))
        .await
        .unwrap();
    assert_eq!(stage.data("a"), json!({"by": "us"}));
    let failure = stage
        .apply(&patch("JQPatch", "b", "jqFilter: meanwhile 4"))
        .await
        .unwrap_err();
    assert_eq!(failure.class, Class::Refused);
    assert!(failure.report.contains("the object has been modified"), "{failure}");
    let b = stage.object("configmap b");
    assert_eq!(
        (&b["data"], &b["metadata"]["annotations"]["seen"]),
        (&Value::Null, &json!("4"))
    );
}
