//! Unpacks the layers of a package into a directory.
//!
//! All layers of a package are judged before the first file is written. Of an image only some directories are unpacked; the rest may be
//! an operating system. Must never write outside of the directory, create a device,
//! or keep a right that comes from the owner of a program.

mod judging;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};
use thiserror::Error;

use self::judging::{DESCRIPTION, is_wanted, judge_descriptions, judge_layer, limited};
use super::pack::stays_inside;
use super::{ENTRIES, IMAGE, UNPACKED};

/// The prefix of entries by which a layer removes files of the layers below.
const WHITEOUT: &str = ".wh.";
/// The entry by which a layer empties a directory of the layers below.
const OPAQUE: &str = ".wh..wh..opq";
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
    #[error("the files have more than {0} bytes")]
    Large(u64),
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
    #[error("a link to a place outside of the directories that are unpacked")]
    LinkAway,
    #[error("below a link")]
    BelowLink,
    #[error("a link to an entry that is no file")]
    LinkToNoFile,
    #[error("a program with the rights of its owner (setuid or setgid)")]
    SetId,
    #[error("neither a file, a directory nor a link")]
    Special,
    #[error("described with a size of its own")]
    Size,
    #[error("described by more than {DESCRIPTION} bytes")]
    Description,
}

/// Unpacks layers, the lowest first, into a directory that exists and is empty.
pub fn unpack(layers: &[Layer], dir: &Path) -> Result<(), UnpackError> {
    let (mut entries, mut left) = (0, UNPACKED);
    for layer in layers {
        limited(reader(layer), &mut left, UNPACKED, |bytes| {
            judge_layer(bytes, &mut entries)
        })?;
    }
    for layer in layers {
        write(reader(layer), dir, &mut Scope::Judged)?;
    }
    Ok(())
}

/// Some directories of an image, which are unpacked layer by layer into a directory that exists and is empty.
#[derive(Debug)]
pub struct ImagePart<'a> {
    scope: Scope<'a>,
    dir: &'a Path,
    /// The number of bytes that the other layers may have.
    left: u64,
}

impl<'a> ImagePart<'a> {
    /// The paths of the directories are relative to the root of the image.
    pub fn new(directories: &'a [PathBuf], dir: &'a Path) -> Self {
        let scope = Scope::Directories {
            directories,
            entries: ENTRIES,
            bytes: UNPACKED,
        };
        let left = IMAGE;
        Self { scope, dir, left }
    }

    /// Unpacks the next layer over those before it, of which the lowest comes first.
    pub fn layer(&mut self, file: &Path, compression: Compression) -> Result<(), UnpackError> {
        let open = || {
            let file = fs_err::File::open(file).map_err(UnpackError::Archive)?;
            Ok::<_, UnpackError>(decompressed(compression, file))
        };
        limited(open()?, &mut self.left, IMAGE, |bytes| judge_descriptions(bytes))?;
        write(open()?, self.dir, &mut self.scope)
    }
}

/// The uncompressed bytes of a layer. Their number has to be limited before they are written.
fn reader(layer: &Layer) -> Box<dyn Read + '_> {
    decompressed(layer.compression, &layer.bytes[..])
}

fn decompressed<'a>(compression: Compression, bytes: impl Read + 'a) -> Box<dyn Read + 'a> {
    match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
    }
}

/// The entries of layers that are unpacked.
#[derive(Debug)]
enum Scope<'a> {
    /// All of them, which were judged before.
    Judged,
    /// Those of some directories, with the rest of what they may have.
    Directories {
        directories: &'a [PathBuf],
        entries: usize,
        bytes: u64,
    },
}

impl Scope<'_> {
    /// Whether an entry is unpacked, or an entry that hides this path.
    fn has(&self, name: &Path) -> bool {
        let Self::Directories { directories, .. } = self else {
            return true;
        };
        directories
            .iter()
            .any(|directory| name.starts_with(directory) || directory.starts_with(name))
    }

    /// The fault of a link that leads out of what is unpacked.
    fn link_out(&self) -> EntryFault {
        match self {
            Self::Judged => EntryFault::LinkOut,
            Self::Directories { .. } => EntryFault::LinkAway,
        }
    }

    fn count(&mut self, size: u64) -> Result<(), UnpackError> {
        if let Self::Directories { entries, bytes, .. } = self {
            *entries = entries.checked_sub(1).ok_or(UnpackError::Many)?;
            *bytes = bytes.checked_sub(size).ok_or(UnpackError::Large(UNPACKED))?;
        }
        Ok(())
    }
}

/// Writes one layer over the layers below it.
fn write(layer: impl Read, dir: &Path, scope: &mut Scope<'_>) -> Result<(), UnpackError> {
    let mut archive = Archive::new(layer);
    // The entries of this layer. An opaque directory of the layer does not remove them.
    let mut own = BTreeSet::new();
    for entry in archive.entries().map_err(UnpackError::Archive)? {
        let entry = entry.map_err(UnpackError::Archive)?;
        let told = entry.path().map_err(UnpackError::Archive)?.into_owned();
        // An image may name entries that no directory of the scope can have.
        let name = match inside(&told) {
            Some(name) if name.as_os_str().is_empty() => continue,
            Some(name) => name,
            None if matches!(scope, Scope::Judged) => return Err(refused(&told, EntryFault::Outside)),
            None => continue,
        };
        let last = name.file_name().and_then(|last| last.to_str()).unwrap_or_default();
        let parent = name.parent().unwrap_or(Path::new(""));
        let hides = last.strip_prefix(WHITEOUT).map(|hidden| match last {
            OPAQUE => (Hidden::Contents, parent.to_owned()),
            _ => (Hidden::Entry(hidden), parent.join(hidden)),
        });
        if !scope.has(hides.as_ref().map_or(&name, |(_, hidden)| hidden)) {
            continue;
        }
        if !is_wanted(entry.header().entry_type()) {
            return Err(refused(&name, EntryFault::Special));
        }
        scope.count(entry.size())?;
        let path = parents(dir, &name)?;
        if let Some((hides, _)) = hides {
            hide(dir, parent, &hides, &own).map_err(|source| UnpackError::Write { path, source })?;
            continue;
        }
        own.extend(name.ancestors().map(Path::to_owned));
        write_entry(entry, dir, (&name, path), scope.link_out())?;
    }
    Ok(())
}

/// Writes one entry, whose parent directories exist.
fn write_entry(
    mut entry: Entry<'_, impl Read>,
    dir: &Path,
    (name, path): (&Path, PathBuf),
    link_out: EntryFault,
) -> Result<(), UnpackError> {
    let written = match entry.header().entry_type() {
        EntryType::Directory => directory(&path),
        EntryType::Symlink => {
            let target = link_name(&entry)?;
            if !stays_inside(name, &target) {
                return Err(refused(name, link_out));
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
            // A copy would count for the limits of nothing.
            remove(&path).and_then(|()| fs_err::hard_link(&from, &path))
        }
        _ => file(&mut entry, &path),
    };
    written.map_err(|source| UnpackError::Write { path, source })
}

fn refused(name: &Path, fault: EntryFault) -> UnpackError {
    let name = name.display().to_string();
    UnpackError::Entry { name, fault }
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
                let path = parent.join(&name);
                if !own.contains(&path) {
                    remove(&dir.join(path))?;
                } else if fs_err::symlink_metadata(dir.join(&path))?.is_dir() {
                    hide(dir, &path, hidden, own)?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
