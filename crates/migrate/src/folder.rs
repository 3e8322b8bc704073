//! The folder with the plan: written beside its place and then renamed.
//!
//! Must never write into a folder that has contents, and never leave half of a plan.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use std::io::Write as _;

use tempfile::TempDir;
use thiserror::Error;

/// Nobody else may read a file with values.
const PRIVATE: u32 = 0o600;

/// Why the folder is not written.
#[derive(Debug, Error)]
pub enum FolderError {
    #[error("the folder {} has contents already: name one that is empty, or not there yet", .0.display())]
    Taken(PathBuf),
    #[error("the folder {} is the one from which you run this: name one below it", .0.display())]
    Here(PathBuf),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A folder in the making. It goes with this value unless it is finished.
#[derive(Debug)]
pub struct Folder {
    making: TempDir,
    target: Option<PathBuf>,
}

impl Folder {
    /// Begins a folder. Without a target it only serves to compare.
    pub fn begin(target: Option<&Path>) -> Result<Self, FolderError> {
        let Some(target) = target else {
            let making = tempfile::tempdir().map_err(failed(&std::env::temp_dir()))?;
            return Ok(Self { making, target: None });
        };
        match fs_err::read_dir(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(FolderError::Taken(target.to_owned()));
                }
                // It would be replaced, and a shell in it would be nowhere.
                if fs_err::canonicalize(target).ok() == fs_err::canonicalize(".").ok() {
                    return Err(FolderError::Here(target.to_owned()));
                }
            }
            Err(source) => return Err(failed(target)(source)),
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        fs_err::create_dir_all(parent).map_err(failed(parent))?;
        let making = tempfile::Builder::new()
            .prefix(".migrate-")
            .tempdir_in(parent)
            .map_err(failed(parent))?;
        Ok(Self {
            making,
            target: Some(target.to_owned()),
        })
    }

    pub fn path(&self) -> &Path {
        self.making.path()
    }

    /// Moves the folder to its place. An empty folder there is replaced; one that has contents by now is not.
    pub fn finish(self) -> Result<(), FolderError> {
        let Some(target) = self.target else {
            return Ok(());
        };
        let making = self.making.keep();
        fs_err::rename(&making, &target).map_err(|source| {
            drop(fs_err::remove_dir_all(&making));
            match source.kind() {
                io::ErrorKind::DirectoryNotEmpty => FolderError::Taken(target.clone()),
                _ => failed(&target)(source),
            }
        })
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |source| FolderError::Write { path, source }
}

/// Writes files into a directory, by their paths in it.
pub fn write(dir: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), FolderError> {
    for (path, bytes) in files {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).map_err(failed(parent))?;
        }
        fs_err::write(&path, bytes).map_err(failed(&path))?;
    }
    Ok(())
}

/// Writes a file that may hold secrets.
pub fn write_private(path: &Path, text: &str) -> Result<(), FolderError> {
    let file = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(PRIVATE)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(failed(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_contents_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("plan");
        fs_err::create_dir(&target).unwrap();
        let late = Folder::begin(Some(&target)).unwrap();
        fs_err::write(target.join("mine"), "x").unwrap();
        assert!(matches!(late.finish(), Err(FolderError::Taken(_))));
        assert!(matches!(Folder::begin(Some(&target)), Err(FolderError::Taken(_))));
        let left: Vec<_> = fs_err::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_folder_is_there_as_a_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("deep/plan");
        drop(Folder::begin(Some(&target)).unwrap());
        assert!(!target.exists());
        let folder = Folder::begin(Some(&target)).unwrap();
        write(folder.path(), &[("a/b".to_owned(), b"c".to_vec())].into()).unwrap();
        assert!(!target.exists());
        folder.finish().unwrap();
        assert_eq!(fs_err::read(target.join("a/b")).unwrap(), b"c");
        assert_eq!(fs_err::read_dir(dir.path().join("deep")).unwrap().count(), 1);
    }
}
