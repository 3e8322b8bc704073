//! Pushes an image to a registry.
//!
//! Blobs that the registry has are not sent again. The tag is set last: a client that pulls meanwhile gets either the
//! old or the new image, complete with its papers and signatures. This module must never send credentials unasked, nor
//! talk without TLS to another machine.

mod signatures;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fs_err as fs;
use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{ParseError, Reference, RegistryOperation};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::layout::{Descriptor, INDEX, Layout, LayoutError};
use signing::{Signer, SigningError};

#[derive(Debug, Error)]
pub enum PushError {
    #[error("'{text}' names no image, as in registry.example/team/addon-operator:1.0")]
    Reference { text: String, source: ParseError },
    #[error("cannot read the credentials")]
    Credentials(#[source] io::Error),
    #[error("cannot understand the credentials in {}", file.display())]
    CredentialsSyntax { file: PathBuf, source: serde_json::Error },
    #[error("cannot read the image")]
    Layout(#[from] LayoutError),
    #[error("cannot read a blob of the image")]
    Blob(#[from] io::Error),
    #[error("{registry} does not let us push")]
    Login {
        registry: String,
        source: OciDistributionError,
    },
    #[error("cannot push {digest}")]
    Push {
        digest: String,
        source: OciDistributionError,
    },
    #[error("cannot tell the registry what goes with {digest}")]
    Refer {
        digest: String,
        source: OciDistributionError,
    },
    #[error("cannot understand what the registry tells of an image")]
    Index(#[source] serde_json::Error),
    #[error("cannot name the media type {0}")]
    MediaType(String),
    #[error("cannot sign {digest}")]
    Sign { digest: String, source: SigningError },
    #[error("cannot read the signatures of {digest} that are there already")]
    Signatures {
        digest: String,
        source: OciDistributionError,
    },
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The digest by which every client gets exactly this image.
    pub digest: String,
    /// The number of bytes of the image and its papers that had to be sent.
    pub sent: u64,
}

/// The address to push to, and the login.
#[derive(Clone, Debug)]
pub struct Target {
    reference: Reference,
    auth: RegistryAuth,
}

/// The file in which container engines keep logins.
#[derive(Deserialize)]
struct Logins {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
}

#[derive(Deserialize)]
struct Login {
    auth: Option<String>,
}

impl Target {
    /// `credentials` is a file in the format of container engines. Without the file, or without this registry in it,
    /// the push is anonymous.
    pub fn new(text: &str, credentials: Option<&Path>) -> Result<Self, PushError> {
        let reference = text.parse::<Reference>();
        let reference = reference.map_err(|source| PushError::Reference {
            text: text.to_owned(),
            source,
        })?;
        let auth = match credentials {
            Some(file) => login(file, reference.registry())?,
            None => RegistryAuth::Anonymous,
        };
        Ok(Self { reference, auth })
    }

    /// Plain HTTP is used only for this machine.
    fn protocol(&self) -> ClientProtocol {
        let registry = self.reference.resolve_registry();
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
            ClientProtocol::Http
        } else {
            ClientProtocol::Https
        }
    }

    /// A client for the registry. The process must have installed a TLS provider before.
    pub fn client(&self) -> Client {
        Client::new(ClientConfig {
            protocol: self.protocol(),
            ..ClientConfig::default()
        })
    }

    pub fn reference(&self) -> &Reference {
        &self.reference
    }
}

fn login(file: &Path, registry: &str) -> Result<RegistryAuth, PushError> {
    let bytes = fs::read(file).map_err(PushError::Credentials)?;
    let logins: Logins = serde_json::from_slice(&bytes).map_err(|source| PushError::CredentialsSyntax {
        file: file.to_owned(),
        source,
    })?;
    let ours = logins
        .auths
        .get(registry)
        .or_else(|| logins.auths.get(&format!("https://{registry}")));
    let secret = ours
        .and_then(|login| login.auth.as_ref())
        .and_then(|auth| STANDARD.decode(auth).ok());
    let secret = secret.and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = secret.as_deref().and_then(|text| text.split_once(':'));
    Ok(pair.map_or(RegistryAuth::Anonymous, |(user, password)| {
        RegistryAuth::Basic(user.to_owned(), password.to_owned())
    }))
}

/// Pushes the image of a layout, and signs it if there is a key.
pub async fn push(layout: &Layout, target: &Target, signer: Option<&Signer>) -> Result<Pushed, PushError> {
    let client = target.client();
    let reference = &target.reference;
    client
        .auth(reference, &target.auth, RegistryOperation::Push)
        .await
        .map_err(|source| PushError::Login {
            registry: reference.resolve_registry().to_owned(),
            source,
        })?;
    let image = layout.image()?;
    let mut sent = blobs(&client, layout, &image, reference).await?;
    // The papers come before the image, so that a visible image always has its papers.
    let mut papers = layout.papers()?;
    for paper in &papers {
        sent += blobs(&client, layout, paper, reference).await?;
        manifest(&client, layout, paper, &by_digest(reference, &paper.digest)).await?;
    }
    // The signatures come before the tag, so that a client that sees the tag finds them.
    if let Some(signer) = signer {
        papers.extend(signatures::send(&client, signer, &image, target).await?);
    }
    refer(&client, &image, &papers, reference).await?;
    manifest(&client, layout, &image, reference).await?;
    Ok(Pushed {
        digest: image.digest,
        sent,
    })
}

/// Sends the blobs that a manifest names. Returns how many bytes had to be sent.
async fn blobs(client: &Client, layout: &Layout, of: &Descriptor, to: &Reference) -> Result<u64, PushError> {
    let manifest = layout.manifest_of(of)?;
    let mut sent = 0;
    for blob in manifest.layers.iter().chain([&manifest.config]) {
        let failed = |source| PushError::Push {
            digest: blob.digest.clone(),
            source,
        };
        if client.blob_exists(to, &blob.digest).await.map_err(failed)? {
            continue;
        }
        let bytes = fs::tokio::read(layout.file(blob)).await?;
        client.push_blob(to, bytes, &blob.digest).await.map_err(failed)?;
        sent += blob.size;
    }
    Ok(sent)
}

async fn manifest(client: &Client, layout: &Layout, of: &Descriptor, to: &Reference) -> Result<(), PushError> {
    let bytes = fs::tokio::read(layout.file(of)).await?;
    raw(client, bytes, &of.media_type, &of.digest, to).await
}

async fn raw(client: &Client, bytes: Vec<u8>, kind: &str, digest: &str, to: &Reference) -> Result<(), PushError> {
    let media_type = kind.parse().map_err(|_| PushError::MediaType(kind.to_owned()))?;
    let pushed = client.push_manifest_raw(to, bytes, media_type).await;
    pushed.map(drop).map_err(|source| PushError::Push {
        digest: digest.to_owned(),
        source,
    })
}

/// Some registries do not support the referrers API. For them the specification defines a tag that lists the manifests
/// that refer to an image.
async fn refer(
    client: &Client,
    image: &Descriptor,
    papers: &[Descriptor],
    reference: &Reference,
) -> Result<(), PushError> {
    let failed = |source| PushError::Refer {
        digest: image.digest.clone(),
        source,
    };
    let found = client.pull_referrers(&by_digest(reference, &image.digest), None).await;
    let mut index = serde_json::to_value(found.map_err(failed)?).map_err(PushError::Index)?;
    let mut told: Vec<Value> = index["manifests"].as_array().cloned().unwrap_or_default();
    let is_told = |paper: &Descriptor| told.iter().any(|there| there["digest"] == paper.digest);
    let missing: Vec<Value> = papers
        .iter()
        .filter(|paper| !is_told(paper))
        .map(|paper| json!(paper))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    told.extend(missing);
    index["manifests"] = json!(told);
    index["schemaVersion"] = json!(2);
    index["mediaType"] = json!(INDEX);
    let tag = image.digest.replace(':', "-");
    let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
    let to = Reference::with_tag(registry, repository, tag);
    raw(client, index.to_string().into_bytes(), INDEX, &image.digest, &to).await
}

fn by_digest(reference: &Reference, digest: &str) -> Reference {
    let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
    Reference::with_digest(registry, repository, digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_talked_to_without_tls() {
        for (text, plain) in [
            ("127.0.0.1:5000/a/b:1", true),
            ("localhost:5000/a:1", true),
            ("registry.example/a:1", false),
            ("registry.example:5000/a:1", false),
            ("addon-operator", false),
        ] {
            let target = Target::new(text, None).unwrap();
            assert_eq!(matches!(target.protocol(), ClientProtocol::Http), plain, "{text}");
        }
        assert!(matches!(
            Target::new("Not An Image", None),
            Err(PushError::Reference { .. })
        ));
    }

    #[test]
    fn credentials_are_those_of_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        fs::write(
            &file,
            r#"{"auths":{"a.example":{"auth":"dTpwOnE="},"https://b.example":{"auth":"dTpw"}}}"#,
        )
        .unwrap();
        let auth = |text: &str| Target::new(text, Some(&file)).unwrap().auth;
        assert_eq!(
            auth("a.example/x:1"),
            RegistryAuth::Basic("u".to_owned(), "p:q".to_owned())
        );
        assert_eq!(
            auth("b.example/x:1"),
            RegistryAuth::Basic("u".to_owned(), "p".to_owned())
        );
        assert_eq!(auth("c.example/x:1"), RegistryAuth::Anonymous);
        fs::write(&file, "{").unwrap();
        assert!(matches!(
            Target::new("a.example/x:1", Some(&file)),
            Err(PushError::CredentialsSyntax { .. })
        ));
    }
}
