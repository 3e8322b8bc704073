//! Pushes blobs and manifests to a registry.
//!
//! A blob that the registry has is not sent again. Mirrors are never written to. Must never set a tag before all
//! content is there: callers send manifests last.

use std::sync::Arc;

use channel_core::reference::ImageDigest;
use futures::future::BoxFuture;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{HeaderValue, LOCATION};
use tokio::time::timeout;

use super::admission::Server;
use super::documents::{INDEX as INDEX_KIND, MANIFEST as MANIFEST_KIND};
use super::error::{Asked, Problem, RegistryError, What};
use super::place::{ImagePlace, Reference, digest_of};
use super::wire::{Body, Question};
use super::{MANIFEST, Registry, question, said};

/// The size limit of the answer to a write, which has no content that is needed.
const RECEIPT: usize = 64 << 10;

impl Registry {
    /// Sends a blob, unless the registry has it. Returns its digest and whether it was sent.
    pub async fn send_blob(&self, place: &ImagePlace, bytes: Bytes) -> Result<(ImageDigest, bool), RegistryError> {
        let digest = digest_of(&bytes);
        let what = What::SentBlob(digest.clone());
        let server = Arc::new(self.server(place.host.clone(), place.repository.clone()));
        let sent = self
            .write(place, what, Box::pin(self.blob_to(server, &digest, bytes)))
            .await?;
        Ok((digest, sent))
    }

    /// Sends a manifest of OCI, by its tag or by its digest.
    pub async fn send_manifest(
        &self,
        place: &ImagePlace,
        reference: &Reference,
        bytes: Bytes,
    ) -> Result<(), RegistryError> {
        let kind = HeaderValue::from_static(MANIFEST_KIND);
        self.send_document(place, reference, Body { kind, bytes }).await
    }

    /// Sends an index of OCI, by its tag or by its digest.
    pub async fn send_index(
        &self,
        place: &ImagePlace,
        reference: &Reference,
        bytes: Bytes,
    ) -> Result<(), RegistryError> {
        let kind = HeaderValue::from_static(INDEX_KIND);
        self.send_document(place, reference, Body { kind, bytes }).await
    }

    async fn send_document(&self, place: &ImagePlace, reference: &Reference, body: Body) -> Result<(), RegistryError> {
        let what = What::SentVersion(reference.clone());
        let server = Arc::new(self.server(place.host.clone(), place.repository.clone()));
        let write = Box::pin(self.document_to(server, reference, body));
        self.write(place, what, write).await
    }

    /// Writes to the registry itself, within the time limit of a call.
    async fn write<T>(
        &self,
        place: &ImagePlace,
        what: What,
        write: BoxFuture<'_, Result<T, Problem>>,
    ) -> Result<T, RegistryError> {
        let waited = self.admission.patience();
        let step = "all of it";
        let written = if self.allowed.contains(&place.host) {
            timeout(waited, write)
                .await
                .unwrap_or(Err(Problem::Late { step, waited }))
        } else {
            Err(Problem::Foreign)
        };
        written.map_err(|problem| RegistryError {
            asked: Asked {
                place: place.clone(),
                what,
            },
            server: place.host.clone(),
            problem,
        })
    }

    async fn blob_to(&self, server: Arc<Server>, digest: &ImageDigest, bytes: Bytes) -> Result<bool, Problem> {
        let mut look = question(&server, "blobs", digest.as_str(), RECEIPT);
        look.method = Method::HEAD;
        look.accept = "*/*";
        match self.admission.ask(&server, look).await {
            Ok(_) => return Ok(false),
            // A registry may not support HEAD requests of blobs; then the blob is sent.
            Err(Problem::Absent | Problem::Status { status: 405 | 501, .. }) => {}
            Err(problem) => return Err(problem),
        }
        let mut begin = question(&server, "blobs", "uploads/", RECEIPT);
        begin.method = Method::POST;
        begin.accept = "*/*";
        let begun = self.admission.ask(&server, begin.clone()).await?;
        let place = begun
            .headers
            .get(LOCATION)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        let place = String::from_utf8_lossy(place);
        let upload = begun.url.join(&place).ok_or_else(|| Problem::Astray {
            to: said::line(place.split('?').next().unwrap_or_default()),
            why: "that is no address for a blob",
        })?;
        // Credentials are for the registry's own origin, and so is the blob.
        if upload.origin != server.origin {
            let to = upload.to_string();
            let why = "a blob is sent to the registry itself only";
            return Err(Problem::Astray { to, why });
        }
        let end = Question {
            method: Method::PUT,
            url: upload.with("digest", digest.as_str()),
            body: Some(Body {
                kind: HeaderValue::from_static("application/octet-stream"),
                bytes,
            }),
            ..begin
        };
        self.admission.ask(&server, end).await?;
        Ok(true)
    }

    async fn document_to(&self, server: Arc<Server>, reference: &Reference, body: Body) -> Result<(), Problem> {
        let write = Question {
            method: Method::PUT,
            body: Some(body),
            ..question(&server, "manifests", reference.as_str(), MANIFEST)
        };
        self.admission.ask(&server, write).await.map(drop)
    }
}
