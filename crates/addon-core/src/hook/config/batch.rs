//! The answer of an executable with several hooks to `hook config`: the configurations of all its hooks.
//!
//! The answer is JSON, which a library writes. Must never lose a hook: if a configuration cannot be read, the error
//! names the hook by its number.

use std::fmt;

use names::{HookName, NameError};
use serde_json::Value;
use thiserror::Error;

use super::dialect::{Dialect, without_nothing};
use super::fields::{Fields, Problems};
use super::mistake::listed;
use super::{ConfigError, HookConfig, HookKind, v1};
use crate::failure::{Class, Failure};
use crate::values::kind_of;

/// All hooks of one executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The hooks that are called by their numbers.
    pub hooks: Vec<BatchHook>,
    /// The hook that reports whether its module is ready, on a schedule.
    pub readiness: Option<HookConfig>,
    /// Whether the executable checks the settings of its module, with `hook check`.
    pub checks_settings: bool,
}

/// One hook of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchHook {
    /// The title that the hook's author gave the hook; may be empty.
    pub title: String,
    /// The hook's configuration.
    pub config: HookConfig,
}

/// The call of one hook of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The hook with the given number is called.
    Run(usize),
    /// The hook that reports readiness is called.
    Ready,
}

impl Call {
    /// The arguments of the executable.
    pub fn arguments(self) -> Vec<String> {
        let words = match self {
            Self::Run(number) => vec!["run".to_owned(), number.to_string()],
            Self::Ready => vec!["ready".to_owned()],
        };
        std::iter::once("hook".to_owned()).chain(words).collect()
    }
}

/// One hook of a batch, with a name that is unique among its owner's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name of the hook.
    pub name: HookName,
    /// The hook's call.
    pub call: Call,
    /// The hook's configuration.
    pub config: HookConfig,
}

/// The hooks that an executable lists, by their names, and whether it checks settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The hooks in their order.
    pub hooks: Vec<Named>,
    /// Whether the executable checks the settings of its module.
    pub checks_settings: bool,
}

/// The hook that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The hook with the given number and title.
    Number(usize, String),
    /// The hook that reports readiness.
    Readiness,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number, title) if title.is_empty() => write!(f, "hooks[{number}]"),
            Self::Number(number, title) => write!(f, "hooks[{number}] '{}'", title.escape_debug()),
            Self::Readiness => f.write_str("readiness"),
        }
    }
}

/// The reason why an answer to `hook config` has no hooks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The output is not text; the number is the line of the first bad byte.
    #[error("batch config is not text: line {0} is not in UTF-8")]
    NoText(usize),
    /// The output is not JSON.
    #[error("batch config is not JSON: {0}")]
    NoJson(String),
    /// The output is JSON, but neither a map nor a list.
    #[error("batch config should be a map or a list, and is {0}")]
    NoMap(&'static str),
    /// The document's version is unknown.
    #[error("batch config: unknown version '{0}'")]
    UnknownVersion(String),
    /// The document has no version.
    #[error("batch config: there is no key 'version'")]
    MissingVersion,
    /// The fields around the hooks are invalid.
    #[error("batch config does not fit its schema: {}", listed(.0))]
    Schema(Vec<String>),
    /// The configurations of some hooks are invalid.
    #[error("batch config: {}", listed(&told(.0)))]
    Hooks(Vec<(Which, ConfigError)>),
    /// A hook cannot have the name that follows from its title.
    #[error("batch config: {which} cannot be named")]
    Name {
        /// The hook.
        which: Which,
        /// The reason why the name is invalid.
        source: NameError,
    },
}

/// All mistakes, each with its hook.
fn told(hooks: &[(Which, ConfigError)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (which, error) in hooks {
        match error {
            ConfigError::Schema(problems) | ConfigError::Meaning(problems) => {
                lines.extend(problems.iter().map(|problem| format!("{which}: {problem}")));
            }
            other => lines.push(format!("{which}: {other}")),
        }
    }
    lines
}

impl BatchError {
    /// The remedy, for the author of the executable.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoText(_) | Self::NoJson(_) | Self::NoMap(_) => {
                "with `hook config` an executable of several hooks prints one document of JSON and nothing before it; messages for people go to stderr"
            }
            Self::UnknownVersion(_) | Self::MissingVersion => r#"write `"version": "v1"`"#,
            Self::Schema(_) | Self::Hooks(_) | Self::Name { .. } => {
                "docs/guides/hooks.md describes the answer of an executable with several hooks"
            }
        }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Self::of(Class::Invalid, &error).hint(error.advice())
    }
}

impl Batch {
    /// Parses the output of an executable's `hook config`. Text after the first document is ignored.
    pub fn parse_output(output: &[u8], kind: HookKind) -> Result<Self, BatchError> {
        let text = str::from_utf8(output).map_err(|error| {
            let before = output.iter().take(error.valid_up_to());
            BatchError::NoText(1 + before.filter(|byte| **byte == b'\n').count())
        })?;
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let document = documents
            .next()
            .ok_or_else(|| BatchError::NoJson("it is empty".to_owned()))?;
        let document = document.map_err(|error| BatchError::NoJson(error.to_string()))?;
        match &document {
            // The format of old libraries: a list of hooks.
            Value::Array(hooks) => Self::read(hooks, None, false, kind),
            Value::Object(_) => Self::read_versioned(&document, kind),
            other => Err(BatchError::NoMap(kind_of(other))),
        }
    }

