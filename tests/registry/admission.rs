//! Access to a registry: tokens, logins, and the hosts to which they are sent.

use std::sync::atomic::Ordering;

use addon_core::failure::Class;
use certificates::material::Pem;
use futures::future::ready;
use registry::Registry;
use registry::credentials::{Credentials, ReadCredentials};
use registry::error::Problem;
use serde_json::json;
use testbed::registry::guard::{Aim, Guard, Lock, Trouble};

use super::stage::{access, client, guard, host, people, place, push, real, repository_of_one, tag, told};

/// The basic credentials `user:old` and `user:new`.
const OLD: &str = "Basic dXNlcjpvbGQ=";
const NEW: &str = "Basic dXNlcjpuZXc=";

#[tokio::test]
async fn a_token_is_kept_until_it_is_no_good_any_more() {
    let (guard, place, digest) = repository_of_one("admission/kept").await;
    guard.lock(Lock::tokens(None));
    let registry = client(access(&guard));
    let head = async || registry.head(&place, &tag("1")).await.unwrap().digest;
    assert_eq!(head().await, digest);
    let seen = guard.seen();
    let question = "HEAD admission/kept/manifests/1";
    let with_token = format!("{question} *");
    assert_eq!(told(&seen), [question, "GET /token", &with_token]);
    let wanted = "/token?service=testbed%20registry&scope=repository%3Aadmission%2Fkept%3Apull";
    assert_eq!(seen[1].path, wanted);
    assert_eq!(head().await, digest);
    assert_eq!(told(&guard.seen()), [&*with_token], "the token is kept");
    guard.expire();
    assert_eq!(head().await, digest);
    assert_eq!(told(&guard.seen()), [&with_token, "GET /token", &with_token]);
}

#[tokio::test]
async fn a_token_that_has_run_out_is_not_shown() {
    let (guard, place, digest) = repository_of_one("admission/short").await;
    guard.lock(Lock::Tokens {
        login: None,
        refresh: None,
        issuer: None,
        life: 0,
    });
    let registry = client(access(&guard));
    for _ in 0..2 {
        assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, digest);
        let question = "HEAD admission/short/manifests/1";
        assert_eq!(told(&guard.seen()), [question, "GET /token", &format!("{question} *")]);
    }
}

#[tokio::test]
async fn credentials_are_read_again_when_they_are_refused() {
    for (name, of) in [
        (
            "admission/token",
            (|login| Lock::tokens(Some(login))) as fn(&'static str) -> Lock,
        ),
        ("admission/login", Lock::Login),
    ] {
        let (guard, place, digest) = repository_of_one(name).await;
        guard.lock(of(OLD));
        let (read, reads) = people(&place.host, &["old", "new"]);
        let registry = Registry::new(access(&guard), read).unwrap();
        let head = async || registry.head(&place, &tag("1")).await;
        assert_eq!(head().await.unwrap().digest, digest);
        assert_eq!(head().await.unwrap().digest, digest);
        assert_eq!(reads.load(Ordering::Relaxed), 1, "{name}: they are kept");
        guard.lock(of(NEW));
        assert_eq!(head().await.unwrap().digest, digest);
        assert_eq!(reads.load(Ordering::Relaxed), 2, "{name}");
        // A refused login that is still the same in its file is not tried again.
        guard.lock(of("Basic nobody"));
        guard.seen();
        let error = head().await.unwrap_err();
        assert!(
            matches!(error.problem, Problem::Denied { status: 401, .. }),
            "{error:?}"
        );
        assert_eq!(error.class(), Class::Refused);
        assert_eq!(reads.load(Ordering::Relaxed), 3, "{name}");
        let shown = guard
            .seen()
            .iter()
            .filter(|seen| seen.authorization.as_deref() == Some(NEW))
            .count();
        assert_eq!(shown, 1, "{name}");
    }
}

#[tokio::test]
async fn who_has_no_login_is_denied_by_name() {
    let (guard, place, _) = repository_of_one("admission/nobody").await;
    let registry = client(access(&guard));
    for lock in [Lock::tokens(Some(OLD)), Lock::Login(OLD)] {
        guard.lock(lock);
        let error = registry.head(&place, &tag("1")).await.unwrap_err();
        assert!(
            matches!(error.problem, Problem::Denied { status: 401, .. }),
            "{error:?}"
        );
        assert!(error.to_string().ends_with("/admission/nobody"), "{error}");
    }
}

#[tokio::test]
async fn a_token_for_tokens_is_sent_in_a_form() {
    let (guard, place, digest) = repository_of_one("admission/refresh").await;
    guard.lock(Lock::Tokens {
        login: None,
        refresh: Some("again"),
        issuer: None,
        life: 300,
    });
    let entry = json!({ "auths": { place.host.to_string(): { "auth": "eDo=", "identitytoken": "again" } } });
    let credentials = Credentials::config(entry.to_string().as_bytes()).unwrap();
    let read: ReadCredentials = Box::new(move || Box::pin(ready(Ok(credentials.clone()))));
    let registry = Registry::new(access(&guard), read).unwrap();
    assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, digest);
    assert_eq!(told(&guard.seen())[1], "POST /token");
}

