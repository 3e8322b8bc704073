//! Unpacks the layers of a package into a directory.
//!
//! All layers are judged before the first file is written. Must never write outside of the directory, create a device,
//! or keep a right that comes from the owner of a program.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};
use thiserror::Error;

use super::pack::stays_inside;
use super::{ENTRIES, UNPACKED};

/// The prefix of entries by which a layer removes files of the layers below.
const WHITEOUT: &str = ".wh.";
/// The entry by which a layer empties a directory of the layers below.
const OPAQUE: &str = ".wh..wh..opq";
/// The size limit of an entry that describes the next one, such as a long name. The reader keeps it in memory.
const DESCRIPTION: u64 = 64 << 10;
/// The bits by which a program gets the rights of its owner or group.
const SET_ID: u32 = 0o6000;

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
}

/// A layer as it comes from a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub compression: Compression,
    pub bytes: hyper::body::Bytes,
}

/// Why a package is refused, or could not be written.
#[derive(Debug, Error)]
pub enum UnpackError {
    #[error("cannot read the archive")]
    Archive(#[source] io::Error),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("there are more than {ENTRIES} entries")]
    Many,
    #[error("the files have more than {UNPACKED} bytes")]
    Large,
    #[error("the entry '{name}' is {fault}")]
    Entry { name: String, fault: EntryFault },
}

/// Why an entry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EntryFault {
    #[error("outside of the directory")]
    Outside,
    #[error("a link to a place outside of the directory")]
    LinkOut,
    #[error("below a link")]
    BelowLink,
    #[error("a link to an entry that is no file")]
    LinkToNoFile,
    #[error("a program with the rights of its owner (setuid or setgid)")]
    SetId,
    #[error("neither a file, a directory nor a link")]
    Special,
    #[error("described by more than {DESCRIPTION} bytes")]
    Description,
}

/// Unpacks layers, the lowest first, into a directory that exists and is empty.
pub fn unpack(layers: &[Layer], dir: &Path) -> Result<(), UnpackError> {
    judge(layers)?;
    for layer in layers {
        write(layer, dir)?;
    }
    Ok(())
}

/// The uncompressed bytes of a layer. `judge` has to limit their number before they are written.
fn reader(layer: &Layer) -> Box<dyn Read + '_> {
    let bytes = &layer.bytes[..];
    match layer.compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
    }
}

/// Reads all layers once, and refuses those that no module needs.
fn judge(layers: &[Layer]) -> Result<(), UnpackError> {
    let (mut entries, mut left) = (0, UNPACKED);
    for layer in layers {
        // One byte more than allowed shows that there is too much.
        let mut limited = reader(layer).take(left + 1);
        let outcome = judge_layer(&mut limited, &mut entries);
        // The archive may end before the compressed data do.
        let rest = io::copy(&mut limited, &mut io::sink());
        left = match limited.limit() {
            0 => return Err(UnpackError::Large),
            limit => limit - 1,
        };
        outcome?;
        rest.map_err(UnpackError::Archive)?;
    }
    Ok(())
}

