//! Simple signing: a manifest under a tag that is made from the image's digest, with a layer for each signature.
//!
//! The payload names the image, and its bytes are signed. Must never parse the payload before its signature was
//! checked.

use channel_core::reference::{ImageDigest, Tag};
use serde::Deserialize;

use super::keys::{KeyId, Keys};
use super::refusal::{Document, Refusal};
use super::{Blob, MOST_BYTES, MOST_SIGNATURES, Manifest, decoded, digits, parsed, within};

/// The media type of layers with payloads.
pub const MEDIA_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of a payload's layer that holds the signature, in base64.
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The type field in a payload.
const KIND: &str = "cosign container image signature";
/// The longest signature: RSA with 8192 bits, in base64.
pub(super) const MOST_OF_SIGNATURE: usize = 1368;

/// The tag of the manifest with the signatures of an image.
pub fn tag(digest: &ImageDigest) -> Tag {
    let tag = format!("sha256-{}.sig", digits(digest));
    Tag::parse(&tag).expect("letters, digits, a dash and a dot make a tag")
}

/// A payload that can be fetched, and its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub payload: Blob,
    /// The signature in base64.
    pub signature: String,
}

/// The payloads in a manifest. Other layers are left out.
pub fn listed(manifest: &[u8]) -> Result<Vec<Listed>, Refusal> {
    let layers = Manifest::read(manifest)?.layers;
    let payloads = layers.into_iter().filter(|layer| layer.media_type == MEDIA_TYPE);
    let listed: Vec<Listed> = payloads
        .map(|mut layer| Listed {
            payload: layer.blob(),
            signature: layer.annotations.remove(SIGNATURE).unwrap_or_default(),
        })
        .collect();
    if listed.len() > MOST_SIGNATURES {
        return Err(Refusal::TooMany {
            found: listed.len(),
            most: MOST_SIGNATURES,
        });
    }
    Ok(listed)
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    image: Image,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

impl Keys {
    /// The key that has signed this payload for the image with this digest. The signature is in base64.
    pub fn check_simple(&self, payload: &[u8], signature: &str, digest: &ImageDigest) -> Result<KeyId, Refusal> {
        within(Document::Payload, payload.len(), MOST_BYTES)?;
        let signature = decoded(Document::Signature, signature, MOST_OF_SIGNATURE)?;
        let key = self.signer(payload, &signature)?;
        let Critical { kind, image } = parsed::<Payload>(Document::Payload, payload, MOST_BYTES)?.critical;
        Refusal::unless("critical.type", &kind, KIND)?;
        if image.digest != digest.as_str() {
            return Err(Refusal::other_image([image.digest.as_str()]));
        }
        Ok(key)
    }
}
