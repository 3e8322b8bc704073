//! The problems of files on disk, their severity and their texts. Never decides what follows from one.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use addon_core::module::description::{Mistake, UnknownField};
use addon_core::values::merge::TooDeep;
use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::Kind;
use names::{ModuleName, NameError};
use thiserror::Error;
use values_schema::schema::SchemaError;

/// The effect of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Everything works, but a person should look at the problem.
    Warning,
    /// There may be more on the disk than was found, so nothing may be removed because it was not found.
    Gap,
    /// The operator cannot start.
    Fatal,
}

/// A problem in a file, with its position.
#[derive(Debug)]
pub struct Problem {
    pub path: PathBuf,
    pub severity: Severity,
    pub fault: Fault,
}

#[derive(Debug, Error)]
pub enum Fault {
    #[error("does not exist")]
    Missing,
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("is no directory")]
    NoDirectory,
    #[error("is no file")]
    NoFile,
    #[error("is a file where the directory of a module is expected")]
    FileForModule,
    #[error("is a link to nothing")]
    DanglingLink,
    #[error("is missing, and the manifest of the modules directory names it")]
    OnlyInManifest,
    #[error("differs from the manifest of the modules directory")]
    NotAsInManifest,
    #[error("is no manifest of a modules directory")]
    NoManifest(#[source] serde_json::Error),
    #[error("is a manifest of version {0}, which this operator does not know")]
    ManifestVersion(u32),
    #[error("is a link to a directory, which is not searched for hooks")]
    LinkedDirectory,
    #[error("is neither a module's directory nor values.yaml and is ignored")]
    Stray,
    #[error("holds no modules")]
    NoModules,
    #[error("is no name of a module")]
    Name(#[source] NameError),
    #[error("is no name of a hook")]
    HookName(#[source] NameError),
    #[error("has a name that is not valid UTF-8")]
    NameNotUnicode,
    #[error("is ignored: module '{name}' is taken from {}", first.display())]
    SameName { name: ModuleName, first: PathBuf },
    #[error("is missing, which strict checking of values refuses")]
    MissingValues,
    #[error("is not YAML")]
    NotYaml(#[source] YamlError),
    #[error("is read in part")]
    SecondDocument(#[source] YamlError),
    #[error("should hold a map, but holds {found}")]
    NotAMap { found: Kind },
    #[error("section {key} should be a map, but is {found}")]
    SectionNotAMap { key: String, found: Kind },
    #[error("{key} should be true or false, but is {found}")]
    FlagNotBoolean { key: String, found: Kind },
    #[error("{key} looks like the flag of a module, but there can be none of that name")]
    FlagOfNobody { key: String },
    #[error("{key} has no effect in the file of a module: write it into the common values.yaml or the ConfigMap")]
    FlagOfModule { key: String },
    #[error(
        "{key} counts for nothing outside of the module's section, and no template reads it: write it below '{section}:'"
    )]
    OutsideOfSection { key: String, section: String },
    #[error("section {key} cannot be merged")]
    TooDeep { key: String, source: TooDeep },
    #[error("refers to more than {} files", super::schemas::MAX_FILES)]
    TooManySchemas,
    #[error("holds a schema that cannot be used")]
    Schema(#[source] Box<SchemaError>),
    #[error(transparent)]
    Description(#[from] Mistake),
    #[error(transparent)]
    UnknownField(#[from] UnknownField),
    #[error("no executable permissions, chmod +x is required to run this hook")]
    NotExecutable,
    #[error("no executable permissions, chmod +x is required to run the enabled script")]
    EnabledNotExecutable,
    #[error("file has executable permissions and is located in the ignored 'lib' directory")]
    ExecutableInLib,
}

impl Problem {
    pub(super) fn new(severity: Severity, path: impl Into<PathBuf>, fault: Fault) -> Self {
        Self {
            path: path.into(),
            severity,
            fault,
        }
    }

    pub(super) fn warning(path: impl Into<PathBuf>, fault: Fault) -> Self {
        Self::new(Severity::Warning, path, fault)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.fault)
    }
}

impl StdError for Problem {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.fault.source()
    }
}
