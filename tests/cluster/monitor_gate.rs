//! Conditions of bindings: changes that make no run because of another snapshot.

use serde_json::{Value, json};

use super::monitor_stage::Stage;

/// A binding for the `ConfigMap` rule, and one for all others in the test's own namespace, which depends on the rule.
fn bindings() -> Value {
    let namespace = json!({"nameSelector": {"matchNames": ["NS"]}});
    let all = json!({"matchExpressions": [
        {"field": "metadata.name", "operator": "!=", "value": "kube-root-ca.crt"},
        {"field": "metadata.name", "operator": "!=", "value": "rule"}]});
    json!([
        {"name": "rules", "kind": "ConfigMap", "namespace": namespace, "nameSelector": {"matchNames": ["rule"]}},
        {"name": "others", "kind": "ConfigMap", "namespace": namespace, "fieldSelector": all, "when": {"snapshots": ["rules"]}}
    ])
}

/// A change that is held back is in the snapshot, and the next change is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_told_only_while_the_condition_is_met() {
    let mut stage = Stage::new("gate").await;
    let ids = stage.start(1, bindings()).await.unwrap();
    stage.put("a", "1");
    stage.until_shown(ids[1], "a:1");
    stage.put("rule", "1");
    assert_eq!(stage.told(1).await, "1+rule=rule:1");
    stage.put("a", "2");
    stage.kubectl("delete configmap a");
    assert_eq!(stage.told(2).await, "2~a=a:2 2-a=a:2");
    stage.kubectl("delete configmap rule");
    assert_eq!(stage.told(1).await, "1-rule=rule:1");
    stage.put("b", "1");
    stage.until_shown(ids[1], "b:1");
    stage.put("rule", "2");
    assert_eq!(stage.told(1).await, "1+rule=rule:2");
}
