//! The private key that signs an image, and the signed documents in the forms that cosign makes and checks.
//!
//! Must never print the key, nor copy it to anything except memory.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fs_err as fs;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The media type of bundles, and of the manifests that refer to them.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The media type of the payloads of simple signing.
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of a payload's layer that holds the signature.
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The predicate of our bundles: the signer vouches for the image, and states nothing else about it.
pub const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
const STATEMENT: &str = "application/vnd.in-toto+json";

/// The DER bytes before the bytes of a public key (`SubjectPublicKeyInfo`): for P-256, then for Ed25519.
const P256_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const ED25519_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

#[derive(Debug, Error)]
pub enum SigningError {
    #[error("cannot read the key that is to sign")]
    Read(#[from] io::Error),
    #[error(
        "the key in {} is encrypted: decrypt it first, as with openssl pkcs8 -in encrypted.pem -out key.pem; keys that cosign made stay encrypted, make one with openssl genpkey",
        .0.display()
    )]
    Encrypted(PathBuf),
    #[error(
        "the key in {} is not in PKCS#8 form (BEGIN PRIVATE KEY): openssl pkcs8 -topk8 -nocrypt -in old.pem -out key.pem writes it so",
        .0.display()
    )]
    NotPkcs8(PathBuf),
    #[error("there is no private key in PEM form in {}", .0.display())]
    NoKey(PathBuf),
    #[error("the key in {} is neither for ECDSA on P-256 nor for Ed25519", .0.display())]
    Kind(PathBuf),
    #[error("cannot sign: the system has no random numbers for us")]
    Random,
}

/// A private key that signs.
#[derive(Debug)]
pub struct Signer {
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    P256(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

impl Signer {
    /// Reads the key from a file: PKCS#8 in PEM form, not encrypted.
    pub fn read(file: &Path) -> Result<Self, SigningError> {
        let text = fs::read(file)?;
        let place = || file.to_owned();
        // An encrypted key is recognised by its PEM type or, in the older form, by its header `Proc-Type`.
        let lines = String::from_utf8_lossy(&text);
        let is_encrypted = |line: &str| line.starts_with("-----BEGIN ENCRYPTED ") || line.starts_with("Proc-Type:");
        if lines.lines().any(is_encrypted) {
            return Err(SigningError::Encrypted(place()));
        }
        let key = match PrivateKeyDer::from_pem_slice(&text) {
            Ok(PrivateKeyDer::Pkcs8(key)) => key,
            Ok(_) => return Err(SigningError::NotPkcs8(place())),
            Err(_) => return Err(SigningError::NoKey(place())),
        };
        let der = key.secret_pkcs8_der();
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new());
        let pair = match p256 {
            Ok(pair) => Pair::P256(Box::new(pair)),
            // The form that openssl writes: without the public key.
            Err(_) => match Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
                Ok(pair) => Pair::Ed25519(Box::new(pair)),
                Err(_) => return Err(SigningError::Kind(place())),
            },
        };
        Ok(Self { pair })
    }

    /// The identifier of the key for the operator and in logs: the SHA-256 of its public part.
    pub fn id(&self) -> String {
        let digits = Sha256::digest(self.public());
        digits
            .iter()
            .fold("sha256:".to_owned(), |id, byte| format!("{id}{byte:02x}"))
    }

    /// The public key in DER form.
    fn public(&self) -> Vec<u8> {
        match &self.pair {
            Pair::P256(pair) => [&P256_HEAD, pair.public_key().as_ref()].concat(),
            Pair::Ed25519(pair) => [&ED25519_HEAD, pair.public_key().as_ref()].concat(),
        }
    }

