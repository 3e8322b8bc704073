//! The clients that may announce a new version, and the answers to all others.

use std::path::Path;
use std::time::Duration;

use futures::poll;
use tokio::time::timeout;

use super::*;

/// The listener's answer to a client with this header, and whether the bell was rung.
async fn shown(probe: &Probe, authorization: &str) -> (u16, String, bool) {
    let request = format!("POST /channel/notify\n{authorization}\n\n{{}}");
    let request = if authorization.is_empty() {
        "POST /channel/notify".to_owned()
    } else {
        request
    };
    let (code, _, body) = stage::ask(router(probe.clone()), &request).await;
    let bell = probe.endpoint.bell.clone();
    let is_rung = poll!(Box::pin(bell.rung())).is_ready();
    (code, body, is_rung)
}

fn with_token(token: Option<&Path>) -> Probe {
    let (doors, _) = stage::wedged();
    let mut probe = probe(doors, None);
    probe.endpoint.token = token.map(Path::to_owned);
    probe
}

#[tokio::test]
async fn a_new_version_is_told_by_those_who_have_the_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), "opensesame\n").unwrap();
    let probe = with_token(Some(file.path()));
    for refused in [
        "",
        "Authorization: Bearer opensesam",
        "Authorization: Bearer opensesame2",
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: Basic opensesame",
        "Authorization: opensesame",
    ] {
        let (code, _, is_rung) = shown(&probe, refused).await;
        assert_eq!((code, is_rung), (401, false), "{refused}");
    }
    let good = "Authorization: Bearer opensesame";
    let asked = "the registry is asked at once\n".to_owned();
    assert_eq!(shown(&probe, good).await, (202, asked.clone(), true));
    let (code, _, _) = stage::ask(router(probe.clone()), &format!("GET /channel/notify\n{good}\n\n")).await;
    assert_eq!(code, 405);
    // A mounted Secret may change.
    fs_err::write(file.path(), "other").unwrap();
    assert_eq!(shown(&probe, good).await.0, 401);
    assert_eq!(shown(&probe, "authorization: bearer other").await, (202, asked, true));
    for unusable in ["", " \n"] {
        fs_err::write(file.path(), unusable).unwrap();
        assert_eq!(
            shown(&probe, "Authorization: Bearer ").await.0,
            401,
            "an empty token is none"
        );
    }
}

#[tokio::test]
async fn who_cannot_ask_the_registry_says_so_to_those_who_have_the_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), "opensesame").unwrap();
    let mut probe = with_token(Some(file.path()));
    let leader = standing::Leader {
        name: "operator-1".to_owned(),
        address: None,
    };
    let good = "Authorization: Bearer opensesame";
    for (standing, says) in [
        (ActingRole::Standby(leader), "operator-1 leads"),
        (ActingRole::Seeks { trouble: None }, "no replica leads"),
    ] {
        probe.standing = watch::channel(standing).1;
        let (code, body, is_rung) = shown(&probe, good).await;
        assert_eq!((code, is_rung), (503, false));
        assert!(body.contains(says), "{body}");
        let (code, body, _) = shown(&probe, "").await;
        assert!(code == 401 && !body.contains(says), "{body}");
    }
    probe.standing = watch::channel(ActingRole::Leads).1;
    probe.endpoint.bell.unhang("ADDON_OPERATOR_CHANNEL is false");
    let told = "the registry is not followed: ADDON_OPERATOR_CHANNEL is false\n".to_owned();
    assert_eq!(shown(&probe, good).await, (409, told, false));
    probe.endpoint.token = Some("/nowhere/token".into());
    assert_eq!(shown(&probe, good).await.0, 503);
    assert_eq!(shown(&with_token(None), good).await.0, 404);
}

#[tokio::test]
async fn a_bell_that_was_rung_twice_is_heard_once() {
    let bell = bell::Bell::default();
    bell.ring();
    bell.ring();
    timeout(Duration::from_secs(30), bell.rung()).await.unwrap();
    assert!(poll!(Box::pin(bell.rung())).is_pending());
}
