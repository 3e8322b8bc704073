//! Registries that are slow, break connections, send endless answers or lie.

use std::time::Duration;

use addon_core::failure::Class;
use jiff::{SignedDuration, Timestamp};
use registry::error::Problem;
use registry::place::{Reference, digest_of};
use registry::way::WayError;
use serde_json::json;
use testbed::registry::guard::{Aim, Lock, Trouble};

use super::stage::{access, client, guard, host, place, push, repository, repository_of_one, tag, told};

#[tokio::test]
async fn a_registry_that_has_had_enough_says_until_when() {
    let (guard, place, _) = repository_of_one("harm/slow").await;
    let registry = client(access(&guard));
    let patience = async |trouble, path| {
        guard.impose(vec![Aim::at(path, trouble)]);
        let before = Timestamp::now();
        let error = registry.head(&place, &tag("1")).await.unwrap_err();
        assert_eq!(error.class(), Class::Unavailable, "{error:?}");
        let until = error.slow_until();
        until.map(|until| until.duration_since(before))
    };
    let about = |seconds: i64| {
        let second = SignedDuration::from_secs(1);
        SignedDuration::from_secs(seconds)..SignedDuration::from_secs(seconds) + second * 30
    };
    let slow = patience(Trouble::Status(429, Some("120")), "/manifests/")
        .await
        .unwrap();
    assert!(about(120).contains(&slow), "{slow}");
    let slow = patience(Trouble::Status(429, None), "/manifests/").await.unwrap();
    assert!(about(60).contains(&slow), "{slow}");
    let slow = patience(Trouble::Status(503, Some("120")), "/manifests/")
        .await
        .unwrap();
    assert!(about(120).contains(&slow), "{slow}");
    assert_eq!(patience(Trouble::Status(503, None), "/manifests/").await, None);
    guard.lock(Lock::tokens(None));
    let slow = patience(Trouble::Status(429, Some("120")), "/token").await.unwrap();
    assert!(about(120).contains(&slow), "{slow}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_none() {
    let (guard, place, _) = repository_of_one("harm/cut").await;
    let registry = client(access(&guard));
    for trouble in [Trouble::Cut(40), Trouble::Break] {
        guard.impose(vec![Aim::at("/manifests/", trouble)]);
        let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
        assert!(matches!(error.problem, Problem::Cut(_)), "{error:?}");
        assert_eq!(error.class(), Class::Unavailable);
    }
}

#[tokio::test]
async fn nobody_is_waited_for_without_an_end() {
    let (guard, place, _) = repository_of_one("harm/silent").await;
    for (trouble, wanted) in [
        (Trouble::Silence, "the head of the answer"),
        (Trouble::Stall(40), "the whole answer"),
    ] {
        let mut access = access(&guard);
        let soon = Duration::from_millis(500);
        match trouble {
            Trouble::Silence => access.limits.head = soon,
            _ => access.limits.whole = soon,
        }
        let registry = client(access);
        guard.impose(vec![Aim::at("/manifests/", trouble)]);
        let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
        assert!(
            matches!(error.problem, Problem::Late { step, .. } if step == wanted),
            "{error:?}"
        );
        assert_eq!(error.class(), Class::TimedOut);
    }
    let mut access = access(&guard);
    access.limits.call = Duration::from_millis(500);
    guard.impose(vec![Aim::at("/tags/", Trouble::Silence)]);
    let error = client(access).tags(&place).await.unwrap_err();
    assert!(
        matches!(error.problem, Problem::Late { step: "all of it", .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn nobody_is_listened_to_without_an_end() {
    let (guard, place, _) = repository_of_one("harm/endless").await;
    let registry = client(access(&guard));
    let layer = digest_of(b"no real layer");
    guard.impose(vec![Aim::at("/v2/", Trouble::Endless)]);
    let large = |problem: &Problem, limit: usize| matches!(problem, Problem::Large { limit: found } if *found == limit);
    let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
    assert!(large(&error.problem, 4 << 20), "{error:?}");
    let error = registry.tags(&place).await.unwrap_err();
    assert!(large(&error.problem, 4 << 20), "{error:?}");
    let error = registry.blob(&place, &layer, 100).await.unwrap_err();
    assert!(large(&error.problem, 100), "{error:?}");
    // A blob whose stated size is too large is not read.
    guard.impose(Vec::new());
    let error = registry.blob(&place, &layer, 12).await.unwrap_err();
    assert!(large(&error.problem, 12), "{error:?}");
    assert_eq!(
        registry.blob(&place, &layer, 13).await.unwrap().as_ref(),
        b"no real layer"
    );
    assert_eq!(error.class(), Class::Invalid);
}

#[tokio::test]
async fn more_tags_than_anybody_needs_are_an_error_and_not_a_part_of_them() {
    let (guard, place, _) = repository_of_one("harm/many").await;
    push("harm/many", "2", "two").await;
    let registry = client(access(&guard));
    // Each page is the first page again, with a link to a next one.
    guard.impose(vec![
        Aim::at("last=", Trouble::Instead("last=1", "last=0")),
        Aim::at("n=1000", Trouble::Instead("n=1000", "n=1")),
    ]);
    let error = registry.tags(&place).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Many { .. }), "{error:?}");
}

#[tokio::test]
async fn content_that_has_not_its_digest_is_refused() {
    let (guard, place, digest) = repository_of_one("harm/altered").await;
    let registry = client(access(&guard));
    guard.impose(vec![Aim::at("/v2/", Trouble::Alter)]);
    let by_digest = Reference::Digest(digest.clone());
    let error = registry.manifest(&place, &by_digest).await.unwrap_err();
    assert!(
        matches!(&error.problem, Problem::Content { wanted, .. } if *wanted == digest),
        "{error:?}"
    );
    let layer = digest_of(b"no real layer");
    let error = registry.blob(&place, &layer, 100).await.unwrap_err();
    assert!(
        matches!(&error.problem, Problem::Content { wanted, .. } if *wanted == layer),
        "{error:?}"
    );
    // For a tag the digest is computed from the received bytes, whatever the registry states.
    let document = registry.manifest(&place, &tag("1")).await.unwrap();
    assert_eq!(document.digest, digest_of(&document.bytes));
    assert_ne!(document.digest, digest);
}

#[tokio::test]
async fn where_a_head_tells_no_digest_the_manifest_does() {
    let (guard, place, digest) = repository_of_one("harm/headless").await;
    let registry = client(access(&guard));
    let not_allowed = Aim {
        method: Some("HEAD"),
        ..Aim::at("/manifests/", Trouble::Status(405, None))
    };
    let untold = Aim::at("/manifests/", Trouble::Without("docker-content-digest"));
    for aim in [not_allowed, untold] {
        guard.impose(vec![aim]);
        assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, digest);
        let question = "harm/headless/manifests/1";
        assert_eq!(
            told(&guard.seen()),
            [format!("HEAD {question}"), format!("GET {question}")]
        );
    }
}

#[tokio::test]
async fn what_is_no_description_of_an_image_is_none() {
    let guard = guard();
    let (registry, place) = (client(access(&guard)), place(&host(guard.address()), "harm/kind"));
    let repository = repository("harm/kind");
    let config = json!({
        "mediaType": "application/vnd.oci.image.config.v1+json",
        "digest": repository.upload(b"{}").await, "size": 2,
    });
    let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [] });
    let kind = "application/vnd.oci.image.manifest.v1+json";
    repository.put("1", kind, &manifest).await;
    assert_eq!(registry.manifest(&place, &tag("1")).await.unwrap().media_type, kind);
    guard.impose(vec![Aim::at("/manifests/", Trouble::Kind("text/html"))]);
    let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
    assert!(
        matches!(&error.problem, Problem::Kind(kind) if kind == "text/html"),
        "{error:?}"
    );
    // The media type in an index itself counts.
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": [] });
    repository.put("2", kind, &index).await;
    assert_eq!(registry.manifest(&place, &tag("2")).await.unwrap().media_type, kind);
}

