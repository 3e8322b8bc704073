//! The definition: the file that lists the contents of the image. It is validated once.
//!
//! It must never depend on the machine: the locations of programs and of the repository are inputs of the assembly.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use serde::Deserialize;
use thiserror::Error;

use crate::place::ImagePath;

/// The layers of the image, from the bottom to the top, and the settings of its containers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Definition {
    pub debian: Debian,
    pub layers: Vec<Layer>,
    pub run: Run,
    /// Labels of the image, and annotations of its manifest.
    pub labels: BTreeMap<String, String>,
}

/// The Debian suites that packages may come from, and the parts of packages that stay out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Debian {
    pub suites: Vec<String>,
    /// Dependencies that the image leaves out, each with the reason.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Folders of packages that are left out.
    #[serde(default)]
    pub leave_out: Vec<ImagePath>,
    /// Names of files that are taken even from those folders.
    #[serde(default)]
    pub keep: BTreeSet<String>,
}

/// One layer. Its parts are added in the order of the fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Layer {
    pub name: String,
    #[serde(default)]
    pub folders: BTreeMap<ImagePath, Mode>,
    #[serde(default)]
    pub links: BTreeMap<ImagePath, String>,
    /// Names of Debian packages; their dependencies come with them.
    #[serde(default)]
    pub packages: BTreeSet<String>,
    #[serde(default)]
    pub files: BTreeMap<ImagePath, String>,
    /// Files that are the concatenation of all files of a folder, by their places: place of the file, then the folder.
    #[serde(default)]
    pub bundles: BTreeMap<ImagePath, ImagePath>,
    #[serde(default)]
    pub programs: BTreeMap<ImagePath, Program>,
    /// Files and folders of the repository, by their places in the image.
    #[serde(default)]
    pub copies: BTreeMap<ImagePath, RepositoryPath>,
}

/// The mode of a folder, written in octal.
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

/// A program that is compiled, in contrast to a copied file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// The addon-operator itself.
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

/// The settings with which containers of the image run by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Run {
    /// As numbers: a kubelet that must not run root cannot judge a user by its name.
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
        // Dependencies are resolved once for all packages, so all packages belong to one layer.
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

    /// All packages that the layers name.
    pub fn packages(&self) -> BTreeSet<&str> {
        self.layers
            .iter()
            .flat_map(|layer| &layer.packages)
            .map(String::as_str)
            .collect()
    }

    /// All programs that have to be built for the image.
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
