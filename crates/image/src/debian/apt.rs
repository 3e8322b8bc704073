//! Runs the apt of this machine, which knows the mirrors, fetches files, and knows the newest versions.
//!
//! Only apt's sources, its keys and its network settings are used. This module must never change the installed packages
//! or the package lists of the machine; its own lists are in a folder of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use testbed::process;
use thiserror::Error;

use crate::debian::Package;
use crate::debian::index::Index;
use crate::layer::sha256;

const GET: &str = "apt-get";
const CACHE: &str = "apt-cache";
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// The keys that sign Debian's lists of packages, at the path that Debian systems use.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// If apt runs as root, it switches to another user for downloads, and that user may not enter our folder. This option
/// makes apt stay root.
const SANDBOX: &str = "APT::Sandbox::User=root";

#[derive(Debug, Error)]
pub enum AptError {
    #[error("cannot run {0}; packages are fetched by the apt of a Debian")]
    Start(&'static str, #[source] io::Error),
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
    #[error("cannot keep packages")]
    Keep(#[from] io::Error),
    #[error("no source of this machine's apt serves {0}")]
    NoMirror(String),
    #[error(
        "cannot tell Debian's packages from others: the keys of Debian are not at {}; install debian-archive-keyring",
        .0.display()
    )]
    NoKeys(PathBuf),
    #[error(
        "the mirror has no longer, or has otherwise than pinned: {}; `make image-lock` takes today's versions. apt said: {said}",
        .gone.join(", ")
    )]
    Gone { gone: Vec<String>, said: String },
}

/// The URL of the mirror of each suite.
#[derive(Debug)]
pub struct Mirrors {
    sources: BTreeMap<String, String>,
}

impl Mirrors {
    /// The mirrors in the apt sources of this machine. `apt-get update` need not have been run.
    pub fn of_machine() -> Result<Self, AptError> {
        let format = [
            "indextargets",
            "--format",
            "$(RELEASE) $(REPO_URI)",
            "Created-By: Packages",
        ];
        Ok(Self::listed(&run(GET, &format)?))
    }

    fn listed(text: &str) -> Self {
        let mut sources = BTreeMap::new();
        for (suite, uri) in text.lines().filter_map(|line| line.split_once(' ')) {
            // Third-party sources may use the same names of suites. URLs of Debian's own mirrors contain "debian".
            let ours = uri.contains("debian");
            if ours {
                sources.entry(suite.to_owned()).or_insert_with(|| uri.to_owned());
            }
        }
        Self { sources }
    }

    /// The mirror of a suite. The mirror of the machine's release has all other releases, too; security updates have another mirror.
    fn of(&self, suite: &str) -> Result<&str, AptError> {
        let part = |suite: &str| suite.split_once('-').map(|(_, part)| part.to_owned());
        let same = || self.sources.iter().find(|(known, _)| part(known) == part(suite));
        let mirror = self.sources.get_key_value(suite).or_else(same);
        mirror
            .map(|(_, uri)| uri.as_str())
            .ok_or_else(|| AptError::NoMirror(suite.to_owned()))
    }

