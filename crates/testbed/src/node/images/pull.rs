//! A client for the few requests to an OCI registry that a pull needs, over plain HTTP and without credentials.
//!
//! It is meant for a registry on loopback and must never be used for one on a network.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::ACCEPT;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::Config;
use crate::node::reference::{Reference, Version};

#[derive(Debug, Error)]
pub(crate) enum WireError {
    #[error("cannot build the request")]
    Request(#[from] hyper::http::Error),
    #[error("no answer")]
    Send(#[from] hyper_util::client::legacy::Error),
    #[error("the answer breaks off")]
    Body(#[from] hyper::Error),
    #[error("the answer is {status}: {said}")]
    Status { status: StatusCode, said: String },
    #[error("the content has the digest {found} instead of {wanted}")]
    Digest { found: String, wanted: String },
    #[error("cannot understand the answer")]
    Parse(#[from] serde_json::Error),
    #[error("there is none for linux/{0}")]
    Platform(&'static str),
    #[error("cannot keep a layer")]
    Keep(#[from] std::io::Error),
}

/// The reference to a blob.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Descriptor {
    pub(super) digest: String,
    #[serde(default)]
    platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// A manifest, or an index of manifests for several platforms.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

/// The manifest of one image.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The digest of the document that the reference led to.
    pub(super) digest: String,
    config: Option<Descriptor>,
    pub(super) layers: Vec<Descriptor>,
}

const KINDS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                     application/vnd.docker.distribution.manifest.list.v2+json, \
                     application/vnd.docker.distribution.manifest.v2+json";

/// One image at its registry.
pub(super) struct Pull<'a> {
    reference: &'a Reference,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl<'a> Pull<'a> {
    pub(super) fn new(reference: &'a Reference) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { reference, client }
    }

    pub(super) async fn manifest(&self) -> Result<Manifest, WireError> {
        let (digest, document) = self.document(self.reference.version.as_str()).await?;
        if let Version::Digest(wanted) = &self.reference.version {
            check(wanted, &digest)?;
        }
        if document.manifests.is_empty() {
            return Ok(Manifest {
                digest,
                config: document.config,
                layers: document.layers,
            });
        }
        let fits = |listed: &&Descriptor| {
            let platform = listed.platform.as_ref();
            platform.is_some_and(|platform| platform.os == "linux" && platform.architecture == ARCHITECTURE)
        };
        let ours = document.manifests.iter().find(fits);
        let ours = &ours.ok_or(WireError::Platform(ARCHITECTURE))?.digest;
        let (own_digest, document) = self.document(ours).await?;
        check(ours, &own_digest)?;
        Ok(Manifest {
            digest,
            config: document.config,
            layers: document.layers,
        })
    }

    pub(super) async fn config(&self, manifest: &Manifest) -> Result<Config, WireError> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(default)]
            config: Config,
        }
        let Some(descriptor) = &manifest.config else {
            return Ok(Config::default());
        };
        let answer = self.get("blobs", &descriptor.digest).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        check(&descriptor.digest, &digest(Sha256::digest(&body).as_slice()))?;
        Ok(serde_json::from_slice::<Whole>(&body)?.config)
    }

    /// Writes a blob to a file in the folder.
    pub(super) async fn blob(&self, wanted: &str, folder: &Path) -> Result<PathBuf, WireError> {
        let mut body = self.get("blobs", wanted).await?.into_body();
        // The image may have the same layer twice, so the file's name is new.
        let (mut file, path) = tempfile::NamedTempFile::new_in(folder)?
            .keep()
            .map_err(|kept| kept.error)?;
        let mut hash = Sha256::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                hash.update(&data);
                file.write_all(&data)?;
            }
        }
        check(wanted, &digest(hash.finalize().as_slice())).inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(path)
    }

    async fn document(&self, version: &str) -> Result<(String, Document), WireError> {
        let answer = self.get("manifests", version).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((digest(Sha256::digest(&body).as_slice()), serde_json::from_slice(&body)?))
    }

    async fn get(&self, kind: &str, name: &str) -> Result<Response<Incoming>, WireError> {
        let Reference {
            registry, repository, ..
        } = self.reference;
        let request = Request::get(format!("http://{registry}/v2/{repository}/{kind}/{name}"))
            .header(ACCEPT, KINDS)
            .body(Empty::new())?;
        let answer = self.client.request(request).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let said = answer.into_body().collect().await?.to_bytes();
        Err(WireError::Status {
            status,
            said: String::from_utf8_lossy(&said).trim().to_owned(),
        })
    }
}

/// The name that registries use.
const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "amd64"
};

fn check(wanted: &str, found: &str) -> Result<(), WireError> {
    if wanted == found {
        return Ok(());
    }
    Err(WireError::Digest {
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    })
}

/// One digest for a sequence of layers.
pub(super) fn digest_of(layers: &[&str]) -> String {
    digest(Sha256::digest(layers.concat()).as_slice())
}

fn digest(hash: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in hash {
        // Writing into a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
