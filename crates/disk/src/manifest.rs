//! The manifest of a modules directory: the files that it must have, with digests of their contents. It is optional;
//! `image build` and `module manifest` write one.
//!
//! Never judges a file that the manifest does not name, because other programs may add files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use walkdir::{DirEntry, WalkDir};

use super::{Fault, Problem, Severity, values};

/// The file name of the manifest, at the root of a modules directory.
pub const FILE: &str = ".addon-operator-manifest.json";

const VERSION: u32 = 1;
/// The folders that Python creates beside hooks.
const LEFT_BEHIND: &str = "__pycache__";

/// The files that a modules directory must have.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    version: u32,
    /// Paths with `sha256:` and the checksum in hex; null for a file that may have any content except none.
    files: BTreeMap<String, Option<String>>,
}

/// Why no manifest of a directory can be made.
#[derive(Debug, Error)]
pub enum ManifestError {
    #[error("cannot list the files in {}", dir.display())]
    Walk { dir: PathBuf, source: walkdir::Error },
    #[error("cannot read the files in {}", dir.display())]
    Read { dir: PathBuf, source: io::Error },
    #[error("the name of {} is not valid UTF-8", .0.display())]
    Name(PathBuf),
}

impl Manifest {
    /// Makes the manifest of the files that are now in a directory. Links are left out, and so are hidden entries of
    /// its root.
    pub fn of(dir: &Path) -> Result<Self, ManifestError> {
        let is_meant = |entry: &DirEntry| {
            let name = entry.file_name();
            name != LEFT_BEHIND && (entry.depth() != 1 || !name.as_encoded_bytes().starts_with(b"."))
        };
        let mut files = BTreeMap::new();
        for entry in WalkDir::new(dir).into_iter().filter_entry(is_meant) {
            let entry = entry.map_err(|source| ManifestError::Walk {
                dir: dir.to_owned(),
                source,
            })?;
            if !entry.file_type().is_file() {
                continue;
            }
            let inner = entry.path().strip_prefix(dir).unwrap_or(entry.path());
            let name = inner.to_str().ok_or_else(|| ManifestError::Name(inner.to_owned()))?;
            let sum = sum_of(entry.path()).map_err(|source| ManifestError::Read {
                dir: dir.to_owned(),
                source,
            })?;
            // People mount a file of their own over this one.
            files.insert(name.to_owned(), (name != values::FILE).then_some(sum));
        }
        Ok(Self {
            version: VERSION,
            files,
        })
    }

    /// The text of the manifest.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a manifest holds nothing but texts");
        text + "\n"
    }

    /// Reads the manifest of a directory, if it has one.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, Problem> {
        let path = dir.join(FILE);
        let problem = |fault| Problem::new(Severity::Fatal, &path, fault);
        let text = match fs_err::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
            Err(error) => return Err(problem(Fault::Unreadable(error))),
        };
        let read: Self = serde_json::from_str(&text).map_err(|error| problem(Fault::NoManifest(error)))?;
        if read.version == VERSION {
            Ok(Some(read))
        } else {
            Err(problem(Fault::ManifestVersion(read.version)))
        }
    }

    /// Whether the manifest names no file.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The entries of the directory that the manifest names.
    pub(super) fn entries(&self) -> impl Iterator<Item = &str> {
        let mut entries: Vec<&str> = self.files.keys().filter_map(|file| file.split('/').next()).collect();
        entries.dedup();
        entries.into_iter()
    }

    /// The faults of one entry, compared with the manifest.
    pub(super) fn differences(&self, dir: &Path, entry: &str) -> Vec<Problem> {
        let of_entry = self
            .files
            .iter()
            .filter(|(file, _)| file.split('/').next() == Some(entry));
        let differences = of_entry.filter_map(|(file, wanted)| {
            let path = dir.join(file);
            let fault = difference(&path, wanted.as_deref())?;
            Some(Problem::new(Severity::Fatal, path, fault))
        });
        differences.collect()
    }
}

fn difference(path: &Path, wanted: Option<&str>) -> Option<Fault> {
    match (sum_of(path), wanted) {
        (Ok(sum), Some(wanted)) => (sum != wanted).then_some(Fault::NotAsInManifest),
        (Ok(_), None) => {
            let is_empty = fs_err::metadata(path).is_ok_and(|found| found.len() == 0);
            is_empty.then_some(Fault::NotAsInManifest)
        }
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Some(Fault::OnlyInManifest),
        (Err(error), _) => Some(Fault::Unreadable(error)),
    }
}

fn sum_of(path: &Path) -> io::Result<String> {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(fs_err::read(path)?) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
