//! Pushes the signatures of an image to the two places where cosign looks for them: under a tag made of the digest, and
//! as referrers.
//!
//! Signatures by other keys are kept. An image that already has our signature is not signed again, however often it is
//! pushed.

use oci_client::Reference;
use oci_client::client::Client;
use oci_client::errors::{OciDistributionError, OciErrorCode};
use serde_json::{Value, json};

use super::{PushError, Target, by_digest, raw};
use crate::layer::sha256;
use crate::layout::{CONFIG, Descriptor, EMPTY, MANIFEST, Manifest, descriptor};
use signing::{BUNDLE, PAYLOAD, PREDICATE, SIGNATURE, Signer, SigningError};

/// Our own signature documents are smaller; a larger one is not read.
const MOST_BYTES: i64 = 1 << 20;

/// Sends the signature in each of the two forms that the registry lacks. Returns the manifests that refer to the image.
/// The referrers tag, which some registries need, must list them.
pub(super) async fn send(
    client: &Client,
    signer: &Signer,
    image: &Descriptor,
    target: &Target,
) -> Result<Vec<Descriptor>, PushError> {
    under_tag(client, signer, image, target).await?;
    let referring = referring(client, signer, image, target).await?;
    Ok(referring.into_iter().collect())
}

/// Simple signing: one manifest, with a layer for each signature.
async fn under_tag(client: &Client, signer: &Signer, image: &Descriptor, target: &Target) -> Result<(), PushError> {
    let reference = &target.reference;
    let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
    let payload = signing::payload(&format!("{registry}/{repository}"), &image.digest);
    let signed = descriptor(PAYLOAD, &sha256(&payload), payload.len() as u64);
    let tag = format!("{}.sig", image.digest.replace(':', "-"));
    let place = Reference::with_tag(registry, repository, tag);

    let mut layers = match client.pull_manifest_raw(&place, &target.auth, &[MANIFEST]).await {
        Ok((bytes, _)) => layers_of(&bytes)?,
        Err(error) if is_missing(&error) => Vec::new(),
        Err(source) => {
            let digest = image.digest.clone();
            return Err(PushError::Signatures { digest, source });
        }
    };
    let is_ours = |layer: &Value| {
        let signature = layer["annotations"][SIGNATURE].as_str();
        layer["digest"] == signed.digest && signature.is_some_and(|signature| signer.has_signed(&payload, signature))
    };
    if layers.iter().any(is_ours) {
        return Ok(());
    }
    let signature = signer.sign(&payload).map_err(|source| cannot_sign(image, source))?;
    let mut layer = json!(signed);
    layer["annotations"] = json!({ SIGNATURE: signature });
    layers.push(layer);
    blob(client, payload, &signed, reference).await?;
    let config = config_of(&layers).to_string().into_bytes();
    let configured = descriptor(CONFIG, &sha256(&config), config.len() as u64);
    blob(client, config, &configured, reference).await?;
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": configured, "layers": layers });
    raw(
        client,
        manifest.to_string().into_bytes(),
        MANIFEST,
        &image.digest,
        &place,
    )
    .await
}

/// Pushes a signature bundle, unless there is one already.
async fn referring(
    client: &Client,
    signer: &Signer,
    image: &Descriptor,
    target: &Target,
) -> Result<Option<Descriptor>, PushError> {
    let to = &target.reference;
    if is_bundled(client, signer, image, target).await? {
        return Ok(None);
    }
    let bundle = signer
        .bundle(&image.digest)
        .map_err(|source| cannot_sign(image, source))?;
    let bundled = descriptor(BUNDLE, &sha256(&bundle), bundle.len() as u64);
    blob(client, bundle, &bundled, to).await?;
    let nothing = descriptor(EMPTY, &sha256(b"{}"), 2);
    blob(client, b"{}".to_vec(), &nothing, to).await?;
    let told = [
        ("dev.sigstore.bundle.content", "dsse-envelope"),
        ("dev.sigstore.bundle.predicateType", PREDICATE),
    ];
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        artifact_type: Some(BUNDLE.to_owned()),
        config: nothing,
        layers: vec![bundled],
        subject: Some(Descriptor {
            platform: None,
            ..image.clone()
        }),
        annotations: told.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    };
    let bytes = json!(manifest).to_string().into_bytes();
    let sent = Descriptor {
        artifact_type: Some(BUNDLE.to_owned()),
        ..descriptor(MANIFEST, &sha256(&bytes), bytes.len() as u64)
    };
    raw(client, bytes, MANIFEST, &sent.digest, &by_digest(to, &sent.digest)).await?;
    Ok(Some(sent))
}

async fn is_bundled(client: &Client, signer: &Signer, image: &Descriptor, target: &Target) -> Result<bool, PushError> {
    let to = &target.reference;
    let failed = |source| PushError::Signatures {
        digest: image.digest.clone(),
        source,
    };
    let found = client.pull_referrers(&by_digest(to, &image.digest), Some(BUNDLE)).await;
    let found = found.map_err(failed)?.manifests;
    for bundle in found
        .iter()
        .filter(|found| found.artifact_type.as_deref() == Some(BUNDLE))
    {
        let place = by_digest(to, &bundle.digest);
        let manifest = client.pull_manifest_raw(&place, &target.auth, &[MANIFEST]).await;
        let (manifest, _) = manifest.map_err(failed)?;
        for layer in layers_of(&manifest)? {
            let size = layer["size"].as_i64().filter(|size| *size <= MOST_BYTES);
            let (Some(digest), Some(_)) = (layer["digest"].as_str(), size) else {
                continue;
            };
            let mut bytes = Vec::new();
            client.pull_blob(to, digest, &mut bytes).await.map_err(failed)?;
            if signer.has_bundled(&bytes, &image.digest) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn blob(client: &Client, bytes: Vec<u8>, of: &Descriptor, to: &Reference) -> Result<(), PushError> {
    let failed = |source| PushError::Push {
        digest: of.digest.clone(),
        source,
    };
    if !client.blob_exists(to, &of.digest).await.map_err(failed)? {
        client.push_blob(to, bytes, &of.digest).await.map_err(failed)?;
    }
    Ok(())
}

fn layers_of(manifest: &[u8]) -> Result<Vec<Value>, PushError> {
    let mut manifest: Value = serde_json::from_slice(manifest).map_err(PushError::Index)?;
    let layers = manifest["layers"].take();
    Ok(layers.as_array().cloned().unwrap_or_default())
}

/// The configuration of the manifest with these signatures. Registries compare its number of layers with the
/// manifest's.
fn config_of(layers: &[Value]) -> Value {
    let layers: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
    json!({
        "architecture": "",
        "os": "",
        "config": {},
        "rootfs": { "type": "layers", "diff_ids": layers },
    })
}

/// Whether the registry says that the content does not exist. Other errors, such as a refused access, do not count.
fn is_missing(error: &OciDistributionError) -> bool {
    let unknown = [
        OciErrorCode::ManifestUnknown,
        OciErrorCode::NotFound,
        OciErrorCode::NameUnknown,
    ];
    match error {
        OciDistributionError::ImageManifestNotFoundError(_) | OciDistributionError::ServerError { code: 404, .. } => {
            true
        }
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| unknown.contains(&error.code))
        }
        _ => false,
    }
}

fn cannot_sign(image: &Descriptor, source: SigningError) -> PushError {
    PushError::Sign {
        digest: image.digest.clone(),
        source,
    }
}
