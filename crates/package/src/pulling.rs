//! Pulls a package from a registry and unpacks it into a directory.
//!
//! The directory appears as a whole or not at all: files are written beside it first. Must never unpack content whose
//! digest is not the one that the manifest names.

use std::io;
use std::path::{Path, PathBuf};

use channel_core::reference::ImageDigest;
use registry::Registry;
use registry::documents::{Content, Index, Manifest, Platform};
use registry::error::RegistryError;
use registry::place::{ImagePlace, Reference};
use thiserror::Error;

use super::layers::{self, Bounds, NoPackage, PackageKind};
use super::unpack::{self, Compression, Layer, UnpackError};

/// Why a package was not pulled.
#[derive(Debug, Error)]
pub enum PullError {
    #[error(transparent)]
    Registry(#[from] Box<RegistryError>),
    #[error("cannot understand the manifest {digest}")]
    Manifest {
        digest: ImageDigest,
        source: serde_json::Error,
    },
    #[error("the index {digest} names no manifest for {platform}")]
    Platform { digest: ImageDigest, platform: Platform },
    #[error("{digest} is no package")]
    NoPackage { digest: ImageDigest, source: NoPackage },
    #[error("{digest} is no image: a module or a chart has no directories with modules")]
    NoImage { digest: ImageDigest },
    #[error("cannot understand the configuration {digest} of the image")]
    Config {
        digest: ImageDigest,
        source: serde_json::Error,
    },
    #[error("cannot unpack {digest}")]
    Unpack { digest: ImageDigest, source: UnpackError },
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    #[error("cannot make {}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("the chart is not in one folder of its own")]
    NoFolder,
}

impl From<RegistryError> for PullError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(Box::new(error))
    }
}

/// A pulled package, in memory.
#[derive(Debug, Clone)]
pub struct Package {
    /// The digest that the reference led to: of an index, if there is one.
    pub digest: ImageDigest,
    pub kind: PackageKind,
    layers: Vec<Layer>,
}

/// Reads the package behind a reference.
pub async fn pull(registry: &Registry, place: &ImagePlace, reference: &Reference) -> Result<Package, PullError> {
    let (digest, manifest) = manifest(registry, place, reference, &Platform::own()).await?;
    let found = layers::layers(&manifest, Bounds::PACKAGE);
    let (kind, places) = found.map_err(|source| PullError::NoPackage {
        digest: digest.clone(),
        source,
    })?;
    let mut layers = Vec::new();
    for layer in places {
        let bytes = registry.blob(place, &layer.digest, layer.size).await?;
        let compression = layer.compression;
        layers.push(Layer { compression, bytes });
    }
    Ok(Package { digest, kind, layers })
}

/// The manifest behind a reference for a platform, and the digest that the reference led to.
pub(crate) async fn manifest(
    registry: &Registry,
    place: &ImagePlace,
    reference: &Reference,
    platform: &Platform,
) -> Result<(ImageDigest, Manifest), PullError> {
    let document = registry.manifest(place, reference).await?;
    let digest = document.digest.clone();
    let content = document.read();
    let content = content.map_err(|source| PullError::Manifest {
        digest: digest.clone(),
        source,
    })?;
    let manifest = match content {
        Content::Manifest(manifest) => *manifest,
        Content::Index(index) => chosen(registry, place, (&digest, &index), platform).await?,
    };
    Ok((digest, manifest))
}

/// The manifest of an index: the only one, or the one for the platform.
async fn chosen(
    registry: &Registry,
    place: &ImagePlace,
    (digest, index): (&ImageDigest, &Index),
    platform: &Platform,
) -> Result<Manifest, PullError> {
    let chosen = match &index.manifests[..] {
        [only] => Some(only),
        _ => index.for_platform(platform),
    };
    let chosen = chosen.ok_or_else(|| PullError::Platform {
        digest: digest.clone(),
        platform: platform.clone(),
    })?;
    let reference = Reference::Digest(chosen.digest.clone());
    let document = registry.manifest(place, &reference).await?;
    let manifest = serde_json::from_slice(&document.bytes);
    manifest.map_err(|source| PullError::Manifest {
        digest: document.digest,
        source,
    })
}

impl Package {
    /// A package from the packed files of a module, which came from a registry before.
    pub fn of_copy(digest: ImageDigest, packed: Vec<u8>) -> Self {
        let layer = Layer {
            compression: Compression::Gzip,
            bytes: packed.into(),
        };
        Self {
            digest,
            kind: PackageKind::Module,
            layers: vec![layer],
        }
    }

    /// Unpacks the package into a directory that does not exist yet.
    pub async fn unpack(self, dir: PathBuf) -> Result<(), PullError> {
        blocking::run(move || self.unpack_here(&dir)).await
    }

    fn unpack_here(&self, dir: &Path) -> Result<(), PullError> {
        let made = |source| PullError::Make {
            path: dir.to_owned(),
            source,
        };
        if fs_err::symlink_metadata(dir).is_ok() {
            let path = dir.to_owned();
            return Err(PullError::Exists { path });
        }
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs_err::create_dir_all(parent).map_err(made)?;
        // In the same file system, so that a rename makes the directory appear at once.
        let beside = tempfile::Builder::new()
            .prefix(".addon-operator-")
            .tempdir_in(parent)
            .map_err(made)?;
        let root = beside.path().join("root");
        fs_err::create_dir(&root).map_err(made)?;
        unpack::unpack(&self.layers, &root).map_err(|source| PullError::Unpack {
            digest: self.digest.clone(),
            source,
        })?;
        let root = match self.kind {
            PackageKind::Module | PackageKind::Image => root,
            PackageKind::Chart => only_folder(&root).map_err(made)?.ok_or(PullError::NoFolder)?,
        };
        fs_err::rename(&root, dir).map_err(made)
    }
}

/// The only entry of a directory, if it is a directory. Helm packs a chart in a folder with its name.
fn only_folder(dir: &Path) -> io::Result<Option<PathBuf>> {
    let entries = fs_err::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    match &entries[..] {
        [only] if only.file_type()?.is_dir() => Ok(Some(only.path())),
        _ => Ok(None),
    }
}
