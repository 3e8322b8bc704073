//! Properties: every changed bit is noticed, and no input leads to a panic.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// A valid signature in one of the forms.
#[derive(Clone)]
struct Good {
    payload: Vec<u8>,
    signature: Vec<u8>,
    is_bundle: bool,
}

/// Valid signatures of all kinds in both forms, made once.
fn good() -> &'static [Good] {
    static GOOD: LazyLock<Vec<Good>> = LazyLock::new(|| {
        let of = |text: &Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
        let simple = WAYS.iter().map(|(way, _)| {
            let payload = payload(KIND, IMAGE);
            Good {
                signature: sign(way, &payload),
                payload,
                is_bundle: false,
            }
        });
        let bundles = WAYS.iter().map(|(way, _)| {
            let envelope = &good_bundle(way)["dsseEnvelope"];
            Good {
                payload: of(&envelope["payload"]),
                signature: of(&envelope["signatures"][0]["sig"]),
                is_bundle: true,
            }
        });
        simple.chain(bundles).collect()
    });
    &GOOD
}

proptest! {
    #[test]
    fn a_flipped_bit_of_payload_or_signature_is_found(which in 0..10_usize, at in any::<prop::sample::Index>(), bit in 0..8_u32, in_payload: bool) {
        let ours = keys(&["p256", "p384", "ed25519", "rsa"]);
        let Good { mut payload, mut signature, is_bundle } = good()[which].clone();
        let flipped = if in_payload { &mut payload } else { &mut signature };
        let at = at.index(flipped.len());
        for flip in [0, 1 << bit] {
            let flipped = if in_payload { &mut payload } else { &mut signature };
            flipped[at] ^= flip;
            let checked = if is_bundle {
                let mut bundle = good_bundle_shape();
                bundle["dsseEnvelope"]["payload"] = json!(STANDARD.encode(&payload));
                bundle["dsseEnvelope"]["signatures"][0]["sig"] = json!(STANDARD.encode(&signature));
                check_bundle(&ours, &bundle)
            } else {
                ours.check_simple(&payload, &STANDARD.encode(&signature), &image())
            };
            prop_assert_eq!(checked.is_ok(), flip == 0, "{:?}", checked);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "\\PC{0,60}") {
        let ours = keys(&["ed25519"]);
        prop_assert!(ours.check_simple(&bytes, &STANDARD.encode(&bytes), &image()).is_err());
        prop_assert!(ours.check_simple(&bytes, &text, &image()).is_err());
        prop_assert!(ours.check_bundle(&bytes, &image()).is_err());
        let _ = simple::listed(&bytes);
        let _ = bundle::listed(text.as_bytes());
    }
}

/// A bundle without its payload and signature.
fn good_bundle_shape() -> Value {
    json!({
        "mediaType": bundle::ARTIFACT_TYPE,
        "verificationMaterial": {"publicKey": {}},
        "dsseEnvelope": {"payload": "", "payloadType": IN_TOTO, "signatures": [{"sig": ""}]},
    })
}