fn judge_layer(bytes: &mut impl Read, entries: &mut usize) -> Result<(), UnpackError> {
    let mut archive = Archive::new(bytes);
    for entry in archive.entries().map_err(UnpackError::Archive)?.raw(true) {
        let entry = entry.map_err(UnpackError::Archive)?;
        let header = entry.header();
        let kind = header.entry_type();
        let refused = |fault| UnpackError::Entry {
            name: String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
            fault,
        };
        match kind {
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader => {
                if header.entry_size().map_err(UnpackError::Archive)? > DESCRIPTION {
                    return Err(refused(EntryFault::Description));
                }
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {
                if header.mode().map_err(UnpackError::Archive)? & SET_ID != 0 {
                    return Err(refused(EntryFault::SetId));
                }
            }
            EntryType::Directory | EntryType::Symlink | EntryType::Link => {}
            _ => return Err(refused(EntryFault::Special)),
        }
        *entries += 1;
        if *entries > ENTRIES {
            return Err(UnpackError::Many);
        }
    }
    Ok(())
}

/// Writes one layer over the layers below it.
fn write(layer: &Layer, dir: &Path) -> Result<(), UnpackError> {
    let mut archive = Archive::new(reader(layer));
    // The entries of this layer. An opaque directory of the layer does not remove them.
    let mut own = BTreeSet::new();
    for entry in archive.entries().map_err(UnpackError::Archive)? {
        let entry = entry.map_err(UnpackError::Archive)?;
        let name = name(&entry)?;
        if name.as_os_str().is_empty() {
            continue;
        }
        let path = parents(dir, &name)?;
        let last = name.file_name().and_then(|last| last.to_str()).unwrap_or_default();
        if let Some(hidden) = last.strip_prefix(WHITEOUT) {
            let hides = if last == OPAQUE {
                Hidden::Contents
            } else {
                Hidden::Entry(hidden)
            };
            let parent = name.parent().unwrap_or(Path::new(""));
            hide(dir, parent, &hides, &own).map_err(|source| UnpackError::Write { path, source })?;
            continue;
        }
        own.extend(name.ancestors().map(Path::to_owned));
        write_entry(entry, dir, &name, path)?;
    }
    Ok(())
}

/// Writes one entry, whose parent directories exist.
fn write_entry(mut entry: Entry<'_, impl Read>, dir: &Path, name: &Path, path: PathBuf) -> Result<(), UnpackError> {
    let written = match entry.header().entry_type() {
        EntryType::Directory => directory(&path),
        EntryType::Symlink => {
            let target = link_name(&entry)?;
            if !stays_inside(name, &target) {
                return Err(refused(name, EntryFault::LinkOut));
            }
            remove(&path).and_then(|()| symlink(&target, &path))
        }
        EntryType::Link => {
            let target = inside(&link_name(&entry)?).ok_or_else(|| refused(name, EntryFault::LinkOut))?;
            let from = dir.join(target);
            let is_file = fs_err::symlink_metadata(&from).is_ok_and(|found| found.is_file());
            if !is_file || !is_below_directories(dir, &from) {
                return Err(refused(name, EntryFault::LinkToNoFile));
            }
            if from == path {
                return Ok(());
            }
            remove(&path).and_then(|()| fs_err::copy(&from, &path).map(drop))
        }
        _ => file(&mut entry, &path),
    };
    written.map_err(|source| UnpackError::Write { path, source })
}

fn refused(name: &Path, fault: EntryFault) -> UnpackError {
    let name = name.display().to_string();
    UnpackError::Entry { name, fault }
}

/// The name of an entry, relative to the directory; empty for the directory itself.
fn name(entry: &Entry<'_, impl Read>) -> Result<PathBuf, UnpackError> {
    let told = entry.path().map_err(UnpackError::Archive)?;
    inside(&told).ok_or_else(|| refused(&told, EntryFault::Outside))
}

fn link_name(entry: &Entry<'_, impl Read>) -> Result<PathBuf, UnpackError> {
    let target = entry.link_name().map_err(UnpackError::Archive)?;
    Ok(target.map(PathBuf::from).unwrap_or_default())
}

/// A path without steps upwards. Images name their files from the root, with or without a slash.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

/// The path of an entry, after its parents have been created. A parent that is a link is refused.
fn parents(dir: &Path, name: &Path) -> Result<PathBuf, UnpackError> {
    let mut path = dir.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        if parts.peek().is_none() {
            break;
        }
        if fs_err::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Err(refused(name, EntryFault::BelowLink));
        }
        directory(&path).map_err(|source| UnpackError::Write {
            path: path.clone(),
            source,
        })?;
    }
    Ok(path)
}

/// Whether no part between the directory and a path is a link.
fn is_below_directories(dir: &Path, path: &Path) -> bool {
    let between = path.ancestors().skip(1).take_while(|ancestor| *ancestor != dir);
    let is_directory = |at: &Path| fs_err::symlink_metadata(at).is_ok_and(|found| found.is_dir());
    between.into_iter().all(is_directory)
}

/// Creates a directory, and replaces a file with the same path.
fn directory(path: &Path) -> io::Result<()> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => fs_err::remove_file(path)?,
        Err(_) => {}
    }
    fs_err::create_dir(path)
}

fn file(entry: &mut Entry<'_, impl Read>, path: &Path) -> io::Result<()> {
    remove(path)?;
    let mode = entry.header().mode()?;
    let mut file = fs_err::File::create_new(path)?;
    io::copy(entry, &mut file)?;
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode))
}

/// Removes an entry of a lower layer, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs_err::remove_dir_all(path),
        Ok(_) => fs_err::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The entries of lower layers that a layer removes.
enum Hidden<'a> {
    Entry(&'a str),
    Contents,
}

fn hide(dir: &Path, parent: &Path, hidden: &Hidden<'_>, own: &BTreeSet<PathBuf>) -> io::Result<()> {
    match hidden {
        Hidden::Entry("" | "." | "..") => Ok(()),
        Hidden::Entry(name) => remove(&dir.join(parent).join(name)),
        Hidden::Contents => {
            for entry in fs_err::read_dir(dir.join(parent))? {
                let name = entry?.file_name();
                if !own.contains(&parent.join(&name)) {
                    remove(&dir.join(parent).join(&name))?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
