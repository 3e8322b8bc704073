//! Checks whether an image is signed by one of the admin's keys. All functions work on bytes, which another part
//! fetches.
//!
//! Two forms of signatures count, both made by cosign: simple signing under a tag (`simple`), and bundles that refer to
//! the image (`bundle`). Data that is not signed, a certificate, or a size in a manifest must never be trusted.

pub mod bundle;
pub mod keys;
mod refusal;
pub mod simple;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use channel_core::reference::ImageDigest;
use serde::Deserialize;

pub use self::keys::{KeyId, Keys};
pub use self::refusal::{Document, Refusal};

/// The largest payload or bundle, in bytes. A real one has some hundred bytes, or some thousand with the entry of a
/// log.
pub const MOST_BYTES: usize = 256 << 10;
/// The largest manifest that refers to payloads or bundles, in bytes.
pub const MOST_OF_MANIFEST: usize = 4 << 20;
/// The largest number of signatures in one form that are checked.
pub const MOST_SIGNATURES: usize = 100;

/// All documents that may be signatures of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The payloads in the manifest under the tag from `simple::tag`.
    pub simple: Vec<Simple>,
    /// The bundles that refer to the image.
    pub bundles: Vec<Vec<u8>>,
    /// The reasons why other documents could not be parsed.
    pub unread: Vec<Refusal>,
}

/// A payload of simple signing with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// The signed bytes.
    pub payload: Vec<u8>,
    /// The signature in base64, from the annotation of the payload's layer.
    pub signature: String,
}

/// A blob that has to be fetched for the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The digest in the manifest; the fetched bytes must be compared with it.
    pub digest: String,
    /// The size in bytes that the manifest claims.
    pub size: u64,
}

/// The result of checking the signatures of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One of the keys has signed the image.
    Verified {
        /// The key that has signed the image.
        key: KeyId,
    },
    /// The image has no signature.
    NotSigned,
    /// The image has signatures, but none counts.
    Refused {
        /// The reason of the signature that came nearest to a valid one.
        why: Refusal,
    },
}

impl Keys {
    /// Judges the image with this digest by all documents found. One good signature is enough, whatever the others are.
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

/// The 64 hexadecimal digits of an image's digest.
fn digits(digest: &ImageDigest) -> &str {
    let (_, digits) = digest.as_str().split_once(':').expect("a digest has a colon");
    digits
}

/// The fields of a manifest that refer to signatures.
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

/// Parses JSON up to a size.
fn parsed<T: for<'de> Deserialize<'de>>(document: Document, bytes: &[u8], most: usize) -> Result<T, Refusal> {
    within(document, bytes.len(), most)?;
    serde_json::from_slice(bytes).map_err(|error| Refusal::unreadable(document, &error))
}

/// Decodes base64 up to a size.
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
