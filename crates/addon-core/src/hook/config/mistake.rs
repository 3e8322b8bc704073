//! The mistakes of a configuration, and their remedies.
//!
//! Must never quote more of a configuration than a few words for each mistake.

use helm_yaml::yaml::YamlError;
use thiserror::Error;

use crate::failure::{Class, Failure};

/// The reason why the output of `--config` is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The output is not text; the number is the line of the first bad byte.
    #[error("hook config is not text: line {0} is not in UTF-8")]
    NoText(usize),
    /// The output is not YAML.
    #[error("hook config is not YAML")]
    Yaml(#[source] YamlError),
    /// The output is YAML, but no map.
    #[error("hook config should be a map, and is {0}")]
    NoMap(&'static str),
    /// The version is unknown.
    #[error("config version: 'configVersion' value '{0}' is unsupported")]
    UnknownVersion(String),
    /// The version is not a text.
    #[error("config version: string value is expected for key 'configVersion'")]
    VersionType,
    /// The version is null.
    #[error("config version: missing 'configVersion' value")]
    MissingVersion,
    /// The version is absent, and there is a key that only versioned configurations have.
    #[error("config version: '{0}' needs a version, and there is no key 'configVersion'")]
    NoVersion(&'static str),
    /// Fields are missing, unknown, or have invalid values.
    #[error("hook config does not fit its schema: {}", listed(.0))]
    Schema(Vec<String>),
    /// Fields have values of the right form without a meaning.
    #[error("hook config makes no sense: {}", listed(.0))]
    Meaning(Vec<String>),
}

/// The number of mistakes that are shown. A longer list has one cause.
const SHOWN: usize = 20;
/// The number of characters of a mistake that are shown.
const LONGEST: usize = 400;

/// The text of a single mistake, or a list of several mistakes.
pub(super) fn listed(problems: &[String]) -> String {
    if let [problem] = problems {
        return glimpse(problem);
    }
    let mut text = format!("{} errors occurred:", problems.len());
    for problem in problems.iter().take(SHOWN) {
        text.push_str("\n\t* ");
        text.push_str(&glimpse(problem));
    }
    if problems.len() > SHOWN {
        text.push_str("\n\t* and so on");
    }
    text
}

fn glimpse(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl ConfigError {
    /// The remedy, for the author of the hook.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoText(_) | Self::Yaml(_) => {
                "with --config a hook prints one document of YAML or JSON and nothing else; messages for people go to stderr"
            }
            Self::NoMap(_) => "is it a hook at all? files that are none must not be executable",
            Self::UnknownVersion(_) | Self::VersionType | Self::MissingVersion | Self::NoVersion(_) => {
                "write `configVersion: v1`"
            }
            Self::Schema(_) | Self::Meaning(_) => "docs/guides/hooks.md lists the bindings and their fields",
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::of(Class::Invalid, &error).hint(error.advice())
    }
}
