//! The file that lists what goes into the image, checked once.
//!
//! It must never depend on the machine: where a program or a folder of the repository lies is an input of the assembly.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use serde::Deserialize;
use thiserror::Error;

use crate::place::ImagePath;

/// What goes in, from the bottom layer to the top, and how it is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Definition {
    pub debian: Debian,
    pub layers: Vec<Layer>,
    pub run: Run,
    /// Labels of the image, and annotations of its manifest.
    pub labels: BTreeMap<String, String>,
}

/// Which packages may be taken, and what of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Debian {
    pub suites: Vec<String>,
    /// Packages that others depend on and that we do without, each with the reason.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Folders of packages that stay out.
    #[serde(default)]
    pub leave_out: Vec<ImagePath>,
    /// Names of files that come in all the same.
    #[serde(default)]
    pub keep: BTreeSet<String>,
}

/// One layer. Its parts are put in in the order of the fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Layer {
    pub name: String,
    #[serde(default)]
    pub folders: BTreeMap<ImagePath, Mode>,
    #[serde(default)]
    pub links: BTreeMap<ImagePath, String>,
    /// Names of Debian packages; what they depend on comes with them.
    #[serde(default)]
    pub packages: BTreeSet<String>,
    #[serde(default)]
    pub files: BTreeMap<ImagePath, String>,
    /// Files that are all files of a folder of the image, one after the other.
    #[serde(default)]
    pub bundles: BTreeMap<ImagePath, ImagePath>,
    #[serde(default)]
    pub programs: BTreeMap<ImagePath, Program>,
    /// Files and folders of the repository.
    #[serde(default)]
    pub copies: BTreeMap<ImagePath, RepositoryPath>,
}

/// The rights to a folder, written in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mode(pub u32);

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o1777);
        mode.map(Self)
            .ok_or_else(|| format!("'{text}' are no rights as in \"0755\""))
    }
}

/// A program that is built, not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// Ours.
    Operator,
    Kubectl,
    Helm3,
    Helm4,
}

/// A path inside the repository.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PathBuf")]
pub struct RepositoryPath(PathBuf);

impl RepositoryPath {
    pub fn within(&self, repository: &Path) -> PathBuf {
        repository.join(&self.0)
    }
}

impl TryFrom<PathBuf> for RepositoryPath {
    type Error = String;

    fn try_from(path: PathBuf) -> Result<Self, String> {
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if inside && path.components().next().is_some() {
            Ok(Self(path))
        } else {
            Err(format!("'{}' leads out of the repository", path.display()))
        }
    }
}

/// How a container of the image is run unless it is told otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Run {
    /// Numbers, because a kubelet that must not run root cannot tell from a name.
    pub user: String,
    pub directory: String,
    pub entrypoint: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Error)]
pub enum DefinitionError {
    #[error("cannot read the definition of the image")]
    Read(#[from] io::Error),
    #[error("cannot understand {}", file.display())]
    Syntax {
        file: PathBuf,
        source: Box<serde_saphyr::Error>,
    },
    #[error("layer '{0}' of the image names nothing")]
    EmptyLayer(String),
    #[error("two layers of the image are called '{0}'")]
    TwoLayers(String),
    #[error("layer '{0}' of the image names packages, and so does one below it")]
    PackagesTwice(String),
    #[error("user '{0}' of the image is not written as two numbers, as in 65532:65532, or it is root")]
    User(String),
}

impl Definition {
    pub fn read(file: &Path) -> Result<Self, DefinitionError> {
        let text = fs::read_to_string(file)?;
        let definition: Self = serde_saphyr::from_str(&text).map_err(|error| DefinitionError::Syntax {
            file: file.to_owned(),
            source: Box::new(error),
        })?;
        definition.check()
    }

    fn check(self) -> Result<Self, DefinitionError> {
        let mut names = BTreeSet::new();
        for layer in &self.layers {
            if layer.is_empty() {
                return Err(DefinitionError::EmptyLayer(layer.name.clone()));
            }
            if !names.insert(&layer.name) {
                return Err(DefinitionError::TwoLayers(layer.name.clone()));
            }
        }
        // What packages depend on is one set, and belongs to one layer.
        if let Some(second) = self.layers.iter().filter(|layer| !layer.packages.is_empty()).nth(1) {
            return Err(DefinitionError::PackagesTwice(second.name.clone()));
        }
        let number = |text: &str| text.parse::<u32>().is_ok_and(|number| number > 0);
        let user = self.run.user.split_once(':');
        if !user.is_some_and(|(user, group)| number(user) && number(group)) {
            return Err(DefinitionError::User(self.run.user));
        }
        Ok(self)
    }

    /// All packages that it names.
    pub fn packages(&self) -> BTreeSet<&str> {
        self.layers
            .iter()
            .flat_map(|layer| &layer.packages)
            .map(String::as_str)
            .collect()
    }

    /// All programs that have to be built for it.
    pub fn programs(&self) -> BTreeSet<Program> {
        self.layers
            .iter()
            .flat_map(|layer| layer.programs.values())
            .copied()
            .collect()
    }
}

impl Layer {
    fn is_empty(&self) -> bool {
        let Self {
            name: _,
            folders,
            links,
            packages,
            files,
            bundles,
            programs,
            copies,
        } = self;
        folders.is_empty()
            && links.is_empty()
            && packages.is_empty()
            && files.is_empty()
            && bundles.is_empty()
            && programs.is_empty()
            && copies.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    const SMALL: &str = "
debian: { suites: [bookworm] }
layers:
  - name: base
    folders: { /tmp: '1777' }
    packages: [jq, bash]
  - name: top
    programs: { /addon-operator: operator }
    copies: { /modules: modules }
run: { user: '7:8', directory: /, entrypoint: [/addon-operator], environment: { A: b } }
labels: {}
";

    fn read(text: &str) -> Result<Definition, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image.yaml");
        fs::write(&file, text).unwrap();
        Definition::read(&file).map_err(|error| {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{error}: {cause}")
        })
    }

    #[test]
    fn a_definition_is_read() {
        let definition = read(SMALL).unwrap();
        assert_eq!(definition.packages(), BTreeSet::from(["bash", "jq"]));
        assert_eq!(definition.programs(), BTreeSet::from([Program::Operator]));
        let tmp = ImagePath::absolute("/tmp").unwrap();
        assert_eq!(definition.layers[0].folders[&tmp], Mode(0o1777));
    }

    #[test]
    fn what_would_make_another_image_than_was_meant_is_refused() {
        for (from, to, said) in [
            ("'1777'", "'9'", "no rights"),
            ("'1777'", "'6755'", "no rights"),
            ("/tmp:", "tmp:", "does not begin with a slash"),
            (": modules", ": ../modules", "leads out of the repository"),
            (": modules", ": /modules", "leads out of the repository"),
            ("'7:8'", "'0:8'", "user '0:8'"),
            ("'7:8'", "'nobody'", "user 'nobody'"),
            ("name: top", "name: base", "two layers of the image are called 'base'"),
            (
                "    copies",
                "    packages: [sed]\n    copies",
                "layer 'top' of the image names packages",
            ),
            ("labels", "lables", "lables"),
            ("operator }", "emacs }", "emacs"),
        ] {
            let error = read(&SMALL.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(said), "{to}: {error}");
        }
        let error = read(
            &SMALL
                .replace("    copies: { /modules: modules }\n", "")
                .replace("    programs: { /addon-operator: operator }\n", ""),
        );
        assert!(error.unwrap_err().contains("layer 'top' of the image names nothing"));
    }
}
