//! The folder of one control plane or of a single registry: its owner, and its removal after the owner's end.
//!
//! The owner holds a lock on a file in its folder. The kernel releases the lock however the owner ends, so a folder
//! with a free lock is abandoned, and the next process that creates a folder removes it. Nothing else shows an owner;
//! process ids would not be reliable.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

const LOCK: &str = "owner.lock";

/// A folder owned by this process; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The lock on the folder; held as long as the folder is ours.
    _lock: fs::File,
}

impl Folder {
    /// Creates a folder for a control plane of this user. Removes folders of dead owners.
    pub(crate) fn create() -> io::Result<Self> {
        Self::create_as(PLANE)
    }

    /// Creates a folder for a registry without a control plane. Removes folders of dead owners.
    pub(crate) fn create_for_registry() -> io::Result<Self> {
        Self::create_as(REGISTRY)
    }

    fn create_as(prefix: &str) -> io::Result<Self> {
        let home = home();
        fs::create_dir_all(&home)?;
        // Between its creation and its lock a folder looks abandoned, so this lock keeps other processes from removing
        // it.
        let door = open(&home.join("lock"))?;
        door.file().lock()?;
        let all = folders(&home, PLANE).chain(folders(&home, REGISTRY));
        for abandoned in all.filter(|folder| !is_owned(folder)) {
            // The folder may belong to another user, or be in use by a dying process. Then the next process that
            // creates a folder tries again.
            let _ = fs::remove_dir_all(abandoned);
        }
        let path = tempfile::Builder::new().prefix(prefix).tempdir_in(&home)?.keep();
        Self::own(path)
    }

    /// Takes a given folder, which must be empty or absent.
    pub(crate) fn create_at(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        if path.join(LOCK).exists() && !is_owned(path) {
            fs::remove_dir_all(path)?;
            fs::create_dir_all(path)?;
        }
        if fs::read_dir(path)?.next().is_some() {
            let text = format!("{} is not empty", path.display());
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, text));
        }
        Self::own(fs::canonicalize(path)?)
    }

    fn own(path: PathBuf) -> io::Result<Self> {
        let lock = open(&path.join(LOCK))?;
        lock.file().try_lock()?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the next process that creates a folder removes the remains.
        let _ = fs::remove_dir_all(&self.path);
    }
}

const PLANE: &str = "plane-";
const REGISTRY: &str = "registry-";

fn home() -> PathBuf {
    // One folder per user, because nobody can remove the folders of another user.
    let user = std::fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or_default();
    std::env::temp_dir().join(format!("addon-operator-testbed-{user}"))
}

fn open(lock: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock)
}

fn folders(home: &Path, prefix: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
}

/// Whether a live process owns the folder.
pub(crate) fn is_owned(folder: &Path) -> bool {
    // Opened anew, because a lock belongs to the opened file: so a lock of this process is seen too.
    fs::OpenOptions::new()
        .write(true)
        .open(folder.join(LOCK))
        .is_ok_and(|lock| lock.file().try_lock().is_err())
}

/// The folders of all running control planes of this user.
pub(crate) fn owned() -> Vec<PathBuf> {
    folders(&home(), PLANE).filter(|folder| is_owned(folder)).collect()
}