    fn read_versioned(document: &Value, kind: HookKind) -> Result<Self, BatchError> {
        let said = |key: &str| document.get(key).filter(|value| !value.is_null());
        let problems = Problems::default();
        let mut root = Fields::root(document, &problems);
        if let Some(Value::String(version)) = said("version")
            && version != "v1"
        {
            return Err(BatchError::UnknownVersion(version.clone()));
        }
        if said("version").is_none() {
            return Err(BatchError::MissingVersion);
        }
        root.text("version");
        let checks_settings = said("has_settings_check").is_some() && root.flag("has_settings_check", false);
        if said("hooks").is_some() {
            root.items("hooks", 0);
        }
        let problems = problems.into_list();
        if problems.is_empty() {
            let hooks = said("hooks").and_then(Value::as_array).map(Vec::as_slice);
            Self::read(hooks.unwrap_or_default(), said("readiness"), checks_settings, kind)
        } else {
            Err(BatchError::Schema(problems))
        }
    }

    fn read(
        hooks: &[Value],
        readiness: Option<&Value>,
        checks_settings: bool,
        kind: HookKind,
    ) -> Result<Self, BatchError> {
        let mut wrong = Vec::new();
        let mut found = Vec::new();
        for (number, value) in hooks.iter().enumerate() {
            let title = title(value);
            match hook(value, kind) {
                Ok(config) => found.push(BatchHook { title, config }),
                Err(error) => wrong.push((Which::Number(number, title), error)),
            }
        }
        let readiness = readiness.and_then(|value| {
            hook(value, kind)
                .map_err(|error| wrong.push((Which::Readiness, error)))
                .ok()
        });
        if wrong.is_empty() {
            Ok(Self {
                hooks: found,
                readiness,
                checks_settings,
            })
        } else {
            Err(BatchError::Hooks(wrong))
        }
    }

    /// The hooks with names that are unique among their owner's hooks, in their order.
    pub fn named(self, file: &HookName, kind: HookKind) -> Result<Listed, BatchError> {
        let between = match kind {
            HookKind::Module => ':',
            HookKind::Global | HookKind::Standalone => '-',
        };
        let mut named = Vec::with_capacity(self.hooks.len() + 1);
        for (number, BatchHook { title, config }) in self.hooks.into_iter().enumerate() {
            let name = HookName::parse(&format!("{file}{between}{title}{between}{number}"));
            named.push(Named {
                name: name.map_err(|source| BatchError::Name {
                    which: Which::Number(number, title),
                    source,
                })?,
                call: Call::Run(number),
                config,
            });
        }
        if let Some(config) = self.readiness {
            let name = HookName::parse(&format!("{file}-readiness"));
            named.push(Named {
                name: name.map_err(|source| BatchError::Name {
                    which: Which::Readiness,
                    source,
                })?,
                call: Call::Ready,
                config,
            });
        }
        Ok(Listed {
            hooks: named,
            checks_settings: self.checks_settings,
        })
    }
}

/// The title that the author of a hook gave it.
fn title(hook: &Value) -> String {
    let title = hook.pointer("/metadata/name").and_then(Value::as_str);
    title.unwrap_or_default().to_owned()
}

/// Reads one hook. If the version is absent, it is v1, which the library always means.
fn hook(value: &Value, kind: HookKind) -> Result<HookConfig, ConfigError> {
    if !value.is_object() {
        return Err(ConfigError::NoMap(kind_of(value)));
    }
    match value.get("configVersion") {
        None | Some(Value::Null) => {}
        Some(Value::String(version)) if version.is_empty() || version == "v1" => {}
        Some(Value::String(version)) => return Err(ConfigError::UnknownVersion(version.clone())),
        Some(_) => return Err(ConfigError::VersionType),
    }
    v1::read(&without_nothing(value), kind, Dialect::Batch)
}

/// Whether this answer to `hook list` has a line that counts the hooks.
pub fn lists_hooks(printed: &str) -> bool {
    let counts = printed.match_indices("Found ").filter_map(|(at, found)| {
        let rest = &printed[at + found.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[digits..].starts_with(" items").then(|| &rest[..digits])
    });
    counts
        .into_iter()
        .any(|count| (1..=4).contains(&count.len()) && !count.starts_with('0'))
}

/// The error message of a failed hook of a batch, if its library wrote one: from the last line that is JSON with a `message`.
pub fn message(stderr: &str) -> Option<String> {
    let mut lines = stderr
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
    let said = lines.find_map(|said| said.get("message")?.as_str().map(str::to_owned));
    said.filter(|said| !said.trim().is_empty())
}

#[cfg(test)]
mod tests;
