//! The end of Bundles, of their namespaces and of the module.

use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::world::{Home, PATIENCE, operator, push};

const FINALIZER: &str = "operator.werf.dev/release";

/// A Bundle that is deployed.
fn deployed(home: &Home, name: &str, more: &Value) -> Value {
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    home.bundle(name, &repo, "latest", more);
    home.wait_ready(name)
}

/// Another namespace, in which the account of this one may deploy.
fn project_of(home: &Home) -> Home {
    let project = Home::without_account();
    project.admit(home.name(), "werf");
    project
}

#[test]
fn a_deleted_bundle_takes_its_release_along() {
    let _turn = operator().share();
    let home = Home::new();
    let project = project_of(&home);
    let bundle = deployed(&home, "app", &json!({"project_namespace": project.name()}));
    assert_eq!(bundle["metadata"]["finalizers"], json!([FINALIZER]));
    home.namespace.kubectl(["delete", "bndl", "app"]).unwrap();
    project.wait_until_gone("configmap", "app");
    let records = project
        .namespace
        .kubectl(["get", "secrets", "--selector=owner=helm", "--no-headers"])
        .unwrap();
    assert_eq!(records, "");
    assert_eq!(home.wait_for_event("app", "Uninstalled"), "the release is uninstalled");
    assert_eq!(home.seen("app"), Value::Null);
}

#[test]
fn a_bundle_without_a_release_goes_at_once() {
    let _turn = operator().share();
    let home = Home::new();
    home.bundle("app", &format!("{}/nothing", home.name()), "latest", &json!({}));
    home.wait_for_reason("app", "CheckFailed");
    home.namespace.kubectl(["delete", "bndl", "app"]).unwrap();
    assert_eq!(home.seen("app"), Value::Null);
}

#[test]
fn a_namespace_with_bundles_can_be_deleted() {
    let _turn = operator().share();
    let home = Home::new();
    let project = project_of(&home);
    deployed(&home, "here", &json!({}));
    deployed(&home, "there", &json!({"project_namespace": project.name()}));
    home.namespace
        .kubectl(["delete", "namespace", home.name(), "--wait=false"])
        .unwrap();
    let look = || {
        let get = ["get", "namespace", home.name(), "--ignore-not-found", "--output=json"];
        let said = project.namespace.kubectl(get).unwrap();
        if said.is_empty() { Ok(Some(())) } else { Err(said) }
    };
    wait_until(PATIENCE, "the namespace is gone", look).unwrap();
}

#[test]
fn a_release_that_nobody_may_uninstall_does_not_hold_its_bundle_for_ever() {
    let _turn = operator().alone();
    let home = Home::new();
    deployed(&home, "app", &json!({}));
    operator().configure(&json!({"uninstallLimit": 10}));
    home.namespace.kubectl(["delete", "rolebindings", "--all"]).unwrap();
    home.wait_until_forbidden("werf");
    home.namespace.kubectl(["delete", "bndl", "app"]).unwrap();
    assert!(home.wait_for_event("app", "UninstallFailed").contains("forbidden"));
    let message = home.wait_for_event("app", "Abandoned");
    assert!(
        message.contains("the release") && message.contains("forbidden"),
        "{message}"
    );
    assert_eq!(home.seen("app"), Value::Null);
    home.wait_for_text("app", "one");
    operator().configure(&json!({}));
}

#[test]
fn when_the_module_is_off_bundles_are_free_and_releases_stay() {
    let _turn = operator().alone();
    let home = Home::new();
    deployed(&home, "app", &json!({}));
    operator().switch("false", &json!({}));
    home.wait_for("app", |bundle| bundle["metadata"]["finalizers"].is_null());
    home.wait_for_reason("app", "Off");
    home.wait_for_text("app", "one");
    // Back again it goes on where it was, without another deploy.
    operator().configure(&json!({}));
    let bundle = home.wait_ready("app");
    assert_eq!(bundle["status"]["rollout"]["count"], 1);
}
