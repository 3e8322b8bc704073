//! The things of the machine that a node needs, and the packages that bring them.
//!
//! Only [`install`] changes the machine, and only by its package system.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::environment;
use crate::find::is_executable;
use crate::process;

/// Programs, each with the Debian package that has it.
const PROGRAMS: [(&str, &str); 6] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("cc", "gcc"),
];

/// The plugins that connect pods, and the folders in which distributions keep them.
const PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];
const FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
const PLUGINS_PACKAGE: &str = "containernetworking-plugins";

/// The Debian packages that are missing.
pub fn missing_packages() -> Vec<&'static str> {
    let absent = PROGRAMS.iter().filter(|(name, _)| found(name).is_none());
    let mut packages: Vec<&str> = absent.map(|(_, package)| *package).collect();
    if plugins_in().is_none() {
        packages.push(PLUGINS_PACKAGE);
    }
    packages
}

/// The reason for which this machine can have no node; none if it can.
pub fn obstacle() -> Option<String> {
    let packages = missing_packages();
    if !packages.is_empty() {
        return Some(format!("this machine has no {}", packages.join(", ")));
    }
    if !rustix::process::geteuid().is_root() {
        return Some("the user is not root".to_owned());
    }
    refused_namespaces().or_else(overlaid_folder)
}

/// The error of the kernel if it refuses the namespaces of a node. In an ordinary container root lacks the right to
/// make them.
fn refused_namespaces() -> Option<String> {
    let mut command = process::command("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "true"]);
    let refused = match process::run(command, None) {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("root may not make namespaces here ({refused})"))
}

/// Whether the temporary folder is on an overlay, in which containerd cannot make other overlays.
fn overlaid_folder() -> Option<String> {
    const OVERLAY: u64 = 0x794c_7630;
    let folder = std::env::temp_dir();
    let kind = rustix::fs::statfs(&folder).map(|about| about.f_type);
    let is_overlay = kind.is_ok_and(|kind| u64::try_from(kind) == Ok(OVERLAY));
    is_overlay.then(|| format!("{} is on an overlay; TMPDIR may name another folder", folder.display()))
}

#[derive(Debug, Error)]
pub enum InstallError {
    #[error("{0}, and only apt can install packages here")]
    NoApt(String),
    #[error("{0}, and only root can install packages")]
    NotRoot(String),
    #[error("cannot run apt-get")]
    Run(#[from] io::Error),
    #[error("apt-get cannot install {packages}: {said}")]
    Refused { packages: String, said: String },
}

/// Installs the missing packages with apt, as root. Returns their names.
pub fn install() -> Result<Vec<&'static str>, InstallError> {
    let packages = missing_packages();
    if packages.is_empty() {
        return Ok(packages);
    }
    let lack = || obstacle().unwrap_or_default();
    if found("apt-get").is_none() {
        return Err(InstallError::NoApt(lack()));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(InstallError::NotRoot(lack()));
    }
    apt(&packages, &["update", "--quiet=2"])?;
    apt(&packages, &["install", "--quiet=2", "--yes", "--no-install-recommends"])?;
    Ok(packages)
}

fn apt(packages: &[&str], words: &[&str]) -> Result<(), InstallError> {
    let mut command = process::command("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    if words.first() == Some(&"install") {
        command.args(packages);
    }
    let output = process::run(command, None)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().next_back().unwrap_or_default().to_owned();
    Err(InstallError::Refused {
        packages: packages.join(", "),
        said: last,
    })
}

/// The folder with the plugins.
pub(super) fn plugins() -> PathBuf {
    plugins_in().unwrap_or_else(|| PathBuf::from(FOLDERS[0]))
}

fn plugins_in() -> Option<PathBuf> {
    let has_all = |folder: &Path| PLUGINS.iter().all(|name| is_executable(&folder.join(name)));
    FOLDERS.iter().map(PathBuf::from).find(|folder| has_all(folder))
}

fn found(program: &str) -> Option<PathBuf> {
    let places = std::env::split_paths(&path())
        .map(|folder| folder.join(program))
        .collect::<Vec<_>>();
    places.into_iter().find(|file| is_executable(file))
}

/// The search path of a node's programs. Some of them are often in a folder that is on the `PATH` of root only.
pub(crate) fn path() -> OsString {
    let mut path = environment::path();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    path
}
