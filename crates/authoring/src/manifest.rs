//! `module manifest`: the list of files that a modules directory must have when the operator starts.

use std::path::{Path, PathBuf};

use disk::manifest;
use disk::manifest::Manifest;
use thiserror::Error;

#[derive(Debug, Error)]
#[error("cannot make a manifest of {}", dir.display())]
pub struct NoManifest {
    dir: PathBuf,
    source: manifest::ManifestError,
}

/// The text of the manifest.
pub fn of(dir: &Path) -> Result<String, NoManifest> {
    let made = Manifest::of(dir).map_err(|source| NoManifest {
        dir: dir.to_owned(),
        source,
    })?;
    Ok(made.text())
}