#[tokio::test]
async fn tokens_are_asked_for_by_tls_unless_the_host_is_listed() {
    let (tls, plain) = (guard(), Guard::start_plain(real()).unwrap());
    let name = "admission/realm";
    let digest = push(name, "1", "one").await;
    tls.lock(Lock::Tokens {
        login: None,
        refresh: None,
        issuer: Some(format!("http://{}", plain.address())),
        life: 300,
    });
    let at_tls = place(&host(tls.address()), name);
    let error = client(access(&tls)).head(&at_tls, &tag("1")).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Astray { .. }), "{error:?}");
    assert_eq!(plain.seen(), [], "nobody was asked without TLS");

    plain.lock(Lock::tokens(None));
    let mut listed = access(&plain);
    listed.plain = listed.allowed.clone();
    let at_plain = place(&host(plain.address()), name);
    let found = client(listed).head(&at_plain, &tag("1")).await.unwrap();
    assert_eq!(found.digest, digest);
}

#[tokio::test]
async fn credentials_go_to_no_other_host() {
    let (guard, place, _) = repository_of_one("admission/elsewhere").await;
    let storage = super::stage::guard();
    guard.lock(Lock::Login(OLD));
    let (read, _) = people(&place.host, &["old"]);
    let mut access = access(&guard);
    let both = [guard.authority(), storage.authority()].concat();
    access.authorities = Some(Pem {
        place: "both".to_owned(),
        text: both.into_bytes(),
    });
    let registry = Registry::new(access, read).unwrap();
    let manifest = registry.manifest(&place, &tag("1")).await.unwrap();
    assert_eq!(guard.seen().last().unwrap().authorization.as_deref(), Some(OLD));
    guard.impose(vec![Aim::at(
        "/manifests/",
        Trouble::Refer(format!("https://{}", storage.address())),
    )]);
    assert_eq!(registry.manifest(&place, &tag("1")).await.unwrap(), manifest);
    assert_eq!(
        told(&storage.seen()),
        ["GET admission/elsewhere/manifests/1"],
        "and it shows nothing"
    );
    // Another name of the same server counts as another host.
    let alias = format!("https://localhost:{}", guard.address().port());
    guard.impose(vec![Aim::at("/manifests/", Trouble::ReferTo(format!("{alias}/v2/")))]);
    guard.seen();
    let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
    assert!(
        matches!(error.problem, Problem::Denied { status: 401, .. }),
        "{error:?}"
    );
    let shown: Vec<bool> = guard.seen().iter().map(|seen| seen.authorization.is_some()).collect();
    assert!(!shown[shown.len() - 1], "{shown:?}");
    // A storage host that asks for a login gets none.
    storage.lock(Lock::tokens(Some(OLD)));
    guard.impose(vec![Aim::at(
        "/manifests/",
        Trouble::Refer(format!("https://{}", storage.address())),
    )]);
    let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
    assert!(
        matches!(error.problem, Problem::Denied { status: 401, .. }),
        "{error:?}"
    );
    let seen = storage.seen();
    assert!(
        seen.iter()
            .all(|seen| seen.authorization.is_none() && !seen.path.starts_with("/token")),
        "{seen:?}"
    );
}
