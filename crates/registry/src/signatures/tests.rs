use std::path::Path;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::*;

mod changed;
mod found;

const IMAGE: &str = "sha256:f3b2e6e225d637fb7321d4d741fb1fb8b85e174d320745487261a34f3ea7c8e1";
const OTHER: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
const KIND: &str = "cosign container image signature";
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The signature algorithms, and the key of each.
const WAYS: [(&str, &str); 5] = [
    ("p256", "p256"),
    ("p384", "p384"),
    ("ed25519", "ed25519"),
    ("rsa", "rsa"),
    ("rsa-pss", "rsa"),
];

fn image() -> ImageDigest {
    ImageDigest::parse(IMAGE).unwrap()
}

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/signatures/keys");
    fs_err::read_to_string(folder.join(name)).unwrap()
}

fn keys(names: &[&str]) -> Keys {
    let texts: Vec<String> = names.iter().map(|name| file(&format!("{name}.pub"))).collect();
    Keys::parse(&texts.concat()).unwrap()
}

fn sign(way: &str, message: &[u8]) -> Vec<u8> {
    let (_, key) = WAYS.iter().find(|(name, _)| *name == way).unwrap();
    let pem = file(&format!("{key}.key"));
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let der = der.secret_pkcs8_der();
    let random = SystemRandom::new();
    let ecdsa = |algorithm: &'static EcdsaSigningAlgorithm| {
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der, &random).unwrap();
        pair.sign(&random, message).unwrap().as_ref().to_vec()
    };
    let rsa = |encoding: &'static dyn RsaEncoding| {
        let pair = RsaKeyPair::from_pkcs8(der).unwrap();
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(encoding, &random, message, &mut signature).unwrap();
        signature
    };
    match way {
        "p256" => ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING),
        "p384" => ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING),
        "rsa" => rsa(&RSA_PKCS1_SHA256),
        "rsa-pss" => rsa(&RSA_PSS_SHA256),
        _ => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).unwrap();
            pair.sign(message).as_ref().to_vec()
        }
    }
}

fn payload(kind: &str, digest: &str) -> Vec<u8> {
    let identity = json!({"docker-reference": "registry.example/operator"});
    let image = json!({"docker-manifest-digest": digest});
    let critical = json!({"identity": identity, "image": image, "type": kind});
    json!({"critical": critical, "optional": null}).to_string().into_bytes()
}

fn simple(way: &str, payload: Vec<u8>) -> Simple {
    let signature = STANDARD.encode(sign(way, &payload));
    Simple { payload, signature }
}

fn check(keys: &Keys, simple: &Simple) -> Result<KeyId, Refusal> {
    keys.check_simple(&simple.payload, &simple.signature, &image())
}

fn statement(subjects: &Value) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    })
}

fn subject(digest: &str) -> Value {
    json!({"digest": {"sha256": digest.trim_start_matches("sha256:")}})
}

/// A bundle around any payload, correctly signed.
fn bundle(way: &str, kind: &str, payload: &[u8]) -> Value {
    let signed = [
        format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(),
        payload,
    ]
    .concat();
    json!({
        "mediaType": bundle::ARTIFACT_TYPE,
        "verificationMaterial": {"publicKey": {"hint": "any"}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": kind,
            "signatures": [{"sig": STANDARD.encode(sign(way, &signed))}],
        },
    })
}

fn good_bundle(way: &str) -> Value {
    bundle(way, IN_TOTO, statement(&json!([subject(IMAGE)])).to_string().as_bytes())
}

fn check_bundle(keys: &Keys, bundle: &Value) -> Result<KeyId, Refusal> {
    keys.check_bundle(bundle.to_string().as_bytes(), &image())
}

#[test]
fn what_any_kind_of_key_has_signed_counts_and_names_that_key() {
    let all = keys(&["rsa", "ed25519", "p384", "p256"]);
    for (way, key) in WAYS {
        let id = keys(&[key]).ids().next().unwrap().clone();
        assert_eq!(check(&all, &simple(way, payload(KIND, IMAGE))), Ok(id.clone()), "{way}");
        assert_eq!(check_bundle(&all, &good_bundle(way)), Ok(id), "{way}");
    }
}