    /// A signature of these bytes, in base64.
    pub fn sign(&self, message: &[u8]) -> Result<String, SigningError> {
        let signature = match &self.pair {
            Pair::P256(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map_err(|_| SigningError::Random)?,
            Pair::Ed25519(pair) => pair.sign(message),
        };
        Ok(STANDARD.encode(signature))
    }

    /// Whether our key made this signature of the message. Then no other signature is needed.
    pub fn has_signed(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        let checked = match &self.pair {
            Pair::P256(pair) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, pair.public_key()).verify(message, &signature)
            }
            Pair::Ed25519(pair) => UnparsedPublicKey::new(&ED25519, pair.public_key()).verify(message, &signature),
        };
        checked.is_ok()
    }

    /// A bundle that vouches for the image with this digest, `sha256:` and 64 digits.
    pub fn bundle(&self, digest: &str) -> Result<Vec<u8>, SigningError> {
        let statement = statement(digest);
        let signature = self.sign(&envelope(&statement))?;
        let bundle = json!({
            "mediaType": BUNDLE,
            "verificationMaterial": { "publicKey": { "hint": STANDARD.encode(Sha256::digest(self.public())) } },
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement),
                "payloadType": STATEMENT,
                "signatures": [{ "sig": signature }],
            },
        });
        Ok(bundle.to_string().into_bytes())
    }

    /// Whether our key has signed this bundle for this image.
    pub fn has_bundled(&self, bundle: &[u8], digest: &str) -> bool {
        let Ok(bundle) = serde_json::from_slice::<serde_json::Value>(bundle) else {
            return false;
        };
        let statement = statement(digest);
        let envelope_of = &bundle["dsseEnvelope"];
        let signature = envelope_of["signatures"][0]["sig"].as_str();
        envelope_of["payload"] == STANDARD.encode(&statement)
            && signature.is_some_and(|signature| self.has_signed(&envelope(&statement), signature))
    }
}

/// The payload of simple signing: it states that the image with this digest in this repository is ours.
pub fn payload(repository: &str, digest: &str) -> Vec<u8> {
    let critical = json!({
        "identity": { "docker-reference": repository },
        "image": { "docker-manifest-digest": digest },
        "type": "cosign container image signature",
    });
    let payload = json!({ "critical": critical, "optional": null });
    payload.to_string().into_bytes()
}

fn statement(digest: &str) -> Vec<u8> {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "digest": { "sha256": digest.trim_start_matches("sha256:") } }],
        "predicateType": PREDICATE,
        "predicate": {},
    });
    statement.to_string().into_bytes()
}

/// The bytes over which the signature of a bundle is computed.
fn envelope(statement: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {STATEMENT} {} ", STATEMENT.len(), statement.len());
    [head.as_bytes(), statement].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/signatures/keys")
    }

    fn read(text: &str) -> Result<Signer, SigningError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Signer::read(file.path())
    }

    #[test]
    fn a_key_is_known_by_what_openssl_says_of_its_public_part() {
        for (key, id) in [
            (
                "p256",
                "sha256:e1c5581ec402a5559af39d6f1ca62143e5f54be03c660df7daca41abd1931f7b",
            ),
            (
                "ed25519",
                "sha256:b1c41412080da6dcce7a06601a7073047cc8e4aafefbffdd752054ac11a7b18a",
            ),
        ] {
            let signer = Signer::read(&keys().join(format!("{key}.key"))).unwrap();
            assert_eq!(signer.id(), id);
            let text = fs::read_to_string(keys().join(format!("{key}.pub"))).unwrap();
            let body: String = text.lines().filter(|line| !line.starts_with('-')).collect();
            assert_eq!(STANDARD.encode(signer.public()), body);
        }
    }

    #[test]
    fn what_was_signed_is_known_again_and_nothing_else() {
        let ours = Signer::read(&keys().join("p256.key")).unwrap();
        let others = Signer::read(&keys().join("ed25519.key")).unwrap();
        for (signer, other) in [(&ours, &others), (&others, &ours)] {
            let signature = signer.sign(b"text").unwrap();
            assert!(signer.has_signed(b"text", &signature));
            assert!(!signer.has_signed(b"texts", &signature) && !other.has_signed(b"text", &signature));
            let bundle = signer.bundle("sha256:aa").unwrap();
            assert!(signer.has_bundled(&bundle, "sha256:aa"));
            assert!(!signer.has_bundled(&bundle, "sha256:ab") && !other.has_bundled(&bundle, "sha256:aa"));
            assert!(!signer.has_bundled(b"{}", "sha256:aa") && !signer.has_signed(b"text", "no base64"));
        }
    }

    #[test]
    fn a_key_that_cannot_sign_says_what_to_do() {
        for (text, wanted) in [
            (
                "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n",
                "is encrypted: decrypt it first",
            ),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n",
                "is encrypted: decrypt it first",
            ),
            (
                "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n",
                "is encrypted",
            ),
            (
                "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
                "is not in PKCS#8 form",
            ),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "neither for ECDSA on P-256 nor",
            ),
            (
                &fs::read_to_string(keys().join("rsa.key")).unwrap(),
                "neither for ECDSA on P-256 nor",
            ),
            (
                &fs::read_to_string(keys().join("p256.pub")).unwrap(),
                "there is no private key",
            ),
            ("", "there is no private key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        let gone = Signer::read(Path::new("nowhere/key.pem")).unwrap_err();
        assert_eq!(gone.to_string(), "cannot read the key that is to sign");
    }
}
