//! Sends the signatures of a pushed artifact to the two places where cosign looks for them: under a tag made of the
//! digest, and as a document that refers to the artifact.
//!
//! Signatures by other keys are kept. Must never send a signature that the registry already has from this key.

use channel_core::reference::{ImageDigest, Tag};
use hyper::body::Bytes;
use registry::Registry;
use registry::documents::{Descriptor, INDEX, MANIFEST};
use registry::error::RegistryError;
use registry::place::{ImagePlace, Reference, digest_of, tag_of};
use registry::signatures::{MOST_BYTES, simple};
use serde_json::{Value, json};
use signing::{BUNDLE, PAYLOAD, PREDICATE, SIGNATURE, Signer, SigningError};
use thiserror::Error;

use super::described;

/// The type of an empty configuration.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const EMPTY_CONFIG: &str = "{}";
/// The type of the configuration below signatures.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// Why a signature was not sent.
#[derive(Debug, Error)]
pub enum SendError {
    #[error("cannot sign {digest}")]
    Sign { digest: ImageDigest, source: SigningError },
    #[error(transparent)]
    Registry(#[from] Box<RegistryError>),
    #[error("cannot understand the signatures of {digest} that are there already")]
    Syntax {
        digest: ImageDigest,
        source: serde_json::Error,
    },
}

impl From<RegistryError> for SendError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(Box::new(error))
    }
}

/// An artifact whose blobs and manifest are in the registry, and the key that signs it.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    pub registry: &'a Registry,
    pub place: &'a ImagePlace,
    pub manifest: &'a Bytes,
    pub signer: &'a Signer,
}

impl Signed<'_> {
    /// Sends both forms of the signature: simple signing and a bundle.
    pub async fn send(&self) -> Result<(), SendError> {
        self.send_simple().await?;
        self.send_bundle().await
    }

    fn digest(&self) -> ImageDigest {
        digest_of(self.manifest)
    }

    fn failed(&self) -> impl Fn(SigningError) -> SendError {
        let digest = self.digest();
        move |source| SendError::Sign {
            digest: digest.clone(),
            source,
        }
    }

    /// A document at the registry; `None` if it does not exist.
    async fn document(&self, reference: &Reference) -> Result<Option<Value>, SendError> {
        let document = match self.registry.manifest(self.place, reference).await {
            Ok(document) => document,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let read = serde_json::from_slice(&document.bytes);
        read.map(Some).map_err(|source| SendError::Syntax {
            digest: self.digest(),
            source,
        })
    }

    /// Simple signing: one manifest under a tag, with a layer for each signature.
    async fn send_simple(&self) -> Result<(), SendError> {
        let digest = self.digest();
        let payload: Bytes = signing::payload(&self.place.to_string(), digest.as_str()).into();
        let tag = Reference::Tag(simple::tag(&digest));
        let mut layers = match self.document(&tag).await? {
            Some(mut manifest) => manifest["layers"].take().as_array().cloned().unwrap_or_default(),
            None => Vec::new(),
        };
        let mut layer = described(PAYLOAD, &payload);
        let is_ours = |there: &Value| {
            let signature = there["annotations"][SIGNATURE].as_str();
            let is_signed = signature.is_some_and(|signature| self.signer.has_signed(&payload, signature));
            there["digest"] == layer["digest"] && is_signed
        };
        if layers.iter().any(is_ours) {
            return Ok(());
        }
        let signature = self.signer.sign(&payload).map_err(self.failed())?;
        layer["annotations"] = json!({ SIGNATURE: signature });
        layers.push(layer);
        let diffs: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        // Registries compare the number of layers here with the manifest's.
        let config = json!({
            "architecture": "", "os": "", "config": {}, "rootfs": { "type": "layers", "diff_ids": diffs },
        });
        let config: Bytes = config.to_string().into();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": described(CONFIG, &config), "layers": layers,
        });
        self.registry.send_blob(self.place, payload).await?;
        self.registry.send_blob(self.place, config).await?;
        let manifest = manifest.to_string().into();
        self.registry.send_manifest(self.place, &tag, manifest).await?;
        Ok(())
    }

    /// A bundle, in a manifest that refers to the artifact.
    async fn send_bundle(&self) -> Result<(), SendError> {
        let digest = self.digest();
        let referring = self.registry.referrers(self.place, &digest).await?;
        for found in referring.iter().filter(|found| is_bundle(found)) {
            if self.is_ours(found).await? {
                return Ok(());
            }
        }
        let bundle: Bytes = self.signer.bundle(digest.as_str()).map_err(self.failed())?.into();
        let config = Bytes::from_static(EMPTY_CONFIG.as_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "config": described(EMPTY, &config),
            "layers": [described(BUNDLE, &bundle)],
            "subject": described(MANIFEST, self.manifest),
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope",
                "dev.sigstore.bundle.predicateType": PREDICATE,
            },
        });
        self.registry.send_blob(self.place, bundle).await?;
        self.registry.send_blob(self.place, config).await?;
        let manifest: Bytes = manifest.to_string().into();
        let by_digest = Reference::Digest(digest_of(&manifest));
        self.registry
            .send_manifest(self.place, &by_digest, manifest.clone())
            .await?;
        self.refer(&digest, &manifest).await
    }

    /// Whether a document that refers to the artifact holds a bundle by this key.
    async fn is_ours(&self, found: &Descriptor) -> Result<bool, SendError> {
        let reference = Reference::Digest(found.digest.clone());
        let Some(manifest) = self.document(&reference).await? else {
            return Ok(false);
        };
        let layer = manifest["layers"][0]["digest"].as_str().unwrap_or_default();
        let Ok(layer) = ImageDigest::parse(layer) else {
            return Ok(false);
        };
        // A document of another tool may be larger than any bundle.
        let bundle = self.registry.blob(self.place, &layer, MOST_BYTES).await;
        Ok(bundle.is_ok_and(|bundle| self.signer.has_bundled(&bundle, self.digest().as_str())))
    }

    /// Lists a referring manifest under the referrers tag, for registries that keep no list of referrers themselves.
    async fn refer(&self, digest: &ImageDigest, manifest: &Bytes) -> Result<(), SendError> {
        let is_listed = |found: &Descriptor| found.digest == digest_of(manifest);
        if self.registry.referrers(self.place, digest).await?.iter().any(is_listed) {
            return Ok(());
        }
        let tag: Tag = tag_of(digest);
        let tag = Reference::Tag(tag);
        let mut index = self.document(&tag).await?.unwrap_or_else(|| json!({}));
        let mut listed = index["manifests"].take().as_array().cloned().unwrap_or_default();
        let mut ours = described(MANIFEST, manifest);
        ours["artifactType"] = json!(BUNDLE);
        listed.push(ours);
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": listed });
        let index = index.to_string().into();
        self.registry.send_index(self.place, &tag, index).await?;
        Ok(())
    }
}

fn is_bundle(found: &Descriptor) -> bool {
    found.artifact_type.as_deref() == Some(BUNDLE)
}
