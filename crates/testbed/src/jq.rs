//! The jq of the image, for hooks of tests: they run with the jq that they have in a cluster. That of an older Debian takes eight times as
//! long to start, and the hooks of one suite start it ten thousand times.
//!
//! Debian's own packages are unpacked, and run with their own C library. Must never install anything on the machine.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use thiserror::Error;

use crate::environment;
use crate::process;

/// The pinned packages of the image.
#[cfg(target_arch = "x86_64")]
const LOCK: &str = include_str!("../../../image/amd64.lock");
#[cfg(target_arch = "aarch64")]
const LOCK: &str = include_str!("../../../image/arm64.lock");

/// jq and all that it needs.
const PACKAGES: [&str; 4] = ["jq", "libjq1", "libonig5", "libc6"];
const MIRROR: &str = "http://deb.debian.org/debian";
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// The path of the programs that hooks call.
const USUAL: &str = "/usr/bin:/bin";

/// Why hooks of tests use the machine's jq.
#[derive(Debug, Error)]
pub enum JqError {
    #[error("there is no folder to keep it in")]
    NoCache,
    #[error("the image's lock does not name {0}")]
    NotPinned(&'static str),
    #[error("cannot run {program}")]
    Start { program: &'static str, source: io::Error },
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
    #[error("cannot keep it")]
    Keep(#[from] io::Error),
}

/// A pinned package.
struct Pinned<'a> {
    version: &'a str,
    suite: &'a str,
    path: &'a str,
    sha256: &'a str,
}

fn pinned(name: &'static str) -> Result<Pinned<'static>, JqError> {
    let mut lines = LOCK.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = lines.find_map(|words| match words[..] {
        [package, version, suite, path, sha256] if package == name => Some(Pinned {
            version,
            suite,
            path,
            sha256,
        }),
        _ => None,
    });
    found.ok_or(JqError::NotPinned(name))
}

/// The folder with the image's jq, whether it is there or not.
fn folder() -> Result<PathBuf, JqError> {
    let cache = environment::cache().ok_or(JqError::NoCache)?;
    Ok(cache.join(format!(
        "jq-{}-libc-{}",
        pinned("jq")?.version,
        pinned("libc6")?.version
    )))
}

/// The search path for hooks: with the image's jq, if `provide` was successful on this machine.
pub fn search_path() -> String {
    match folder() {
        Ok(folder) if folder.is_dir() => format!("{}:{USUAL}", folder.display()),
        _ => USUAL.to_owned(),
    }
}

/// Fetches the image's jq into the cache, unless it is there.
pub fn provide() -> Result<(), JqError> {
    let folder = folder()?;
    if folder.is_dir() {
        return Ok(());
    }
    let cache = folder.parent().ok_or(JqError::NoCache)?;
    fs::create_dir_all(cache)?;
    let arriving = tempfile::Builder::new().prefix(".arriving-jq-").tempdir_in(cache)?;
    for name in PACKAGES {
        unpack(&pinned(name)?, arriving.path())?;
    }
    write_starter(arriving.path(), &folder)?;
    let arrived = arriving.keep();
    let renamed = fs::rename(&arrived, &folder);
    if renamed.is_err() {
        fs::remove_dir_all(&arrived)?;
    }
    // Another process may have been quicker.
    if folder.is_dir() { Ok(()) } else { Ok(renamed?) }
}

/// Fetches a package by apt, which checks it and knows proxies, and unpacks it.
fn unpack(package: &Pinned<'_>, into: &Path) -> Result<(), JqError> {
    let part = if package.suite.ends_with("-security") {
        "-security"
    } else {
        ""
    };
    let file = into.join("package.deb").display().to_string();
    let url = format!("{MIRROR}{part}/{}", package.path);
    let sum = format!("SHA256:{}", package.sha256);
    run(
        HELPER,
        &["-o", "APT::Sandbox::User=root", "download-file", &url, &file, &sum],
    )?;
    run("dpkg-deb", &["--extract", &file, &into.display().to_string()])?;
    Ok(fs::remove_file(file)?)
}

/// Writes the program `jq`, which starts the unpacked one with the C library beside it.
fn write_starter(unpacked: &Path, folder: &Path) -> Result<(), JqError> {
    let libraries = fs::read_dir(unpacked.join("usr/lib"))?;
    let libraries = libraries.filter_map(Result::ok).map(|entry| entry.path());
    let of_machine = libraries
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"))
        .find_map(|path| {
            let names = fs::read_dir(&path).ok()?.filter_map(Result::ok);
            let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let loader = names.find(|name| name.starts_with("ld-linux"))?;
            Some((folder.join(path.strip_prefix(unpacked).ok()?), loader))
        });
    let (libraries, loader) = of_machine.ok_or_else(|| io::Error::other("libc6 has no loader"))?;
    let (libraries, jq) = (libraries.display(), folder.join("usr/bin/jq"));
    let text = format!(
        "#!/bin/sh\nexec {libraries}/{loader} --library-path {libraries} {} \"$@\"\n",
        jq.display()
    );
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(unpacked.join("jq"))?;
    Ok(io::Write::write_all(&mut file, text.as_bytes())?)
}

fn run(program: &'static str, arguments: &[&str]) -> Result<(), JqError> {
    let mut command = process::command(program);
    command.args(arguments);
    let output = process::run(command, None).map_err(|source| JqError::Start { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(JqError::Failed { program, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_pins_jq_and_all_that_it_needs() {
        for name in PACKAGES {
            assert_eq!(pinned(name).unwrap().sha256.len(), 64, "{name}");
        }
    }
}
