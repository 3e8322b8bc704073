//! Pushes a module's directory to a registry as our own artifact.
//!
//! The tag is set last. The same files make the same artifact with the same digest. Must never push a directory that
//! could not be pulled again.

use std::path::Path;

use channel_core::reference::ImageDigest;
use hyper::body::Bytes;
use registry::Registry;
use registry::documents::MANIFEST;
use registry::error::RegistryError;
use registry::place::{ImagePlace, Reference, digest_of};
use serde_json::json;
use signing::Signer;
use thiserror::Error;

use super::pack::{self, PackError};
use super::signatures::{SendError, Signed};
use super::{LAYER, MODULE, described};

/// Why a module was not pushed.
#[derive(Debug, Error)]
pub enum PushError {
    #[error("cannot pack {dir}")]
    Pack { dir: String, source: PackError },
    #[error(transparent)]
    Registry(#[from] Box<RegistryError>),
    #[error(transparent)]
    Signature(#[from] SendError),
}

impl From<RegistryError> for PushError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(Box::new(error))
    }
}

/// The artifact of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The manifest, whose digest names the artifact.
    pub manifest: Bytes,
    blobs: [Bytes; 2],
}

impl Artifact {
    /// Packs a module's directory. Reads files, so it must not run on a thread of the event loop.
    pub fn of(dir: &Path, name: &str, version: Option<&str>) -> Result<Self, PushError> {
        let layer: Bytes = pack::pack(dir)
            .map_err(|source| PushError::Pack {
                dir: dir.display().to_string(),
                source,
            })?
            .into();
        let config: Bytes = json!({ "name": name, "version": version }).to_string().into();
        let mut annotations = json!({ "org.opencontainers.image.title": name });
        if let Some(version) = version {
            annotations["org.opencontainers.image.version"] = json!(version);
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": MODULE,
            "config": described(MODULE, &config),
            "layers": [described(LAYER, &layer)],
            "annotations": annotations,
        });
        Ok(Self {
            manifest: manifest.to_string().into(),
            blobs: [config, layer],
        })
    }

    /// The digest that names the artifact.
    pub fn digest(&self) -> ImageDigest {
        digest_of(&self.manifest)
    }
}

/// Pushes an artifact under this tag. If there is a key, the signature is sent first, so that a reader of the tag finds
/// it.
pub async fn push(
    registry: &Registry,
    place: &ImagePlace,
    tag: &Reference,
    artifact: &Artifact,
    signer: Option<&Signer>,
) -> Result<(), PushError> {
    for blob in &artifact.blobs {
        registry.send_blob(place, blob.clone()).await?;
    }
    let manifest = &artifact.manifest;
    if let Some(signer) = signer {
        let by_digest = Reference::Digest(artifact.digest());
        registry.send_manifest(place, &by_digest, manifest.clone()).await?;
        let signed = Signed {
            registry,
            place,
            manifest,
            signer,
        };
        signed.send().await?;
    }
    registry.send_manifest(place, tag, manifest.clone()).await?;
    Ok(())
}
