//! Is an image signed by one of the keys that an admin gave us? Functions of bytes alone: another part fetches them.
//!
//! Two forms count, as cosign makes them with a key: simple signing under a tag (`simple`), and bundles that refer to
//! the image (`bundle`). Must never trust data that is not signed, a certificate, or a size that a manifest claims.

pub mod bundle;
pub mod keys;
mod refusal;
pub mod simple;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use addon_core::artifact::reference::ImageDigest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

pub use self::keys::{KeyId, Keys};
pub use self::refusal::{Document, Refusal};

/// The most bytes that a payload or a bundle may have: real ones have some hundred, or some thousand with the entry of a log.
pub const MOST_BYTES: usize = 256 << 10;
/// The most bytes of a manifest that leads to them.
pub const MOST_OF_MANIFEST: usize = 4 << 20;
/// The most signatures of one form that are looked at.
pub const MOST_SIGNATURES: usize = 100;

/// All that was found beside an image, and may be a signature of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Of the manifest under the tag that `simple::tag` names.
    pub simple: Vec<Simple>,
    /// Of the manifests that refer to the image.
    pub bundles: Vec<Vec<u8>>,
    /// Why something that was found could not even be taken apart.
    pub unread: Vec<Refusal>,
}

/// A payload of simple signing with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// The bytes that are signed.
    pub payload: Vec<u8>,
    /// In base64, from the annotation of its layer.
    pub signature: String,
}

/// A blob that has to be fetched before anything can be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// As the manifest has it; the bytes must be held against it.
    pub digest: String,
    /// How many bytes it claims to have.
    pub size: u64,
}

/// What is to be thought of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One of our keys has signed it.
    Verified {
        /// The key.
        key: KeyId,
    },
    /// There is no signature beside it.
    NotSigned,
    /// There are signatures, and none counts.
    Refused {
        /// Of all reasons the one that came nearest to a good signature.
        why: Refusal,
    },
}

impl Keys {
    /// What is to be thought of the image with this digest, by all that was found beside it. One good signature is enough,
    /// whatever lies beside it.
    pub fn judge(&self, digest: &ImageDigest, evidence: &Evidence) -> Verdict {
        let Evidence {
            simple,
            bundles,
            unread,
        } = evidence;
        let simple = simple.iter().take(MOST_SIGNATURES);
        let simple = simple.map(|found| self.check_simple(&found.payload, &found.signature, digest));
        let bundles = bundles.iter().take(MOST_SIGNATURES);
        let bundles = bundles.map(|bundle| self.check_bundle(bundle, digest));
        let mut nearest = unread.iter().max_by_key(|why| why.progress()).cloned();
        for checked in simple.chain(bundles) {
            match checked {
                Ok(key) => return Verdict::Verified { key },
                Err(why) if nearest.as_ref().is_none_or(|best| best.progress() < why.progress()) => nearest = Some(why),
                Err(_) => {}
            }
        }
        nearest.map_or(Verdict::NotSigned, |why| Verdict::Refused { why })
    }
}

/// The sixty-four digits of an image's digest.
fn digits(digest: &ImageDigest) -> &str {
    let (_, digits) = digest.as_str().split_once(':').expect("a digest has a colon");
    digits
}

/// The part of a manifest that leads to signatures.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Manifest {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        parsed(Document::Manifest, bytes, MOST_OF_MANIFEST)
    }
}

impl Layer {
    fn blob(&self) -> Blob {
        Blob {
            digest: self.digest.clone(),
            size: self.size,
        }
    }
}

/// Reads JSON of a size that can be borne.
fn parsed<T: for<'de> Deserialize<'de>>(document: Document, bytes: &[u8], most: usize) -> Result<T, Refusal> {
    within(document, bytes.len(), most)?;
    serde_json::from_slice(bytes).map_err(|error| Refusal::unreadable(document, &error))
}

/// Decodes base64 of a size that can be borne.
fn decoded(document: Document, text: &str, most: usize) -> Result<Vec<u8>, Refusal> {
    within(document, text.len(), most)?;
    let bytes = STANDARD.decode(text);
    bytes.map_err(|error| Refusal::unreadable(document, &error))
}

fn within(document: Document, size: usize, most: usize) -> Result<(), Refusal> {
    if size > most {
        return Err(Refusal::TooLarge { document, size, most });
    }
    Ok(())
}
