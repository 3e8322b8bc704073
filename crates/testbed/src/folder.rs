//! The folder of one control plane, or of a registry alone: who owns it, and what becomes of it when the owner is gone.
//!
//! An owner holds a lock on a file in its folder. The kernel lets go of it however the owner ends, so a folder whose
//! lock is free belongs to nobody, and the next start removes it. No other sign is trusted, process ids least of all.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

const LOCK: &str = "owner.lock";

/// A folder that we own; removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held for as long as the folder is ours.
    _lock: fs::File,
}

impl Folder {
    /// A fresh one among those of this user's control planes. Removes what dead owners left there.
    pub(crate) fn create() -> io::Result<Self> {
        Self::create_as(PLANE)
    }

    /// The same for a registry that belongs to no control plane.
    pub(crate) fn create_for_registry() -> io::Result<Self> {
        Self::create_as(REGISTRY)
    }

    fn create_as(prefix: &str) -> io::Result<Self> {
        let home = home();
        fs::create_dir_all(&home)?;
        // Between its creation and its lock a folder looks abandoned; nobody may sweep in that moment.
        let door = open(&home.join("lock"))?;
        door.file().lock()?;
        let all = folders(&home, PLANE).chain(folders(&home, REGISTRY));
        for abandoned in all.filter(|folder| !is_owned(folder)) {
            // Another user's, or still held by a dying process: the next start tries again.
            let _ = fs::remove_dir_all(abandoned);
        }
        let path = tempfile::Builder::new().prefix(prefix).tempdir_in(&home)?.keep();
        Self::own(path)
    }

    /// A given one, which must be empty or absent.
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
        // What cannot be removed now is swept by the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

const PLANE: &str = "plane-";
const REGISTRY: &str = "registry-";

fn home() -> PathBuf {
    // One per user: nobody could remove another's.
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

/// Whether a live process holds it.
pub(crate) fn is_owned(folder: &Path) -> bool {
    // Opened anew each time: a lock belongs to the opening, so that this also sees a lock of our own process.
    fs::OpenOptions::new()
        .write(true)
        .open(folder.join(LOCK))
        .is_ok_and(|lock| lock.file().try_lock().is_err())
}

/// The folders of all control planes of this user that run now.
pub(crate) fn owned() -> Vec<PathBuf> {
    folders(&home(), PLANE).filter(|folder| is_owned(folder)).collect()
}
