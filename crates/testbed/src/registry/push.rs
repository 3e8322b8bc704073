//! Small images that a test makes and pushes to the real registry.
//!
//! A failed push panics, because the test cannot go on. This module must never push to any other registry than a
//! test's.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;
use std::path::Path;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A layer with these files, all executable. A name that begins with `.wh.` deletes the file of that name in lower
/// layers.
pub fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        layer.append_data(&mut header, path, *content).unwrap();
    }
    layer.into_inner().unwrap()
}

/// A layer with everything in a folder, below `place` in the image.
pub fn layer_of(folder: &Path, place: &str) -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    // Containerd refuses entries with holes.
    layer.sparse(false);
    layer.append_dir_all(place.trim_start_matches('/'), folder).unwrap();
    layer.into_inner().unwrap()
}

/// A repository of a registry.
#[derive(Debug)]
pub struct Repository {
    pub address: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The digest of a content, as registries write it.
pub fn digest(content: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

impl Repository {
    /// A repository of the registry at an address.
    pub fn at(registry: &str, name: &str) -> Self {
        Self {
            address: format!("http://{registry}/v2/{name}"),
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Pushes an image with these layers (tar or gzip) under a tag, and returns its digest.
    pub async fn push(&self, tag: &str, config: &Value, layers: &[Vec<u8>]) -> String {
        let whole = json!({
            "architecture": "amd64", "os": "linux", "config": config,
            "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| digest(layer)).collect::<Vec<_>>() },
        });
        let whole = whole.to_string().into_bytes();
        let mut listed = Vec::new();
        for layer in layers {
            let size = layer.len();
            let digest = self.upload(layer).await;
            listed.push(json!({ "mediaType": LAYER, "digest": digest, "size": size }));
        }
        let config = json!({
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": self.upload(&whole).await, "size": whole.len(),
        });
        let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": listed });
        self.put(tag, MANIFEST, &manifest).await
    }

    /// Pushes a variant of an existing image: its layers with these on top, and a changed configuration and
    /// annotations. Returns its digest.
    pub async fn derive(
        &self,
        from: &str,
        tag: &str,
        layers: &[Vec<u8>],
        alter: impl FnOnce(&mut Value, &mut Value),
    ) -> String {
        let mut manifest = self.get(&format!("manifests/{from}")).await;
        if let Some(first) = manifest["manifests"][0]["digest"].as_str() {
            manifest = self.get(&format!("manifests/{first}")).await;
        }
        let config = manifest["config"]["digest"].as_str().unwrap();
        let mut whole = self.get(&format!("blobs/{config}")).await;
        let mut annotations = manifest.get("annotations").cloned().unwrap_or_else(|| json!({}));
        alter(&mut whole["config"], &mut annotations);
        for layer in layers {
            let digest = self.upload(layer).await;
            whole["rootfs"]["diff_ids"].as_array_mut().unwrap().push(json!(digest));
            let listed = json!({ "mediaType": LAYER, "digest": digest, "size": layer.len() });
            manifest["layers"].as_array_mut().unwrap().push(listed);
        }
        let whole = whole.to_string().into_bytes();
        manifest["config"]["digest"] = json!(self.upload(&whole).await);
        manifest["config"]["size"] = json!(whole.len());
        manifest["annotations"] = annotations;
        let kind = manifest["mediaType"].as_str().unwrap_or(MANIFEST).to_owned();
        self.put(tag, &kind, &manifest).await
    }

    /// The manifest of a digest, byte for byte.
    pub async fn manifest(&self, digest: &str) -> String {
        self.text(&format!("manifests/{digest}")).await
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    async fn text(&self, path: &str) -> String {
        let accepted = format!("{MANIFEST}, {INDEX}, */*");
        let request = Request::get(format!("{}/{path}", self.address)).header("Accept", accepted);
        let (status, _, said) = self.send(request, Vec::new()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {said}");
        said
    }

    /// Pushes a manifest, or any document in its place, under a tag or its digest. Returns the digest.
    pub async fn put(&self, reference: &str, kind: &str, manifest: &Value) -> String {
        let manifest = manifest.to_string().into_bytes();
        let request = Request::put(format!("{}/manifests/{reference}", self.address)).header(CONTENT_TYPE, kind);
        let (status, _, said) = self.send(request, manifest.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{said}");
        digest(&manifest)
    }

    /// Deletes a tag; its manifest stays.
    pub async fn untag(&self, tag: &str) {
        let request = Request::delete(format!("{}/manifests/{tag}", self.address));
        let (status, _, said) = self.send(request, Vec::new()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{tag}: {said}");
    }

    /// Pushes a blob and returns its digest.
    pub async fn upload(&self, content: &[u8]) -> String {
        let (status, place, said) = self
            .send(Request::post(format!("{}/blobs/uploads/", self.address)), Vec::new())
            .await;
        assert_eq!(status, StatusCode::ACCEPTED, "{said}");
        let digest = digest(content);
        let request = Request::put(format!("{place}&digest={digest}")).header(CONTENT_TYPE, "application/octet-stream");
        let (status, _, said) = self.send(request, content.to_vec()).await;
        assert_eq!(status, StatusCode::CREATED, "{said}");
        digest
    }

    /// The digest of a tag; none if the tag does not exist.
    pub async fn resolve(&self, tag: &str) -> Option<String> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{}/manifests/{tag}", self.address));
        let (status, _, said) = self.send(request.header("Accept", MANIFEST), Vec::new()).await;
        (status == StatusCode::OK).then(|| digest(said.as_bytes()))
    }

    async fn send(&self, request: hyper::http::request::Builder, body: Vec<u8>) -> (StatusCode, String, String) {
        let answer = self
            .client
            .request(request.body(Full::from(body)).unwrap())
            .await
            .unwrap();
        let status = answer.status();
        let place = answer
            .headers()
            .get(LOCATION)
            .map(|place| place.to_str().unwrap().to_owned());
        let said = answer.into_body().collect().await.unwrap().to_bytes();
        (
            status,
            place.unwrap_or_default(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }
}
