//! The jq of the image as a program of this machine, for hooks of tests: pinned packages are unpacked, and run with their own C library.
//!
//! Must never install anything on the machine.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use thiserror::Error;

use crate::debian::apt::{AptError, Mirrors};
use crate::debian::archive::{ArchiveError, dpkg_deb};
use crate::debian::{Lock, LockError, Package};

/// jq and all that it needs.
const PACKAGES: [&str; 4] = ["jq", "libjq1", "libonig5", "libc6"];
/// The file with the packages that were unpacked.
const STAMP: &str = "packages";

/// Why there is no jq of the image.
#[derive(Debug, Error)]
pub enum JqError {
    #[error("there is no folder for it: set TESTBED_CACHE")]
    NoCache,
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("the lock does not name {0}")]
    NotPinned(&'static str),
    #[error(transparent)]
    Apt(#[from] AptError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error("cannot keep jq")]
    Keep(#[from] io::Error),
}

/// Puts jq and its libraries into the testbed's cache, unless those of this lock are there.
pub fn provide(lock: &Path) -> Result<(), JqError> {
    let lock = Lock::read(lock)?;
    let folder = &testbed::jq::folder().ok_or(JqError::NoCache)?;
    let found = |name| {
        lock.packages()
            .find(|package| package.name == name)
            .ok_or(JqError::NotPinned(name))
    };
    let packages: Vec<&Package> = PACKAGES.into_iter().map(found).collect::<Result<_, _>>()?;
    let stamp: Vec<&str> = packages.iter().map(|package| package.sha256.as_str()).collect();
    let stamp = stamp.join("\n");
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|there| there == stamp) {
        return Ok(());
    }
    let within = folder.parent().unwrap_or(folder);
    fs::create_dir_all(within)?;
    let arriving = tempfile::Builder::new().prefix(".arriving-jq-").tempdir_in(within)?;
    let kept = arriving.path().join("kept");
    for file in Mirrors::of_machine()?.fetch(&packages, &kept)? {
        let archive = dpkg_deb("--fsys-tarfile", &file)?;
        tar::Archive::new(archive.as_slice()).unpack(arriving.path())?;
    }
    fs::remove_dir_all(kept)?;
    write_starter(arriving.path(), folder)?;
    fs::write(arriving.path().join(STAMP), stamp)?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::rename(arriving.keep(), folder)?)
}

/// Writes the program `jq`, which starts the unpacked one with the C library beside it.
fn write_starter(unpacked: &Path, folder: &Path) -> io::Result<()> {
    let (libraries, loader) = loader(unpacked)?;
    let libraries = folder.join(libraries);
    let (libraries, jq) = (libraries.display(), folder.join("usr/bin/jq"));
    let text = format!(
        "#!/bin/sh\nexec {libraries}/{loader} --library-path {libraries} {} \"$@\"\n",
        jq.display()
    );
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o755);
    io::Write::write_all(&mut options.open(unpacked.join("jq"))?, text.as_bytes())
}

/// The folder with the libraries of this machine's architecture, and the name of their loader.
fn loader(unpacked: &Path) -> io::Result<(PathBuf, String)> {
    for folder in fs::read_dir(unpacked.join("usr/lib"))? {
        let folder = PathBuf::from("usr/lib").join(folder?.file_name());
        if !folder.to_string_lossy().ends_with("-linux-gnu") {
            continue;
        }
        for file in fs::read_dir(unpacked.join(&folder))? {
            let name = file?.file_name().to_string_lossy().into_owned();
            if name.starts_with("ld-linux") {
                return Ok((folder, name));
            }
        }
    }
    Err(io::Error::other("libc6 has no loader"))
}
