//! Packs a directory into a layer. The same files give the same bytes, whatever their times and owners.
//!
//! Must never follow a link out of the directory, nor leave out a file without an error.

use std::io;
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use thiserror::Error;
use walkdir::WalkDir;

use super::{BLOB, ENTRIES, UNPACKED};

/// The entry of a version control system, which is no part of a module.
const GIT: &str = ".git";

/// Why a directory cannot be packed.
#[derive(Debug, Error)]
pub enum PackError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot look through the directory")]
    Walk(#[from] walkdir::Error),
    #[error("{} is a link to {}, which is outside of the directory", path.display(), target.display())]
    LinkOut { path: PathBuf, target: PathBuf },
    #[error("{} is neither a file, a directory nor a link", path.display())]
    Special { path: PathBuf },
    #[error("{} is not a directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error("there are more than {ENTRIES} files and directories")]
    Many,
    #[error("the files have more than {UNPACKED} bytes")]
    Large,
    #[error("the packed files have {size} bytes, {BLOB} are the most")]
    LargeBlob { size: usize },
}

/// Packs a directory with all that is in it, except version control.
pub fn pack(dir: &Path) -> Result<Vec<u8>, PackError> {
    if !dir.is_dir() {
        let path = dir.to_owned();
        return Err(PackError::NoDirectory { path });
    }
    let encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mut builder = Builder::new(encoder);
    let (mut entries, mut size) = (0, 0);
    let walk = WalkDir::new(dir).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| entry.file_name() != GIT) {
        let entry = entry?;
        let path = entry.path();
        let name = path.strip_prefix(dir).expect("the walk stays below its root");
        entries += 1;
        if entries > ENTRIES {
            return Err(PackError::Many);
        }
        let kind = entry.file_type();
        let read = |source| PackError::Read {
            path: path.to_owned(),
            source,
        };
        if kind.is_dir() {
            builder
                .append_data(&mut header(EntryType::Directory, 0o755, 0), name, io::empty())
                .map_err(read)?;
        } else if kind.is_symlink() {
            let target = link(path, name)?;
            builder
                .append_link(&mut header(EntryType::Symlink, 0o777, 0), name, &target)
                .map_err(read)?;
        } else if kind.is_file() {
            size += append_file(&mut builder, path, name).map_err(read)?;
            if size > UNPACKED {
                return Err(PackError::Large);
            }
        } else {
            let path = path.to_owned();
            return Err(PackError::Special { path });
        }
    }
    let packed = builder.into_inner().and_then(GzEncoder::finish);
    let packed = packed.map_err(|source| PackError::Read {
        path: dir.to_owned(),
        source,
    })?;
    match packed.len() {
        size if size > BLOB => Err(PackError::LargeBlob { size }),
        _ => Ok(packed),
    }
}

/// A header without owner and time, so that the same files give the same bytes.
fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn append_file(builder: &mut Builder<GzEncoder<Vec<u8>>>, path: &Path, name: &Path) -> io::Result<u64> {
    use std::os::unix::fs::PermissionsExt as _;
    let bytes = fs_err::read(path)?;
    let mode = fs_err::metadata(path)?.permissions().mode();
    let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
    let size = bytes.len() as u64;
    builder.append_data(&mut header(EntryType::Regular, mode, size), name, &bytes[..])?;
    Ok(size)
}

/// The target of a link; an error if the link leads out of the directory.
fn link(path: &Path, name: &Path) -> Result<PathBuf, PackError> {
    let target = fs_err::read_link(path).map_err(|source| PackError::Read {
        path: path.to_owned(),
        source,
    })?;
    if stays_inside(name, &target) {
        return Ok(target);
    }
    let path = path.to_owned();
    Err(PackError::LinkOut { path, target })
}

/// Whether the link `name`, whose parents are directories, leads to a place below the root.
///
/// Steps upwards may stand only at the beginning of the target. After a name, which may itself be a link, they could
/// lead further up than the text shows.
pub(super) fn stays_inside(name: &Path, target: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    let mut is_below = false;
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => is_below = true,
            Component::ParentDir if depth > 0 && !is_below => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    target.components().next().is_some()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn links_stay_inside_also_through_other_links() {
        for (name, target, stays) in [
            ("a", "b", true),
            ("a", "./b/c", true),
            ("a/b", "../c", true),
            ("a/b", "../../c", false),
            ("a", "..", false),
            ("a", "b/..", false),
            ("a/b/c", "../../d", true),
            ("a/b/c", "../d/../../e", false),
            ("a", "/etc/passwd", false),
            ("a", "", false),
        ] {
            assert_eq!(
                stays_inside(name.as_ref(), target.as_ref()),
                stays,
                "{name} -> {target}"
            );
        }
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let make = || {
            let dir = tempfile::tempdir().unwrap();
            fs_err::create_dir_all(dir.path().join("hooks")).unwrap();
            fs_err::create_dir_all(dir.path().join(".git")).unwrap();
            fs_err::write(dir.path().join(".git/HEAD"), dir.path().display().to_string()).unwrap();
            fs_err::write(dir.path().join("hooks/run.sh"), "#!/bin/sh\n").unwrap();
            let mode = std::fs::Permissions::from_mode(0o700);
            fs_err::set_permissions(dir.path().join("hooks/run.sh"), mode).unwrap();
            symlink("run.sh", dir.path().join("hooks/again.sh")).unwrap();
            dir
        };
        let (one, two) = (make(), make());
        assert_eq!(pack(one.path()).unwrap(), pack(two.path()).unwrap());
    }

    #[test]
    fn files_that_cannot_be_packed_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs_err::write(&file, "").unwrap();
        assert!(matches!(pack(&file), Err(PackError::NoDirectory { .. })));
        symlink("/etc", dir.path().join("out")).unwrap();
        let error = pack(dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("out is a link to /etc, which is outside of the directory"),
            "{error}"
        );
        fs_err::remove_file(dir.path().join("out")).unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = pack(dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("socket is neither a file, a directory nor a link"),
            "{error}"
        );
    }
}
