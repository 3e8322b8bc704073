use super::*;

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn installation(deployment: &str) -> Installation {
    Installation {
        pod: "a-1".to_owned(),
        image: "r/a:1".to_owned(),
        digests: std::collections::BTreeSet::new(),
        node: None,
        deployment: deployment.to_owned(),
        deployment_uid: "uid".to_owned(),
        container: "ours".to_owned(),
        is_on_trial: false,
        pull_secrets: Vec::new(),
        service_account: None,
        selector: "app=a".to_owned(),
    }
}

fn deployment(selector: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"selector": selector, "template": {
            "metadata": {"labels": {"app": "a", "pod-template-hash": "x"}},
            "spec": {
                "ofTomorrow": true,
                "terminationGracePeriodSeconds": 45,
                "containers": [
                    {"name": "other", "image": "x"},
                    {"name": "ours", "image": "r:5000/a:1", "imagePullPolicy": "Always",
                        "env": [{"name": "A", "value": "b"}, {"name": ON_TRIAL, "value": "no"}]},
                ],
            },
        }},
    }))
    .unwrap()
}

#[test]
fn a_set_has_the_template_and_is_nobody_elses() {
    let made = set(
        &installation("a"),
        &deployment(&json!({"matchLabels": {"app": "a"}})),
        &format!("r:5000/a@{DIGEST}"),
    )
    .unwrap();
    assert_eq!(made.metadata.name.as_deref(), Some("a-trial"));
    assert_eq!(json!(made.metadata.labels), json!({TRIAL_LABEL: "a"}));
    let owners = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "uid",
        "controller": false, "blockOwnerDeletion": false}]);
    assert_eq!(json!(made.metadata.owner_references), owners);
    assert_eq!(
        made.data["spec"],
        json!({
            "replicas": 1,
            "minReadySeconds": 0,
            "selector": {"matchLabels": {"app": "a", TRIAL_LABEL: "a"}},
            "template": {
                "metadata": {"labels": {"app": "a", TRIAL_LABEL: "a"}},
                "spec": {
                    "ofTomorrow": true,
                    "terminationGracePeriodSeconds": 20,
                    "containers": [
                        {"name": "other", "image": "x"},
                        {"name": "ours", "image": format!("r:5000/a@{DIGEST}"), "imagePullPolicy": "IfNotPresent",
                            "env": [{"name": "A", "value": "b"}, {"name": ON_TRIAL, "value": "true"}]},
                    ],
                },
            },
        })
    );
}

#[test]
fn a_set_that_the_deployment_would_take_over_is_not_made() {
    let all_but = json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]});
    let refused = set(&installation("a"), &deployment(&all_but), &format!("r:5000/a@{DIGEST}")).unwrap_err();
    assert!(refused.contains("take it over"), "{refused}");
}

#[test]
fn an_image_that_may_move_is_never_tried() {
    let deployment = deployment(&json!({"matchLabels": {"app": "a"}}));
    let refused = |image| set(&installation("a"), &deployment, image).unwrap_err();
    assert!(refused("r:5000/a:1").contains("names no digest"));
    assert!(refused("A B").contains("is no name of an image"));
}

#[test]
fn a_long_name_fits_into_a_label() {
    let long = format!("{}.{}", "a".repeat(62), "b".repeat(80));
    assert_eq!(installation(&long).trial_label(), "a".repeat(62));
    assert_eq!(installation("short").trial_label(), "short");
}
