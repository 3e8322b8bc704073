//! The rights of deploys: those of an account of the Bundle's namespace, and never those of the operator.

use serde_json::json;
use testbed::registry::guard::{Guard, Lock};

use super::world::{Home, operator, push, ready_of, registry};

const LOGIN: &str = "Basic dXNlcjpwYXNzd29yZA==";

#[test]
fn without_an_account_nothing_is_deployed_and_with_one_it_is() {
    let _turn = operator().share();
    let home = Home::without_account();
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    home.bundle("app", &repo, "latest", &json!({}));
    let failed = home.wait_for_reason("app", "DeployFailed");
    let message = ready_of(&failed)["message"].as_str().unwrap();
    let account = format!("system:serviceaccount:{}:werf", home.name());
    assert!(message.contains("forbidden") && message.contains(&account), "{message}");
    assert!(home.namespace.object("configmap", "app").unwrap().is_none());
    home.account("werf");
    home.wait_ready("app");
}

#[test]
fn another_namespace_is_closed_until_it_admits_the_account() {
    let _turn = operator().share();
    let (home, project) = (Home::new(), Home::without_account());
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    home.bundle("app", &repo, "latest", &json!({"project_namespace": project.name()}));
    let failed = home.wait_for_reason("app", "DeployFailed");
    assert!(
        ready_of(&failed)["message"].as_str().unwrap().contains("forbidden"),
        "{failed}"
    );
    project.admit(home.name(), "werf");
    home.wait_ready("app");
    project.wait_for_text("app", "one");
}

#[test]
fn the_account_of_a_bundle_is_chosen_by_its_spec() {
    let _turn = operator().share();
    let home = Home::without_account();
    home.account("deployer");
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    home.bundle("app", &repo, "latest", &json!({"serviceAccount": "deployer"}));
    home.wait_ready("app");
    home.wait_for_text("app", "one");
}

#[test]
fn logins_are_read_by_the_account_and_sent_to_the_registry_of_the_bundle() {
    let _turn = operator().share();
    let home = Home::without_account();
    let guard = Guard::start_plain(registry()).unwrap();
    guard.lock(Lock::tokens(Some(LOGIN)));
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    let spec = json!({"registry": guard.address().to_string(), "auth": "login"});
    home.bundle("app", &repo, "latest", &spec);
    let refused = home.wait_for_reason("app", "CheckFailed");
    assert_eq!(refused["status"]["ready"], 0);
    let message = ready_of(&refused)["message"].as_str().unwrap();
    assert!(
        message.starts_with("cannot read the login: ") && message.contains("forbidden"),
        "{message}"
    );
    assert!(
        home.wait_for_event("app", "CheckFailed")
            .starts_with("cannot read the login: ")
    );
    home.account("werf");
    home.wait_for("app", |bundle| {
        ready_of(bundle)["message"]
            .as_str()
            .is_some_and(|text| text.contains("not found"))
    });
    let login = |password: &str| {
        home.apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "stringData": {"username": "user", "password": password}}),
        );
    };
    login("wrong");
    let denied = home.wait_for("app", |bundle| {
        ready_of(bundle)["message"]
            .as_str()
            .is_some_and(|text| text.contains("access is denied"))
    });
    assert!(!denied.to_string().contains("wrong"), "{denied}");
    login("password");
    let bundle = home.wait_ready("app");
    assert_eq!(bundle["status"]["ready"], 1);
    home.wait_for_text("app", "one");
    let log = fs_err::read_to_string(operator().log()).unwrap();
    assert!(
        !log.contains("\"password\": \"password\"") && !log.contains("dXNlcjpwYXNzd29yZA"),
        "a password is in the log"
    );
}

#[test]
fn only_signed_bundles_are_deployed_if_there_are_keys() {
    let _turn = operator().alone();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    let key = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/signatures/keys/p256.pub")).unwrap();
    operator().configure(&json!({"keys": key}));
    home.bundle("app", &repo, "latest", &json!({}));
    let failed = home.wait_for_reason("app", "DeployFailed");
    assert!(
        ready_of(&failed)["message"]
            .as_str()
            .unwrap()
            .contains("is not signed by a key of"),
        "{failed}"
    );
    assert!(home.namespace.object("configmap", "app").unwrap().is_none());
    operator().configure(&json!({}));
    home.wait_ready("app");
}
