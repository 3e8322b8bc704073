//! Unpacks Debian packages: their files are taken, and none of their scripts is run.
//!
//! The definition contains the steps of the scripts that an image needs. A package must never bring a setuid or setgid
//! file.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tar::EntryType;
use testbed::process;
use thiserror::Error;

use crate::definition::Debian;
use crate::place::{ImagePath, PlaceError};
use crate::tree::{Content, Node, Taken, Tree, TreeError};

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("cannot run dpkg-deb")]
    Start(#[source] io::Error),
    #[error("dpkg-deb cannot read {}: {said}", file.display())]
    Failed { file: PathBuf, said: String },
    #[error("cannot read the files of {}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{} has a file with an odd name", file.display())]
    Name { file: PathBuf, source: PlaceError },
    #[error("{} does not fit to what is there", file.display())]
    Put { file: PathBuf, source: TreeError },
    #[error("{} has a hard link at {at} to a file that it does not have", file.display())]
    HardLink { file: PathBuf, at: ImagePath },
    #[error("{} has a device or a pipe at {at}", file.display())]
    Device { file: PathBuf, at: ImagePath },
}

/// The folder where vulnerability scanners look for packages that dpkg did not install; it has a file for each.
const KNOWN: &str = "/var/lib/dpkg/status.d";

/// Puts the files of a package into the tree, and the file by which scanners find the package.
pub fn unpack(file: &Path, name: &str, wishes: &Debian, tree: &mut Tree) -> Result<(), ArchiveError> {
    let files = dpkg_deb("--fsys-tarfile", file)?;
    let unreadable = |source| ArchiveError::Read {
        file: file.to_owned(),
        source,
    };
    let mut archive = tar::Archive::new(files.as_slice());
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let at = ImagePath::in_archive(&path).map_err(|source| ArchiveError::Name {
            file: file.to_owned(),
            source,
        })?;
        if !wishes.want(&at) {
            continue;
        }
        let node = node(&mut entry, &at, file, tree)?;
        let put = tree.put(&at, node, Taken::Refused);
        put.map_err(|source| ArchiveError::Put {
            file: file.to_owned(),
            source,
        })?;
    }
    let control = dpkg_deb("--field", file)?;
    let at = ImagePath::absolute(KNOWN).and_then(|folder| folder.join(name));
    let at = at.map_err(|source| ArchiveError::Name {
        file: file.to_owned(),
        source,
    })?;
    let put = tree.put(&at, Node::file(control), Taken::Refused);
    put.map_err(|source| ArchiveError::Put {
        file: file.to_owned(),
        source,
    })
}

fn node(entry: &mut tar::Entry<'_, &[u8]>, at: &ImagePath, file: &Path, tree: &Tree) -> Result<Node, ArchiveError> {
    let unreadable = |source| ArchiveError::Read {
        file: file.to_owned(),
        source,
    };
    let mode = entry.header().mode().map_err(unreadable)?;
    let target = |entry: &tar::Entry<'_, &[u8]>| {
        let bytes = entry.link_name_bytes().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(match entry.header().entry_type() {
        EntryType::Directory => Node::Folder { mode: mode & 0o1777 },
        EntryType::Regular => {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(unreadable)?;
            Node::File {
                mode: mode & 0o777,
                content: Content::Bytes(Arc::from(bytes)),
            }
        }
        EntryType::Symlink => Node::Link { target: target(entry) },
        EntryType::Link => {
            let first = ImagePath::in_archive(&target(entry)).ok();
            let found = first.and_then(|first| tree.get(&first));
            found.cloned().ok_or_else(|| ArchiveError::HardLink {
                file: file.to_owned(),
                at: at.clone(),
            })?
        }
        _ => {
            return Err(ArchiveError::Device {
                file: file.to_owned(),
                at: at.clone(),
            });
        }
    })
}

impl Debian {
    /// Does this file or folder of a package go into the image?
    fn want(&self, place: &ImagePath) -> bool {
        let left_out = self.leave_out.iter().any(|folder| place.is_within(folder));
        !left_out || place.names().last().is_some_and(|name| self.keep.contains(name))
    }
}

/// The output of dpkg-deb for a package.
pub fn dpkg_deb(what: &str, file: &Path) -> Result<Vec<u8>, ArchiveError> {
    let mut command = process::command("dpkg-deb");
    command.arg(what).arg(file);
    let output = process::run(command, None).map_err(ArchiveError::Start)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ArchiveError::Failed {
        file: file.to_owned(),
        said,
    })
}

#[cfg(test)]
mod tests;
