//! Bundles: manifests that refer to the image, each with one envelope (DSSE) around a statement (in-toto) about it.
//!
//! A statement of another kind must never count as a signature: the same key also signs attestations, which approve
//! nothing. cosign's own `verify` is less strict.

use std::collections::BTreeMap;

use channel_core::reference::ImageDigest;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::keys::{KeyId, Keys};
use super::refusal::{Document, Refusal};
use super::simple::MOST_OF_SIGNATURE;
use super::{Blob, MOST_BYTES, Manifest, decoded, digits, parsed};

/// The media type of bundles, and of the manifests that refer to them.
pub const ARTIFACT_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The older form of the media type.
const OLD_SPELLING: &str = "application/vnd.dev.sigstore.bundle+json;version=0.3";
/// The prefix of the media types of all versions.
const FAMILY: &str = "application/vnd.dev.sigstore.bundle";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The bundle in a manifest that refers to the image; none for other manifests.
pub fn listed(manifest: &[u8]) -> Result<Option<Blob>, Refusal> {
    let layers = Manifest::read(manifest)?.layers;
    Ok(match layers.as_slice() {
        [layer] if layer.media_type.starts_with(FAMILY) => Some(layer.blob()),
        _ => None,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Option<Envelope>,
    message_signature: Option<IgnoredAny>,
}

/// The verification material. Log entries and time stamps are ignored: they are for certificates, which expire, while a
/// key counts until the admin removes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    /// A hint about the key. It is ignored, and all keys are tried.
    public_key: Option<IgnoredAny>,
    certificate: Option<IgnoredAny>,
    #[serde(rename = "x509CertificateChain")]
    chain: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: BTreeMap<String, String>,
}

impl Keys {
    /// The key that has signed this bundle for the image with this digest.
    pub fn check_bundle(&self, json: &[u8], digest: &ImageDigest) -> Result<KeyId, Refusal> {
        let digits = digits(digest);
        let envelope = envelope(parsed(Document::Bundle, json, MOST_BYTES)?)?;
        let [signature] = envelope.signatures.as_slice() else {
            return Err(Refusal::NotOne(envelope.signatures.len()));
        };
        let signature = decoded(Document::Signature, &signature.sig, MOST_OF_SIGNATURE)?;
        let payload = decoded(Document::Statement, &envelope.payload, MOST_BYTES)?;
        let key = self.signer(&encoding(&envelope.payload_type, &payload), &signature)?;
        Refusal::unless("payloadType", &envelope.payload_type, PAYLOAD_TYPE)?;
        let statement: Statement = parsed(Document::Statement, &payload, MOST_BYTES)?;
        Refusal::unless("_type", &statement.kind, STATEMENT)?;
        Refusal::unless("predicateType", &statement.predicate_type, PREDICATE)?;
        let subjects = statement.subject.iter();
        let subjects: Vec<&str> = subjects
            .filter_map(|subject| subject.digest.get("sha256").map(String::as_str))
            .collect();
        if !subjects.contains(&digits) {
            return Err(Refusal::other_image(subjects));
        }
        Ok(key)
    }
}

/// The envelope of a bundle, if the bundle is of a supported form.
fn envelope(bundle: Bundle) -> Result<Envelope, Refusal> {
    let Bundle {
        media_type,
        verification_material: material,
        dsse_envelope: envelope,
        message_signature: message,
    } = bundle;
    if ![ARTIFACT_TYPE, OLD_SPELLING].contains(&media_type.as_str()) {
        return Err(Refusal::other_bundle(&media_type));
    }
    // As in cosign, a certificate does not count where a key is demanded.
    if material.certificate.is_some() || material.chain.is_some() {
        return Err(Refusal::Certificate);
    }
    match (envelope, message, material.public_key) {
        (Some(envelope), None, Some(_)) => Ok(envelope),
        (_, Some(_), _) => Err(Refusal::OfFile),
        (None, None, _) => Err(Refusal::unreadable(Document::Bundle, &"it has no dsseEnvelope")),
        (_, None, None) => Err(Refusal::unreadable(
            Document::Bundle,
            &"it has no verificationMaterial.publicKey",
        )),
    }
}

/// The bytes of an envelope that are signed: the payload and its type, encoded so that neither can be taken for the
/// other.
fn encoding(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}
