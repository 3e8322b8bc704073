//! Logins, signatures and the times at which a version may be taken.

use std::path::Path;

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use testbed::registry::guard::Lock;

use super::shop::{Shop, wait_for_status};
use crate::bad_input::stage::{CONVERGED, assert_says};

/// The headers of the user `u` with the passwords `first-word` and `other-word`.
const FIRST: &str = "Basic dTpmaXJzdC13b3Jk";
const OTHER: &str = "Basic dTpvdGhlci13b3Jk";

#[test]
fn a_registry_is_asked_with_the_login_that_the_source_names() {
    let shop = Shop::open("source-login");
    shop.push("stable", "1.0.0", "small", &[]);
    shop.guard.lock(Lock::Login(FIRST));
    shop.configure(&shop.source("stable", ", auth: login"));
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    wait_for_status(&operator, "cannot use the Secret 'login': it does not exist");
    let make =
        |word: &str| format!("create secret generic login --from-literal=username=u --from-literal=password={word}");
    shop.stage.kubectl(&make("wrong-word"));
    operator.ask("module source check shop");
    wait_for_status(&operator, "access is denied");
    shop.stage.kubectl("delete secret login");
    shop.stage.kubectl(&make("first-word"));
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:small victim:small");

    // Another login, in the form that `docker login` writes.
    shop.guard.lock(Lock::Open);
    shop.push("stable", "1.1.0", "large", &[]);
    shop.guard.lock(Lock::Login(OTHER));
    shop.stage.kubectl("delete secret login");
    let host = shop.guard.address();
    shop.stage.kubectl(&format!(
        "create secret docker-registry login --docker-server={host} --docker-username=u --docker-password=other-word"
    ));
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    let said = operator.said();
    assert!(!said.contains("-word") && !said.contains("dTp"), "{said}");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}

#[test]
fn a_module_without_a_signature_by_our_key_is_not_used() {
    let mut shop = Shop::open("source-signature");
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures/keys");
    let key = |name: &str| keys.join(name).to_str().unwrap().to_owned();
    shop.stage.set("ADDON_OPERATOR_VERIFICATION_KEYS", key("p256.pub"));
    let unsigned = shop.push("stable", "1.0.0", "small", &[]);
    shop.configure(&shop.source("stable", ""));
    let operator = shop.stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_says(
        &wait_for_status(&operator, "waits:"),
        &[&unsigned, "it is not verified"],
    );
    // The key of another person does not help.
    let by_other = shop.push_written("stable", &["--key", &key("ed25519.key")]);
    operator.ask("module source check shop");
    assert_says(
        &wait_for_status(&operator, &by_other),
        &["it is not verified", "in use:    none"],
    );
    shop.push_written("stable", &["--key", &key("p256.key")]);
    operator.ask("module source check shop");
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
    // An unsigned version later on changes nothing.
    let unsigned = shop.push("stable", "1.1.0", "large", &[]);
    operator.ask("module source check shop");
    assert_says(
        &wait_for_status(&operator, &unsigned),
        &["waits:", "it is not verified"],
    );
    operator.stop();
    shop.stage.wait_for_sizes("good:small shop:small victim:small");
}

#[test]
fn a_version_waits_for_its_window_and_its_delay() {
    let shop = Shop::open("source-window");
    shop.push("stable", "1.0.0", "small", &[]);
    // A window that opens two hours from now, at the earliest.
    let hour = |hours: i64| {
        let time = (Timestamp::now() + hours.hours()).to_zoned(TimeZone::UTC);
        time.strftime("%H:00").to_string()
    };
    let closed = format!(", policy: {{windows: [{{from: '{}', to: '{}'}}]}}", hour(3), hour(4));
    let operator = shop.install("stable", &closed);
    let next = shop.push("stable", "1.1.0", "large", &[]);
    operator.ask("module source check shop");
    assert_says(&wait_for_status(&operator, "no window is open"), &[&next]);
    shop.configure(&shop.source("stable", ", policy: {delay: 24h}"));
    wait_for_status(&operator, "it was first seen a short time ago");
    assert_eq!(shop.stage.sizes(), "good:small shop:small victim:small");
    shop.configure(&shop.source("stable", ""));
    shop.stage.wait_for_sizes("good:small shop:large victim:small");
    operator.stop();
    shop.stage.assert_installed(&["good", "shop", "victim"]);
}