#[test]
fn what_another_key_has_signed_does_not_count() {
    for (way, key) in WAYS {
        let others: Vec<&str> = ["p256", "p384", "ed25519", "rsa"]
            .into_iter()
            .filter(|other| *other != key)
            .collect();
        let others = keys(&others);
        assert_eq!(
            check(&others, &simple(way, payload(KIND, IMAGE))),
            Err(Refusal::NotByOurKeys)
        );
        assert_eq!(check_bundle(&others, &good_bundle(way)), Err(Refusal::NotByOurKeys));
    }
}

#[test]
fn a_good_signature_of_another_image_does_not_count() {
    let ours = keys(&["p256"]);
    let other = || {
        Err(Refusal::OtherImage {
            found: format!("'{OTHER}'"),
        })
    };
    assert_eq!(check(&ours, &simple("p256", payload(KIND, OTHER))), other());
    for found in ["", "sha256:", &IMAGE[..70], &IMAGE.to_uppercase(), &format!("{IMAGE} ")] {
        let refused = check(&ours, &simple("p256", payload(KIND, found)));
        assert!(matches!(refused, Err(Refusal::OtherImage { .. })), "{found}");
    }
    for subjects in [
        json!([]),
        json!([{"digest": {}}]),
        json!([subject(OTHER)]),
        json!([{"digest": {"sha512": &IMAGE[7..], "SHA256": &IMAGE[7..]}}]),
        json!([{"digest": {"sha256": IMAGE}}]),
        json!([{"digest": {"sha256": IMAGE[7..].to_uppercase()}}]),
    ] {
        let text = statement(&subjects).to_string();
        let refused = check_bundle(&ours, &bundle("p256", IN_TOTO, text.as_bytes()));
        assert!(matches!(refused, Err(Refusal::OtherImage { .. })), "{text}");
    }
    let text = statement(&json!([subject(OTHER), subject(IMAGE)])).to_string();
    assert!(check_bundle(&ours, &bundle("p256", IN_TOTO, text.as_bytes())).is_ok());
}

#[test]
fn signatures_are_under_a_tag_that_is_made_of_the_digest() {
    assert_eq!(
        simple::tag(&image()).as_str(),
        format!("{}.sig", IMAGE.replace(':', "-"))
    );
}

#[test]
fn a_payload_that_was_changed_does_not_count() {
    let ours = keys(&["p256", "rsa"]);
    let mut signed = simple("p256", payload(KIND, OTHER));
    signed.payload = payload(KIND, IMAGE);
    assert_eq!(check(&ours, &signed), Err(Refusal::NotByOurKeys));
    let mut signed = good_bundle("rsa");
    let text = statement(&json!([subject(IMAGE), subject(OTHER)])).to_string();
    signed["dsseEnvelope"]["payload"] = json!(STANDARD.encode(text));
    assert_eq!(check_bundle(&ours, &signed), Err(Refusal::NotByOurKeys));
    // The type of the payload is signed, too.
    let mut signed = bundle(
        "rsa",
        "text/plain",
        statement(&json!([subject(IMAGE)])).to_string().as_bytes(),
    );
    signed["dsseEnvelope"]["payloadType"] = json!(IN_TOTO);
    assert_eq!(check_bundle(&ours, &signed), Err(Refusal::NotByOurKeys));
}

#[test]
fn the_signature_of_something_else_does_not_count() {
    let ours = keys(&["p256"]);
    let refused = check(&ours, &simple("p256", payload("attestation", IMAGE))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the signed document is no signature of an image: its critical.type is 'attestation', not 'cosign container image signature'"
    );
    let good = statement(&json!([subject(IMAGE)]));
    let refused = check_bundle(&ours, &bundle("p256", "text/plain", good.to_string().as_bytes()));
    assert!(
        matches!(
            refused,
            Err(Refusal::OtherKind {
                field: "payloadType",
                ..
            })
        ),
        "{refused:?}"
    );
    for (field, value) in [
        ("predicateType", "https://cosign.sigstore.dev/attestation/v1"),
        ("predicateType", "https://sigstore.dev/cosign/sign/v2"),
        ("_type", "https://in-toto.io/Statement/v0.1"),
    ] {
        let mut other = good.clone();
        other[field] = json!(value);
        let refused = check_bundle(&ours, &bundle("p256", IN_TOTO, other.to_string().as_bytes())).unwrap_err();
        assert!(
            matches!(&refused, Refusal::OtherKind { field: at, .. } if *at == field),
            "{refused}"
        );
    }
    for text in ["", "{}", "null", "[1]", "not JSON", r#"{"critical":{"type":1}}"#] {
        let refused = check(&ours, &simple("p256", text.as_bytes().to_vec()));
        assert!(
            matches!(
                refused,
                Err(Refusal::Unreadable {
                    document: Document::Payload,
                    ..
                })
            ),
            "{text}"
        );
        let refused = check_bundle(&ours, &bundle("p256", IN_TOTO, text.as_bytes()));
        assert!(
            matches!(
                refused,
                Err(Refusal::Unreadable {
                    document: Document::Statement,
                    ..
                })
            ),
            "{text}"
        );
    }
}

