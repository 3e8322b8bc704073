//! Signatures made by the real cosign with our test keys. The README beside the recordings tells how they were made.

use fs_err as fs;
use image::layer::sha256;
use registry::signatures::bundle;
use registry::signatures::simple;
use registry::signatures::{Evidence, Refusal, Simple, Verdict};

use crate::{folder, id, keys, parsed};

fn recorded(name: &str) -> Vec<u8> {
    fs::read(folder().join("recorded").join(name)).unwrap()
}

fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

/// The reference to the signed image.
fn image() -> String {
    digest_of(&recorded("image.json"))
}

/// The recorded payloads, each with its signature from the manifest.
fn payloads(manifest: &str, payloads: &[&str]) -> Vec<Simple> {
    let listed = simple::listed(&recorded(manifest)).unwrap();
    assert_eq!(listed.len(), payloads.len(), "{manifest}");
    let pairs = listed.into_iter().zip(payloads).map(|(listed, file)| {
        let payload = recorded(file);
        assert_eq!(
            (digest_of(&payload), payload.len() as u64),
            (listed.payload.digest, listed.payload.size)
        );
        let signature = listed.signature;
        Simple { payload, signature }
    });
    pairs.collect()
}

fn payload_of(key: &str) -> Evidence {
    let simple = payloads(
        &format!("{key}.simple.manifest.json"),
        &[&format!("{key}.simple.payload.json")],
    );
    Evidence {
        simple,
        ..Evidence::default()
    }
}

fn bundle_of(key: &str) -> Evidence {
    let bundle = recorded(&format!("{key}.bundle.json"));
    let listed = bundle::listed(&recorded(&format!("{key}.bundle.manifest.json")))
        .unwrap()
        .unwrap();
    assert_eq!((digest_of(&bundle), bundle.len() as u64), (listed.digest, listed.size));
    Evidence {
        bundles: vec![bundle],
        ..Evidence::default()
    }
}

#[test]
fn what_cosign_has_signed_counts_in_both_forms() {
    let ours = keys(&["ed25519", "rsa", "p384", "p256"]);
    for key in ["p256", "p384", "rsa"] {
        for evidence in [payload_of(key), bundle_of(key)] {
            assert_eq!(
                ours.judge(&parsed(&image()), &evidence),
                Verdict::Verified { key: id(key) },
                "{key}"
            );
        }
    }
}

#[test]
fn it_counts_for_that_image_and_that_key_alone() {
    let (other, manifest) = (keys(&["ed25519"]), digest_of(&recorded("p256.bundle.manifest.json")));
    for key in ["p256", "p384", "rsa"] {
        for evidence in [payload_of(key), bundle_of(key)] {
            let why = Refusal::NotByOurKeys;
            assert_eq!(
                other.judge(&parsed(&image()), &evidence),
                Verdict::Refused { why },
                "{key}"
            );
            let judged = keys(&[key]).judge(&parsed(&manifest), &evidence);
            let Verdict::Refused {
                why: Refusal::OtherImage { found },
            } = judged
            else {
                unreachable!("{key}: {judged:?}")
            };
            assert!(found.contains(image().trim_start_matches("sha256:")), "{found}");
        }
    }
}

/// With Ed25519 keys cosign 3 signs a hash of the message (Ed25519ph). Its own `verify --key` refuses that.
#[test]
fn the_hashed_form_of_ed25519_does_not_count() {
    for evidence in [payload_of("ed25519"), bundle_of("ed25519")] {
        let why = Refusal::NotByOurKeys;
        assert_eq!(
            keys(&["ed25519"]).judge(&parsed(&image()), &evidence),
            Verdict::Refused { why }
        );
    }
}

#[test]
fn of_several_signatures_in_one_manifest_ours_is_found() {
    let files = [
        "several.simple.payload1.json",
        "several.simple.payload2.json",
        "several.simple.payload3.json",
    ];
    let simple = payloads("several.simple.manifest.json", &files);
    let evidence = Evidence {
        simple,
        ..Evidence::default()
    };
    for key in ["p256", "p384", "rsa"] {
        let judged = keys(&["ed25519", key]).judge(&parsed(&image()), &evidence);
        assert_eq!(judged, Verdict::Verified { key: id(key) });
    }
}

#[test]
fn what_cosign_made_for_another_purpose_does_not_count() {
    let ours = keys(&["p256"]);
    // Cosign's own `verify --key` accepts this attestation as a signature.
    let attested = ours
        .check_bundle(&recorded("attested.bundle.json"), &parsed(&image()))
        .unwrap_err();
    assert!(matches!(attested, Refusal::OtherKind { .. }), "{attested}");
    let file = ours.check_bundle(&recorded("file.bundle.json"), &parsed(&image()));
    assert_eq!(file, Err(Refusal::OfFile));
}
