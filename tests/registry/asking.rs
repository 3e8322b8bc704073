//! The tags, manifests, blobs and referrers that a registry returns.

use channel_core::reference::{ImageDigest, Tag};
use registry::documents::{Content, Kind};
use registry::place::{Reference, digest_of, tag_of};
use serde_json::json;
use testbed::registry::guard::{Aim, Trouble};

use super::stage::{access, client, guard, host, place, push, repository, tag, told};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[tokio::test]
async fn a_tag_leads_to_what_was_pushed_last() {
    let guard = guard();
    let (registry, place) = (client(access(&guard)), place(&host(guard.address()), "asking/tag"));
    let one = push("asking/tag", "1", "one").await;
    let found = registry.head(&place, &tag("1")).await.unwrap();
    assert_eq!((found.digest, found.kind), (one.clone(), Some(Kind::Manifest)));
    assert_eq!(
        told(&guard.seen()),
        ["HEAD asking/tag/manifests/1"],
        "one question is enough"
    );
    let two = push("asking/tag", "1", "two").await;
    assert_ne!(one, two);
    assert_eq!(registry.head(&place, &tag("1")).await.unwrap().digest, two);
    let old = registry
        .manifest(&place, &Reference::Digest(one.clone()))
        .await
        .unwrap();
    assert_eq!(old.digest, one);
    let Content::Manifest(manifest) = old.read().unwrap() else {
        unreachable!()
    };
    let config = manifest.config.unwrap();
    let blob = registry.blob(&place, &config.digest, 1 << 10).await.unwrap();
    let blob: serde_json::Value = serde_json::from_slice(&blob).unwrap();
    assert_eq!(blob["config"]["Labels"]["mark"], "one");
}

#[tokio::test]
async fn what_is_not_there_is_absent_and_nothing_else() {
    let guard = guard();
    let host = host(guard.address());
    let (registry, here) = (client(access(&guard)), place(&host, "asking/absent"));
    push("asking/absent", "1", "one").await;
    let nothing = digest_of(b"nothing");
    let error = registry.head(&here, &tag("2")).await.unwrap_err();
    assert!(error.is_absent(), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot get tag '2' of {host}/asking/absent"));
    assert!(registry.manifest(&here, &tag("2")).await.unwrap_err().is_absent());
    let by_digest = Reference::Digest(nothing.clone());
    assert!(registry.head(&here, &by_digest).await.unwrap_err().is_absent());
    assert!(registry.blob(&here, &nothing, 9).await.unwrap_err().is_absent());
    let nowhere = place(&host, "asking/nowhere");
    assert!(registry.tags(&nowhere).await.unwrap_err().is_absent());
    assert_eq!(registry.referrers(&here, &nothing).await.unwrap(), []);
}

#[tokio::test]
async fn an_index_tells_the_manifest_of_a_platform() {
    let guard = guard();
    let (registry, place) = (client(access(&guard)), place(&host(guard.address()), "asking/index"));
    let (amd, arm) = (
        push("asking/index", "amd", "amd").await,
        push("asking/index", "arm", "arm").await,
    );
    let listed = |digest: &ImageDigest, architecture: &str| {
        json!({
            "mediaType": MANIFEST, "digest": digest.as_str(), "size": 9,
            "platform": { "os": "linux", "architecture": architecture },
        })
    };
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX,
        "manifests": [listed(&amd, "amd64"), listed(&arm, "arm64")],
        "annotations": { "org.opencontainers.image.version": "1.4.2" },
    });
    let pushed = repository("asking/index").put("1", INDEX, &index).await;
    let found = registry.head(&place, &tag("1")).await.unwrap();
    assert_eq!(
        (found.digest.as_str(), found.kind),
        (pushed.as_str(), Some(Kind::Index))
    );
    let document = registry
        .manifest(&place, &Reference::Digest(found.digest))
        .await
        .unwrap();
    let content = document.read().unwrap();
    assert_eq!(content.annotations()["org.opencontainers.image.version"], "1.4.2");
    let Content::Index(index) = content else { unreachable!() };
    let digest = |platform: &str| Some(index.for_platform(&platform.parse().unwrap())?.digest.clone());
    assert_eq!(digest("linux/amd64"), Some(amd));
    assert_eq!(digest("linux/arm64/v8"), Some(arm));
    assert_eq!(digest("linux/s390x"), None);
}

#[tokio::test]
async fn tags_come_page_by_page() {
    let guard = guard();
    let (registry, place) = (client(access(&guard)), place(&host(guard.address()), "asking/tags"));
    let wanted = ["1.0.0", "1.1.0", "1.2.0", "edge", "stable"];
    for tag in wanted {
        push("asking/tags", tag, "same").await;
    }
    let tags = registry.tags(&place).await.unwrap();
    assert_eq!(tags.iter().map(Tag::as_str).collect::<Vec<_>>(), wanted);
    assert_eq!(guard.seen().len(), 1);
    // The registry itself gives the link to the next page.
    guard.impose(vec![Aim::at("n=1000", Trouble::Instead("n=1000", "n=2"))]);
    assert_eq!(registry.tags(&place).await.unwrap(), tags);
    assert_eq!(guard.seen().len(), 3);
}

#[tokio::test]
async fn what_refers_to_an_image_is_told_by_a_tag_or_by_the_registry() {
    let guard = guard();
    let (registry, place) = (
        client(access(&guard)),
        place(&host(guard.address()), "asking/referrers"),
    );
    let (image, signature) = (
        push("asking/referrers", "1", "image").await,
        push("asking/referrers", "signature", "signature").await,
    );
    assert_eq!(registry.referrers(&place, &image).await.unwrap(), []);
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX,
        "manifests": [{
            "mediaType": MANIFEST, "digest": signature.as_str(), "size": 9, "artifactType": "application/x",
            "annotations": { "a": "b" },
        }],
    });
    let tag = tag_of(&image);
    repository("asking/referrers").put(tag.as_str(), INDEX, &index).await;
    guard.seen();
    let listed = registry.referrers(&place, &image).await.unwrap();
    assert_eq!(listed[0].digest, signature);
    assert_eq!(listed[0].artifact_type.as_deref(), Some("application/x"));
    let asked = told(&guard.seen());
    let both = [
        format!("GET asking/referrers/referrers/{image}"),
        format!("GET asking/referrers/manifests/{tag}"),
    ];
    assert_eq!(asked, both);
    // Simulates a registry with the referrers API.
    let instead = Trouble::Instead("referrers/referrers/sha256:", "referrers/manifests/sha256-");
    guard.impose(vec![Aim::at("/referrers/sha256:", instead)]);
    assert_eq!(registry.referrers(&place, &image).await.unwrap(), listed);
    assert_eq!(told(&guard.seen()), both[..1]);
}
