//! Pinned packages of Debian: their names, versions and checksums.
//!
//! A lock names the `.deb` file of each package. It must never be renewed as a side effect: if a pinned package is
//! missing, the image is not assembled.

pub mod apt;
pub mod archive;
pub mod index;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use thiserror::Error;

/// One pinned package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// The suite of Debian that the package was taken from, and from whose mirror it is fetched.
    pub suite: String,
    /// The path of the package's file on the mirror.
    pub path: String,
    pub sha256: String,
}

impl Package {
    /// The base name of the package's file.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl fmt::Display for Package {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.version)
    }
}

/// All packages of an image, in the order in which they are unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    packages: BTreeMap<String, Package>,
}

#[derive(Debug, Error)]
pub enum LockError {
    #[error("cannot use the lock of the packages")]
    File(#[from] io::Error),
    #[error("{}:{line}: a package is written as NAME VERSION SUITE PATH SHA256", file.display())]
    Syntax { file: PathBuf, line: usize },
    #[error("{} names no version of {package}; `make image-lock` renews it", file.display())]
    Missing { file: PathBuf, package: String },
}

const HEAD: &str = "\
# The Debian packages of the image and what they depend on, pinned: name, version, suite, file and sha256.
# Written by `make image-lock`, which takes the newest versions of the suites that image.yaml names.
";

impl Lock {
    pub fn new(packages: impl IntoIterator<Item = Package>) -> Self {
        Self {
            packages: packages
                .into_iter()
                .map(|package| (package.name.clone(), package))
                .collect(),
        }
    }

    pub fn read(file: &Path) -> Result<Self, LockError> {
        let text = fs::read_to_string(file)?;
        let mut packages = Vec::new();
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
        {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, version, suite, path, sha256] = words[..] else {
                return Err(LockError::Syntax {
                    file: file.to_owned(),
                    line: index + 1,
                });
            };
            packages.push(Package {
                name: name.to_owned(),
                version: version.to_owned(),
                suite: suite.to_owned(),
                path: path.to_owned(),
                sha256: sha256.to_owned(),
            });
        }
        Ok(Self::new(packages))
    }

    /// Does the lock have all these packages? Dependencies are not checked: they were resolved when the lock was
    /// written.
    pub fn covers<'a>(&self, names: impl IntoIterator<Item = &'a str>, file: &Path) -> Result<(), LockError> {
        let missing = names.into_iter().find(|name| !self.packages.contains_key(*name));
        missing.map_or(Ok(()), |name| {
            Err(LockError::Missing {
                file: file.to_owned(),
                package: name.to_owned(),
            })
        })
    }

    pub fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    pub fn write(&self, file: &Path) -> Result<(), LockError> {
        Ok(fs::write(file, self.to_string())?)
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HEAD)?;
        for Package {
            name,
            version,
            suite,
            path,
            sha256,
        } in self.packages.values()
        {
            writeln!(out, "{name} {version} {suite} {path} {sha256}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "1:2-3+b4".to_owned(),
            suite: "bookworm".to_owned(),
            path: format!("pool/{name}_2-3+b4_amd64.deb"),
            sha256: "ab".repeat(32),
        }
    }

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("amd64.lock");
        let lock = Lock::new([package("jq"), package("bash")]);
        lock.write(&file).unwrap();
        assert_eq!(Lock::read(&file).unwrap(), lock);
        let names: Vec<&str> = lock.packages().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["bash", "jq"]);
        assert_eq!(package("jq").file_name(), "jq_2-3+b4_amd64.deb");
    }

    #[test]
    fn a_package_without_a_version_and_a_line_without_a_sense_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("amd64.lock");
        Lock::new([package("bash")]).write(&file).unwrap();
        let lock = Lock::read(&file).unwrap();
        lock.covers(["bash"], &file).unwrap();
        let error = lock.covers(["bash", "jq"], &file).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("names no version of jq; `make image-lock` renews it"),
            "{error}"
        );
        fs::write(&file, "# head\nbash 1\n").unwrap();
        let error = Lock::read(&file).unwrap_err();
        assert!(error.to_string().contains("amd64.lock:2: "), "{error}");
    }
}
