//! The requests of the channel about a version: its properties, and whether it is signed.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may, and so may what only tests call"
)]

use std::path::{Path, PathBuf};

use channel_core::candidate::{Candidate, Signature};
use channel_core::following::{Answer, Question, Trouble};
use channel_core::platform::Platform;
use channel_core::reference::{ImageDigest, Tag};
use image::layout::{CONFIG, Draft, MANIFEST};
use image::push::Target;
use inquiry::Inquiry;
use registry::place::{ImagePlace, digest_of};
use registry::signatures::Keys;
use serde_json::{Value, json};
use signing::Signer;
use testbed::registry::guard::{Aim, Guard, Trouble as Harm};

use super::stage::{access, client, guard, host, place, push, real, repository};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/signatures/keys")
        .join(name)
}

#[expect(clippy::unnecessary_wraps, reason = "it is given on as it is")]
fn keys(name: &str) -> Option<Keys> {
    let text = fs_err::read_to_string(file(&format!("{name}.pub"))).unwrap();
    Some(Keys::parse(&text).unwrap())
}

fn inquiry(guard: &Guard, place: &ImagePlace, keys: Option<Keys>) -> Inquiry {
    Inquiry::new(client(access(guard)), place.clone(), keys)
}

async fn looked_at(inquiry: &Inquiry, digest: &ImageDigest) -> Result<Option<Candidate>, Trouble> {
    match inquiry.answer(&Question::Candidate(digest.clone())).await? {
        Answer::Candidate(found) => Ok(found.map(|found| *found)),
        other => panic!("{other:?}"),
    }
}

/// Pushes an image as `make image-push` does.
async fn push_signed(name: &str, key: Option<&str>) -> ImageDigest {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let draft = Draft::new(&folder.path().join("image")).unwrap();
    let config = json!({ "os": "linux", "architecture": "amd64", "config": {}, "name": name });
    let config = draft.document(CONFIG, &config).unwrap();
    let annotations = json!({ "org.opencontainers.image.version": "1.4.2", "addon-operator/state-formats": "1" });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [], "annotations": annotations,
    });
    let manifest = draft.document(MANIFEST, &manifest).unwrap();
    let paper = draft.paper("text/x-paper", &json!("paper"), &manifest).unwrap();
    let layout = draft.finish(manifest, vec![paper]).unwrap();
    let target = Target::new(&format!("{}/{name}:1", real()), None).unwrap();
    let signer = key.map(|key| Signer::read(&file(&format!("{key}.key"))).unwrap());
    let pushed = image::push::push(&layout, &target, signer.as_ref()).await.unwrap();
    ImageDigest::parse(&pushed.digest).unwrap()
}

#[tokio::test]
async fn tags_and_digests_are_told_as_they_are() {
    let guard = guard();
    let place = place(&host(guard.address()), "candidates/tags");
    let one = push("candidates/tags", "1", "one").await;
    push("candidates/tags", "2", "two").await;
    let inquiry = inquiry(&guard, &place, None);
    let tag = |text: &str| Tag::parse(text).unwrap();
    let nothing = digest_of(b"nothing");
    for (question, answer) in [
        (Question::Tags, Answer::Tags([tag("1"), tag("2")].into())),
        (Question::Digest(tag("1")), Answer::Digest(Some(one.clone()))),
        (Question::Digest(tag("3")), Answer::Digest(None)),
        (Question::Presence(one.clone()), Answer::Presence(true)),
        (Question::Presence(nothing.clone()), Answer::Presence(false)),
        (Question::Candidate(nothing), Answer::Candidate(None)),
    ] {
        assert_eq!(inquiry.answer(&question).await, Ok(answer), "{question:?}");
    }
    let moved = push("candidates/tags", "1", "other").await;
    let answer = inquiry.answer(&Question::Digest(tag("1"))).await;
    assert_eq!(answer, Ok(Answer::Digest(Some(moved))));
}

