//! The folder of an image (OCI image layout): blobs by checksum, and the documents that refer to them.
//!
//! A layout appears as a whole or not at all. Its documents must never depend on the iteration order of a hash map.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::layer::{self, Written, sha256};
use crate::tree::Tree;

pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of the empty configuration in a manifest that needs no configuration.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A reference to a blob, as documents contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The kind of the content, if it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

/// The system that an image runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    pub architecture: String,
    pub os: String,
}

/// References to the configuration of an image and to its layers, from the bottom to the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u32,
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    /// The image that a paper or a signature is about; none for an image itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// The list of a layout's manifests: one image and its papers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageIndex {
    schema_version: u32,
    media_type: String,
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Error)]
pub enum LayoutError {
    #[error("cannot use the folder of the image")]
    Folder(#[from] io::Error),
    #[error("cannot understand {}", file.display())]
    Document { file: PathBuf, source: serde_json::Error },
    #[error("{} holds {found} images, not one", folder.display())]
    NotOne { folder: PathBuf, found: usize },
    #[error("{} holds something else: there is no oci-layout in it", .0.display())]
    Foreign(PathBuf),
}

/// A layout that is being written in a temporary folder beside its final place.
#[derive(Debug)]
pub struct Draft {
    site: tempfile::TempDir,
    place: PathBuf,
}

impl Draft {
    /// A draft of a layout for `place`, where nothing or an older layout exists.
    pub fn new(place: &Path) -> Result<Self, LayoutError> {
        if fs::read_dir(place).is_ok_and(|mut inside| inside.next().is_some()) && !place.join("oci-layout").exists() {
            return Err(LayoutError::Foreign(place.to_owned()));
        }
        let parent = place
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let site = tempfile::Builder::new().prefix(".image-").tempdir_in(parent)?;
        fs::create_dir_all(site.path().join("blobs/sha256"))?;
        Ok(Self {
            site,
            place: place.to_owned(),
        })
    }

    /// Writes a layer with this tree.
    pub fn layer(&self, tree: &Tree) -> Result<Written, LayoutError> {
        let mut arriving = tempfile::NamedTempFile::new_in(self.site.path())?;
        let written = layer::write(tree, io::BufWriter::new(&mut arriving))?;
        // The layer gets the same mode as the other blobs.
        fs::set_permissions(arriving.path(), Permissions::from_mode(0o644))?;
        arriving.persist(self.blob(&written.sha256)).map_err(io::Error::from)?;
        Ok(written)
    }

    /// Writes a JSON document as a blob.
    pub fn document(&self, media_type: &str, document: &Value) -> Result<Descriptor, LayoutError> {
        let bytes = document.to_string().into_bytes();
        let hash = sha256(&bytes);
        fs::write(self.blob(&hash), &bytes)?;
        Ok(descriptor(media_type, &hash, bytes.len() as u64))
    }

    /// Writes a paper about an image, with a manifest of its own.
    pub fn paper(&self, kind: &str, paper: &Value, image: &Descriptor) -> Result<Descriptor, LayoutError> {
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST.to_owned(),
            artifact_type: Some(kind.to_owned()),
            config: self.document(EMPTY, &json!({}))?,
            layers: vec![self.document(kind, paper)?],
            subject: Some(Descriptor {
                platform: None,
                ..image.clone()
            }),
            annotations: BTreeMap::new(),
        };
        Ok(Descriptor {
            artifact_type: Some(kind.to_owned()),
            ..self.document(MANIFEST, &json!(manifest))?
        })
    }

    /// Moves the layout, with this image and its papers, to its place. An older layout there is deleted.
    pub fn finish(self, manifest: Descriptor, papers: Vec<Descriptor>) -> Result<Layout, LayoutError> {
        let index = ImageIndex {
            schema_version: 2,
            media_type: INDEX.to_owned(),
            manifests: std::iter::once(manifest).chain(papers).collect(),
        };
        let inside = self.site.path();
        fs::write(inside.join("index.json"), json!(index).to_string())?;
        fs::write(
            inside.join("oci-layout"),
            json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
        )?;
        if self.place.exists() {
            fs::remove_dir_all(&self.place)?;
        }
        fs::rename(self.site.keep(), &self.place)?;
        Ok(Layout { folder: self.place })
    }

    fn blob(&self, sha256: &str) -> PathBuf {
        blob(self.site.path(), sha256)
    }
}

/// A complete layout with one image.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub fn open(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The descriptor of the image.
    pub fn image(&self) -> Result<Descriptor, LayoutError> {
        let index: ImageIndex = read(&self.folder.join("index.json"))?;
        let mut images = index.manifests;
        images.retain(|manifest| manifest.artifact_type.is_none());
        let found = images.len();
        let one = images.into_iter().next().filter(|_| found == 1);
        one.ok_or_else(|| LayoutError::NotOne {
            folder: self.folder.clone(),
            found,
        })
    }

    /// The manifests of the papers, which refer to the image.
    pub fn papers(&self) -> Result<Vec<Descriptor>, LayoutError> {
        let index: ImageIndex = read(&self.folder.join("index.json"))?;
        let papers = index.manifests.into_iter();
        Ok(papers.filter(|manifest| manifest.artifact_type.is_some()).collect())
    }

    /// The manifest that a descriptor refers to.
    pub fn manifest_of(&self, manifest: &Descriptor) -> Result<Manifest, LayoutError> {
        read(&self.file(manifest))
    }

    pub fn manifest(&self) -> Result<Manifest, LayoutError> {
        read(&self.file(&self.image()?))
    }

    /// The path of a blob.
    pub fn file(&self, blob: &Descriptor) -> PathBuf {
        self::blob(&self.folder, blob.digest.trim_start_matches("sha256:"))
    }
}

/// The JSON form of a reference to a blob.
pub fn descriptor(media_type: &str, sha256: &str, size: u64) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: format!("sha256:{sha256}"),
        size,
        platform: None,
        artifact_type: None,
    }
}

fn blob(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("blobs/sha256").join(sha256)
}

fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, LayoutError> {
    let bytes = fs::read(file)?;
    serde_json::from_slice(&bytes).map_err(|source| LayoutError::Document {
        file: file.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_replaces_an_older_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("image");
        for text in ["one", "two"] {
            let draft = Draft::new(&place).unwrap();
            let manifest = draft.document(MANIFEST, &json!({ "text": text })).unwrap();
            let layout = draft.finish(manifest.clone(), Vec::new()).unwrap();
            assert_eq!(layout.image().unwrap(), manifest);
            assert_eq!(fs::read_dir(place.join("blobs/sha256")).unwrap().count(), 1, "{text}");
        }
        let foreign = folder.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        Draft::new(&foreign).unwrap();
        fs::write(foreign.join("letter"), "dear").unwrap();
        assert!(matches!(Draft::new(&foreign), Err(LayoutError::Foreign(_))));
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::new(&folder.path().join("image")).unwrap();
        draft.document(CONFIG, &json!({})).unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