#[tokio::test]
async fn referrals_end_and_lead_nowhere_near() {
    let (guard, place, _) = repository_of_one("harm/astray").await;
    let registry = client(access(&guard));
    let follow = async |to: &str| {
        guard.seen();
        guard.impose(vec![Aim::at("/manifests/", Trouble::ReferTo(to.to_owned()))]);
        let error = registry.manifest(&place, &tag("1")).await.unwrap_err();
        (error.problem, guard.seen().len())
    };
    let (problem, asked) = follow("/v2/harm/astray/manifests/1").await;
    assert!(matches!(problem, Problem::Astray { .. }), "{problem:?}");
    assert_eq!(asked, 6, "one question and five referrals");
    for to in [
        "http://registry.example/x",
        "ftp://registry.example/",
        "https://user:secret@registry.example/",
        "https://",
    ] {
        let (problem, asked) = follow(to).await;
        assert!(matches!(problem, Problem::Astray { .. }), "{to}: {problem:?}");
        assert_eq!(asked, 1, "{to}");
    }
    for to in [
        "https://169.254.169.254/latest",
        "https://[fe80::1]/",
        "https://[::ffff:169.254.169.254]/",
    ] {
        let (problem, _) = follow(to).await;
        assert!(
            matches!(problem, Problem::Way(WayError::Near { .. })),
            "{to}: {problem:?}"
        );
    }
}