#[tokio::test]
async fn a_version_is_described_by_its_index_its_manifests_or_its_configuration() {
    let guard = guard();
    let name = "candidates/described";
    let place = place(&host(guard.address()), name);
    let inquiry = inquiry(&guard, &place, None);
    let pushing = repository(name);
    let put_manifest = async |architecture: &str, labels: &Value, annotations: &Value| {
        let config = json!({ "os": "linux", "architecture": architecture, "config": { "Labels": labels } });
        let config = pushing.upload(config.to_string().as_bytes()).await;
        let config = json!({ "mediaType": CONFIG, "digest": config, "size": 9 });
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [], "annotations": annotations,
        });
        let digest = pushing.put(&format!("of-{architecture}"), MANIFEST, &manifest).await;
        ImageDigest::parse(&digest).unwrap()
    };
    let platform = |text: &str| Platform::parse(text).unwrap();
    let (version, formats) = ("org.opencontainers.image.version", "addon-operator/state-formats");
    let amd = put_manifest(
        "amd64",
        &json!({ version: "1.0.0", formats: "1" }),
        &json!({ version: "1.0.1" }),
    )
    .await;
    let found = looked_at(&inquiry, &amd).await.unwrap().unwrap();
    assert_eq!(found.manifests, [(platform("linux/amd64"), amd.clone())].into());
    assert_eq!(
        found.notes.version.unwrap().to_string(),
        "1.0.1",
        "annotations win over labels"
    );
    assert_eq!(found.notes.state_formats, ["1".to_owned()].into());
    assert_eq!(found.signature, Signature::NotAsked);

    let arm = put_manifest("arm64", &Value::Null, &Value::Null).await;
    let listed = |digest: &ImageDigest, os: &str, architecture: &str| {
        let platform = json!({ "os": os, "architecture": architecture });
        json!({ "mediaType": MANIFEST, "digest": digest.as_str(), "size": 9, "platform": platform })
    };
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX, "annotations": { version: "1.0.2" },
        "manifests": [
            listed(&amd, "linux", "amd64"), listed(&arm, "linux", "arm64"), listed(&arm, "unknown", "unknown"),
        ],
    });
    let index = pushing.put("1", INDEX, &index).await;
    let index = ImageDigest::parse(&index).unwrap();
    let found = looked_at(&inquiry, &index).await.unwrap().unwrap();
    assert_eq!(
        found.manifests,
        [(platform("linux/amd64"), amd), (platform("linux/arm64"), arm)].into()
    );
    assert_eq!(
        found.notes.version.unwrap().to_string(),
        "1.0.2",
        "the index wins over all"
    );
    assert_eq!(found.notes.state_formats, ["1".to_owned()].into());
}

#[tokio::test]
async fn a_signature_counts_if_one_of_our_keys_has_made_it() {
    let guard = guard();
    let host = host(guard.address());
    for (name, key) in [("candidates/unsigned", None), ("candidates/signed", Some("p256"))] {
        let (place, digest) = (place(&host, name), push_signed(name, key).await);
        let signature = async |keys| {
            let inquiry = inquiry(&guard, &place, keys);
            looked_at(&inquiry, &digest).await.unwrap().unwrap().signature
        };
        assert_eq!(signature(None).await, Signature::NotAsked);
        let (ours, others) = if key.is_some() {
            let why = "it is not signed by a key that we know, or it was changed after it was signed";
            (Signature::Good, Signature::Bad(why.to_owned()))
        } else {
            let none = Signature::Bad("no signature lies beside it in the registry".to_owned());
            (none.clone(), none)
        };
        assert_eq!(signature(keys("p256")).await, ours, "{name}");
        assert_eq!(signature(keys("ed25519")).await, others, "{name}");
    }
}

#[tokio::test]
async fn a_signature_that_cannot_be_fetched_is_no_bad_one() {
    let guard = guard();
    let name = "candidates/cut-off";
    let (place, digest) = (
        place(&host(guard.address()), name),
        push_signed(name, Some("p256")).await,
    );
    let inquiry = inquiry(&guard, &place, keys("p256"));
    let under_tag = format!("{}.sig", digest.as_str().replace(':', "-"));
    let trouble = async |path: &'static str, harm| {
        guard.impose(vec![Aim::at(path, harm)]);
        let looked_at = looked_at(&inquiry, &digest).await;
        guard.impose(Vec::new());
        looked_at.map(|found| found.unwrap().signature)
    };
    let slow = trouble(".sig", Harm::Status(429, Some("120"))).await.unwrap_err();
    assert!(slow.text.contains(&under_tag), "{slow:?}");
    assert!(slow.pause.is_some_and(|pause| pause.as_secs() > 60), "{slow:?}");
    let gone = trouble(".sig", Harm::Status(502, None)).await.unwrap_err();
    assert_eq!(gone.pause, None, "{gone:?}");
    // Any client may have pushed the broken signature, so the other signatures still count.
    let odd = trouble(".sig", Harm::Endless).await.unwrap();
    assert_eq!(odd, Signature::Good, "the bundle counts");
    assert_eq!(
        looked_at(&inquiry, &digest).await.unwrap().unwrap().signature,
        Signature::Good
    );
}
