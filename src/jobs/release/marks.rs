//! What is noted of a release on its newest revision.

use std::collections::BTreeSet;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::yaml;

use crate::cluster::drift::{self, ObjectKey};

/// An annotation can be 256 KiB long with all others; beyond this the objects are read from the release itself.
const ANNOTATION_LIMIT: usize = 128 << 10;

/// The checksum of a manifest, whatever white space is around it.
pub(super) fn checksum(manifest: &str) -> String {
    Digest::of_bytes(manifest.trim().as_bytes()).to_string()
}

pub(super) fn keys_of(release: &str, manifest: &str) -> Result<BTreeSet<ObjectKey>, Failure> {
    let documents = yaml::documents_v2(manifest).map_err(|error| {
        Failure::new(
            Class::Invalid,
            format!("the manifest of release '{release}' is no YAML: {error}"),
        )
    })?;
    Ok(drift::keys_of(&documents))
}

/// The objects as they are marked on the release, nothing if there are too many for that.
pub(super) fn annotation(keys: &BTreeSet<ObjectKey>) -> Option<String> {
    serde_json::to_string(keys)
        .ok()
        .filter(|text| text.len() <= ANNOTATION_LIMIT)
}