#[test]
fn signatures_that_are_garbage_do_not_count() {
    let ours = keys(&["p256", "ed25519", "rsa", "p384"]);
    let good = simple("p256", payload(KIND, IMAGE));
    for (signature, understood) in [
        ("", true),
        ("AAAA", true),
        ("=", false),
        ("ä", false),
        (&good.signature[1..], false),
        (&format!("{}\n", good.signature), false),
    ] {
        let refused = ours.check_simple(&good.payload, signature, &image()).unwrap_err();
        assert_eq!(refused == Refusal::NotByOurKeys, understood, "{signature}: {refused}");
        let mut bundle = good_bundle("ed25519");
        bundle["dsseEnvelope"]["signatures"][0]["sig"] = json!(signature);
        let refused = check_bundle(&ours, &bundle).unwrap_err();
        assert_eq!(refused == Refusal::NotByOurKeys, understood, "{signature}: {refused}");
    }
    let mut bundle = good_bundle("ed25519");
    bundle["dsseEnvelope"]["payload"] = json!("no base64");
    let refused = check_bundle(&ours, &bundle);
    assert!(matches!(
        refused,
        Err(Refusal::Unreadable {
            document: Document::Statement,
            ..
        })
    ));
}

#[test]
fn what_is_too_large_is_not_even_looked_at() {
    let ours = keys(&["p256"]);
    let large = "x".repeat(MOST_BYTES + 1);
    for (refused, document, most) in [
        (
            check(&ours, &simple("p256", large.clone().into_bytes())),
            Document::Payload,
            MOST_BYTES,
        ),
        (
            ours.check_simple(b"{}", &"A".repeat(1369), &image()),
            Document::Signature,
            1368,
        ),
        (
            ours.check_bundle(large.as_bytes(), &image()),
            Document::Bundle,
            MOST_BYTES,
        ),
    ] {
        let size = if document == Document::Signature {
            1369
        } else {
            MOST_BYTES + 1
        };
        assert_eq!(refused, Err(Refusal::TooLarge { document, size, most }));
    }
    let manifest = vec![b' '; MOST_OF_MANIFEST + 1];
    assert!(matches!(simple::listed(&manifest), Err(Refusal::TooLarge { .. })));
    assert!(matches!(bundle::listed(&manifest), Err(Refusal::TooLarge { .. })));
    let deep = "[".repeat(MOST_BYTES);
    let refused = ours.check_bundle(deep.as_bytes(), &image());
    assert!(matches!(refused, Err(Refusal::Unreadable { .. })));
}

#[test]
fn what_strangers_wrote_is_cut_and_escaped() {
    let ours = keys(&["p256"]);
    let mut bundle = good_bundle("p256");
    bundle["mediaType"] = json!(format!("\u{1b}[2J{}", "y".repeat(5000)));
    let text = check_bundle(&ours, &bundle).unwrap_err().to_string();
    assert!(
        text.starts_with("the bundle is of the kind '\\u{1b}[2Jyyy") && text.len() < 300,
        "{text}"
    );
    bundle["verificationMaterial"] = json!(format!("\u{1b}[2J{}", "y".repeat(5000)));
    let text = check_bundle(&ours, &bundle).unwrap_err().to_string();
    assert!(!text.contains('\u{1b}') && text.len() < 300, "{text}");
}
