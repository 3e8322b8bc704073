//! The unix socket: only its owner may open it, and it is removed at the end.

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// Why there is no debug socket.
#[derive(Debug, Error)]
pub enum SocketError {
    #[error("cannot make directory {path} for the debug socket")]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot replace {path}, which is no socket")]
    NoSocket { path: PathBuf },
    #[error("another operator answers on {path}")]
    Taken { path: PathBuf },
    #[error("cannot listen on {path}")]
    Listen { path: PathBuf, source: io::Error },
    #[error("cannot make {path} ours alone")]
    Permissions { path: PathBuf, source: io::Error },
}

/// Deletes the socket's file when it is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may already be deleted. An error at the end of the process needs no report.
        drop(fs_err::remove_file(&self.0));
    }
}

/// Listens on `path`. A socket that a killed process left there is replaced.
///
/// The socket gets its permissions under another name and is then renamed, so that it is never open to others.
pub async fn bind(path: &Path) -> Result<(UnixListener, SocketFile), SocketError> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| SocketError::Directory {
            path: dir.to_owned(),
            source,
        })?;
    }
    match fs_err::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::NoSocket { path: path.to_owned() });
        }
        Ok(_) if UnixStream::connect(path).await.is_ok() => return Err(SocketError::Taken { path: path.to_owned() }),
        Ok(_) | Err(_) => {}
    }
    let hidden = hidden_name(path);
    drop(fs_err::remove_file(&hidden));
    let listener = UnixListener::bind(&hidden).map_err(|source| SocketError::Listen {
        path: path.to_owned(),
        source,
    })?;
    let file = SocketFile(hidden.clone());
    let permissions = std::fs::Permissions::from_mode(0o600);
    fs_err::set_permissions(&hidden, permissions)
        .and_then(|()| fs_err::rename(&hidden, path))
        .map_err(|source| SocketError::Permissions {
            path: path.to_owned(),
            source,
        })?;
    // The socket's file has been renamed, so this deletes nothing.
    drop(file);
    Ok((listener, SocketFile(path.to_owned())))
}

/// A name beside `path` that no other process uses.
fn hidden_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_ours_alone_and_goes_with_us() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/down/debug.socket");
        let (listener, file) = bind(&path).await.unwrap();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let names: Vec<_> = fs_err::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        UnixStream::connect(&path).await.unwrap();
        assert!(matches!(bind(&path).await, Err(SocketError::Taken { .. })));
        drop((listener, file));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_killed_predecessor_left_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("debug.socket");
        let (listener, file) = bind(&path).await.unwrap();
        std::mem::forget(file);
        drop(listener);
        assert!(path.exists());
        let _second = bind(&path).await.unwrap();
        let other = dir.path().join("notes.txt");
        fs_err::write(&other, "mine").unwrap();
        assert!(matches!(bind(&other).await, Err(SocketError::NoSocket { .. })));
        assert_eq!(fs_err::read_to_string(&other).unwrap(), "mine");
    }
}