    /// The files of the packages, in the order of the packages. A file that is not in `folder` yet is fetched into it,
    /// and only with its pinned checksum.
    pub fn fetch(&self, packages: &[&Package], folder: &Path) -> Result<Vec<PathBuf>, AptError> {
        fs::create_dir_all(folder)?;
        let kept = |package: &Package| folder.join(package.file_name());
        let good = |package: &Package, file: &Path| fs::read(file).is_ok_and(|bytes| sha256(&bytes) == package.sha256);
        let missing: Vec<&Package> = packages
            .iter()
            .copied()
            .filter(|package| !good(package, &kept(package)))
            .collect();
        if !missing.is_empty() {
            let arriving = tempfile::Builder::new().prefix(".arriving-").tempdir_in(folder)?;
            let mut arguments: Vec<String> = ["-o", SANDBOX, "download-file"].map(str::to_owned).to_vec();
            for package in &missing {
                let mirror = self.of(&package.suite)?.trim_end_matches('/');
                arguments.push(format!("{mirror}/{}", package.path));
                arguments.push(arriving.path().join(package.file_name()).display().to_string());
                arguments.push(format!("SHA256:{}", package.sha256));
            }
            let outcome = run(HELPER, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let mut gone = Vec::new();
            for package in missing {
                let arrived = arriving.path().join(package.file_name());
                if good(package, &arrived) {
                    fs::rename(arrived, kept(package))?;
                } else {
                    gone.push(package.to_string());
                }
            }
            if !gone.is_empty() {
                let said = outcome
                    .err()
                    .map_or_else(|| "nothing".to_owned(), |error| error.to_string());
                return Err(AptError::Gone { gone, said });
            }
        }
        Ok(packages.iter().map(|package| kept(package)).collect())
    }

    /// The packages that the suites have today for an architecture, and the suite of each package by its path. Apt
    /// verifies the lists of the suites with Debian's keys.
    pub fn today(&self, suites: &[String], architecture: &str) -> Result<Today, AptError> {
        let folder = tempfile::Builder::new().prefix("image-lock-").tempdir()?;
        let options = self.private_apt(folder.path(), suites, architecture, Path::new(KEYRING))?;
        let with = |arguments: &[&str]| -> Vec<String> {
            options
                .iter()
                .map(String::as_str)
                .chain(arguments.iter().copied())
                .map(str::to_owned)
                .collect()
        };
        run(GET, &with(&["update"]))?;
        let index = Index::read(&run(CACHE, &with(&["dumpavail"]))?);
        let lists = run(
            GET,
            &with(&[
                "indextargets",
                "--format",
                "$(RELEASE) $(FILENAME)",
                "Created-By: Packages",
            ]),
        )?;
        let mut suite_of = BTreeMap::new();
        for (suite, file) in lists.lines().filter_map(|line| line.split_once(' ')) {
            // A suite without packages has no list.
            if !Path::new(file).exists() {
                continue;
            }
            let text = run(HELPER, &["cat-file", file])?;
            let paths = text.lines().filter_map(|line| line.strip_prefix("Filename: "));
            suite_of.extend(paths.map(|path| (path.to_owned(), suite.to_owned())));
        }
        Ok(Today { index, suite_of })
    }

    /// An apt with only these suites, whose state is kept in `folder`.
    fn private_apt(
        &self,
        folder: &Path,
        suites: &[String],
        architecture: &str,
        keyring: &Path,
    ) -> Result<Vec<String>, AptError> {
        // Without this check apt would accept any other key that this machine trusts.
        if !keyring.exists() {
            return Err(AptError::NoKeys(keyring.to_owned()));
        }
        let within = |name: &str| folder.join(name).display().to_string();
        for name in ["lists/partial", "cache/archives/partial", "parts"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let signed = format!("[signed-by={}] ", keyring.display());
        let mut sources = String::new();
        for suite in suites {
            sources.extend(["deb ", &signed, self.of(suite)?, " ", suite, " main\n"]);
        }
        fs::write(folder.join("sources.list"), sources)?;
        fs::write(folder.join("status"), "")?;
        let settings = [
            format!("APT::Architecture={architecture}"),
            format!("APT::Architectures={architecture}"),
            SANDBOX.to_owned(),
            "Acquire::Languages=none".to_owned(),
            "APT::Update::Error-Mode=any".to_owned(),
            format!("Dir::State::lists={}", within("lists")),
            format!("Dir::State::status={}", within("status")),
            format!("Dir::Cache={}", within("cache")),
            format!("Dir::Etc::sourcelist={}", within("sources.list")),
            format!("Dir::Etc::sourceparts={}", within("parts")),
        ];
        Ok(settings
            .into_iter()
            .flat_map(|setting| ["-o".to_owned(), setting])
            .collect())
    }
}

/// The packages that the suites have at the moment.
#[derive(Debug)]
pub struct Today {
    pub index: Index,
    /// The suite of a package, by the path of its file: two suites may have the same file on different mirrors.
    pub suite_of: BTreeMap<String, String>,
}

fn run(program: &'static str, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Result<String, AptError> {
    let mut command = process::command(program);
    command.args(arguments).env("LC_ALL", "C.UTF-8");
    let output = process::run(command, None).map_err(|source| AptError::Start(program, source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("E: ") || line.starts_with("Err:"))
        .collect();
    let said = if errors.is_empty() {
        said.trim().to_owned()
    } else {
        errors.join("; ")
    };
    Err(AptError::Failed { program, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_of_a_suite_is_debians() {
        let listed = "stable https://packages.example/apt/\nbookworm http://mirror.example/debian/\nbookworm http://other.example/debian/\n";
        let mirrors = Mirrors::listed(listed);
        assert_eq!(mirrors.of("bookworm").unwrap(), "http://mirror.example/debian/");
        // Another release is on the same mirror, and security updates are not.
        assert_eq!(mirrors.of("trixie").unwrap(), "http://mirror.example/debian/");
        assert!(matches!(mirrors.of("trixie-security"), Err(AptError::NoMirror(_))));
    }

    #[test]
    fn without_the_keys_of_debian_nobody_is_asked_what_is_newest() {
        let mirrors = Mirrors::listed("bookworm http://mirror.example/debian/\n");
        let folder = tempfile::tempdir().unwrap();
        let keyring = folder.path().join("keys.gpg");
        let suites = ["bookworm".to_owned()];
        let refused = mirrors
            .private_apt(folder.path(), &suites, "amd64", &keyring)
            .unwrap_err();
        assert!(
            refused.to_string().ends_with("install debian-archive-keyring"),
            "{refused}"
        );
        fs::write(&keyring, "").unwrap();
        mirrors.private_apt(folder.path(), &suites, "amd64", &keyring).unwrap();
        let sources = fs::read_to_string(folder.path().join("sources.list")).unwrap();
        let signed = format!(
            "deb [signed-by={}] http://mirror.example/debian/ bookworm main\n",
            keyring.display()
        );
        assert_eq!(sources, signed);
    }
}
