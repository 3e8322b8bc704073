use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

const P256: &str = include_str!("../../../../../tests/signatures/keys/p256.pub");
const P384: &str = include_str!("../../../../../tests/signatures/keys/p384.pub");
const ED25519_KEY: &str = include_str!("../../../../../tests/signatures/keys/ed25519.pub");
const RSA: &str = include_str!("../../../../../tests/signatures/keys/rsa.pub");
const PRIVATE: &str = include_str!("../../../../../tests/signatures/keys/p256.key");

fn block(label: &str, der: &[u8]) -> String {
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        STANDARD.encode(der)
    )
}

fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).unwrap()
}

fn problem(text: &str) -> KeyProblem {
    match Keys::parse(text) {
        Err(KeysError::Unusable { number: 1, source }) => source,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn keys_of_one_text_are_all_read_in_their_order() {
    let text = format!(
        "# ours\n{P256}\nBag Attributes: none\n  {}{P384}{RSA}",
        ED25519_KEY.replace('\n', "\r\n  ")
    );
    let keys = Keys::parse(&text).unwrap();
    let kinds: Vec<Kind> = keys.0.iter().map(|key| key.kind).collect();
    assert_eq!(kinds, [Kind::EcdsaP256, Kind::Ed25519, Kind::EcdsaP384, Kind::Rsa]);
    let single = Keys::parse(P384).unwrap();
    assert_eq!(keys.ids().nth(2), single.ids().next());
    // The output of `openssl pkey -pubin -outform der | sha256sum`.
    let id = keys.ids().next().unwrap().to_string();
    assert_eq!(
        id,
        "sha256:e1c5581ec402a5559af39d6f1ca62143e5f54be03c660df7daca41abd1931f7b"
    );
}

#[test]
fn a_text_without_a_key_is_refused() {
    for text in ["", "\n\n", "# a comment", &STANDARD.encode(der(P256))] {
        assert_eq!(Keys::parse(text), Err(KeysError::NoKey), "{text}");
    }
    assert_eq!(Keys::parse(&P256.repeat(17)), Err(KeysError::TooMany { found: 17 }));
    assert!(Keys::parse(&P256.repeat(16)).is_ok());
}

#[test]
fn the_key_that_cannot_be_used_is_named_by_its_number() {
    let error = Keys::parse(&format!("{P256}{RSA}{PRIVATE}{P384}")).unwrap_err();
    let source = KeyProblem::Private;
    assert_eq!(error, KeysError::Unusable { number: 3, source });
    assert_eq!(error.to_string(), "cannot use key 3 of the text");
}

#[test]
fn a_private_key_is_refused_and_never_shown() {
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY"] {
        let text = block(label, b"seven secrets");
        assert_eq!(problem(&text), KeyProblem::Private);
        assert!(!format!("{:?}", Keys::parse(&text)).contains(&STANDARD.encode("seven")));
    }
}

#[test]
fn blocks_that_are_no_public_key_are_refused() {
    let key = der(P256);
    let longer = [key.as_slice(), &[0]].concat();
    let no_end = || KeyProblem::from(BrokenPem::NoEnd("PUBLIC KEY".to_owned()));
    for (text, wanted) in [
        (block("CERTIFICATE", &key), KeyProblem::Other("CERTIFICATE".to_owned())),
        (
            block("RSA PUBLIC KEY", &key),
            KeyProblem::Other("RSA PUBLIC KEY".to_owned()),
        ),
        (block("PUBLIC KEY", b""), KeyProblem::Content),
        (block("PUBLIC KEY", b"key"), KeyProblem::Content),
        (block("PUBLIC KEY", &longer), KeyProblem::Content),
        (block("PUBLIC KEY", &key[..key.len() - 1]), KeyProblem::Content),
        (P256.replace("MF", "M-"), BrokenPem::Base64.into()),
        (P256.replace("-----END", "----END"), no_end()),
        (P256.replace("-----END PUBLIC KEY-----", ""), no_end()),
        // A truncated block does not swallow the next one.
        (P256.replace("-----END PUBLIC KEY-----", P384), no_end()),
        (
            P256.replace("-----END PUBLIC", "-----END PRIVATE"),
            BrokenPem::Dashes(4).into(),
        ),
        (P256.replace("KEY-----", "KEY----"), BrokenPem::Dashes(1).into()),
    ] {
        assert_eq!(problem(&text), wanted, "{text}");
    }
}

#[test]
fn keys_that_cannot_be_checked_say_why() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/signatures/keys/unusable");
    for (file, why) in [
        (
            "rsa-1024.pub",
            "it is an RSA key of 1024 bits; from 2048 to 8192 can be checked",
        ),
        (
            "p521.pub",
            "it is for ECDSA on the curve 1.3.132.0.35; P-256 and P-384 can be checked",
        ),
        (
            "p256-explicit.pub",
            "it is for ECDSA on the curve that is spelled out in the key; P-256 and P-384 can be checked",
        ),
        (
            "p256-compressed.pub",
            "it is not as long as such a key is; a point of a curve must be written uncompressed",
        ),
        (
            "x25519.pub",
            "it is for the algorithm 1.3.101.110; ECDSA on P-256 or P-384, Ed25519 and RSA can be checked",
        ),
        (
            "certificate.pem",
            "it is a 'CERTIFICATE', not a 'PUBLIC KEY'; openssl pkey -pubin and openssl x509 -pubkey write one",
        ),
    ] {
        let text = fs_err::read_to_string(folder.join(file)).unwrap();
        assert_eq!(problem(&text).to_string(), why, "{file}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in prop_oneof![
        "\\PC{0,200}",
        "(-----(BEGIN|END) (PUBLIC KEY|X)-----\n|[A-Za-z0-9+/=]{0,80}\n){0,8}",
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| block("PUBLIC KEY", &bytes)),
    ]) {
        let _ = Keys::parse(&text);
    }

    #[test]
    fn no_change_of_a_key_panics_or_makes_it_another_that_is_known(at in 0..294_usize, bit in 0..8_u32) {
        let mut key = der(RSA);
        key[at] ^= 1 << bit;
        if let Ok(keys) = Keys::parse(&block("PUBLIC KEY", &key)) {
            let known = Keys::parse(RSA).unwrap();
            prop_assert_ne!(keys.ids().next(), known.ids().next());
        }
    }
}
