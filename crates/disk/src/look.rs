//! Examines one path. It counts as absent only if the file system says "not found"; any other error is a fault.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use super::Fault;

/// The metadata of a path; links are followed.
pub(super) fn at(path: &Path) -> Result<Option<Metadata>, Fault> {
    match fs_err::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs_err::symlink_metadata(path) {
            Ok(_) => Err(Fault::DanglingLink),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::Unreadable(error)),
        },
        Err(error) => Err(Fault::Unreadable(error)),
    }
}

/// Whether there is a directory at the path. Another kind of file at the path is a fault.
pub(super) fn is_dir(path: &Path) -> Result<bool, Fault> {
    match at(path)? {
        Some(found) if found.is_dir() => Ok(true),
        Some(_) => Err(Fault::NoDirectory),
        None => Ok(false),
    }
}
