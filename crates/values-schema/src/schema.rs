//! Schemas of values: the rules in the `openapi` files for the values of one owner.
//!
//! An owner has three schemas: for the section of the ConfigMap, for the effective values, and for the values that helm
//! gets. They fill in defaults and refuse invalid values, with the texts of the original. Must never change an existing
//! value or read a file, and every check must end.

mod check;
mod defaults;
mod document;
mod formats;
mod node;
mod read;
mod rules;
mod secrecy;
mod transform;
mod words;

use std::fmt;

use helm_yaml::yaml::YamlError;
use masking::secret::known::Known;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

pub use document::{Files, references};
pub use rules::expression;

use check::Path;
use node::Node;
use rules::Rule;

/// The number of mistakes that are reported at once.
const MAX_TOLD: usize = 100;

/// The three schemas of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// The schema of the section of the ConfigMap.
    Config,
    /// The schema of the effective values.
    Values,
    /// The schema of the values for helm.
    Helm,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "config",
            Self::Values => "values",
            Self::Helm => "helm",
        })
    }
}

/// The schemas of one owner. Each may be absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schemas {
    config: Option<Box<Node>>,
    values: Option<Box<Node>>,
    helm: Option<Box<Node>>,
}

/// The error for a schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("load schema {file}{}", shown(.place))]
pub struct SchemaError {
    /// The file with the mistake.
    pub file: String,
    /// The keys that lead to the mistake from the root of the file.
    pub place: Vec<String>,
    /// The mistake.
    #[source]
    pub problem: Problem,
}

impl SchemaError {
    fn new(file: &str, place: &[String], problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            place: place.to_vec(),
            problem,
        }
    }
}

fn shown(place: &[String]) -> String {
    if place.is_empty() {
        return String::new();
    }
    format!(", at {}", place.join("."))
}

/// The mistakes of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The text is not YAML.
    #[error("bad yaml: {0}")]
    Yaml(YamlError),
    /// A keyword has a value of the wrong type.
    #[error("should be {0}")]
    Kind(&'static str),
    /// A reference names a file that does not exist.
    #[error("refers to the file {0}, which is not there")]
    NoFile(String),
    /// A reference names a place that does not exist.
    #[error("refers to {0:?}, which is not there")]
    NoPlace(String),
    /// A reference is no path to a file.
    #[error("refers to {0:?}, and only files are read")]
    Elsewhere(String),
    /// A reference leads back to itself.
    #[error("refers to {0:?} in a circle")]
    Circle(String),
    /// The schema is too large.
    #[error("the schema has more than {0} nodes, counted once for each reference to them")]
    TooLarge(usize),
    /// The schema is nested too deep.
    #[error("nodes are nested more than {0} deep")]
    TooDeep(usize),
    /// There are too many regular expressions.
    #[error("the schema has more than {0} regular expressions")]
    TooManyPatterns(usize),
    /// The rules are no list.
    #[error("x-deckhouse-validations invalid")]
    RulesInvalid,
    /// A rule lacks its expression or its message.
    #[error("x-deckhouse-validations invalid: missing {0}")]
    RuleIncomplete(&'static str),
    /// The expression of a rule cannot be read.
    #[error("compile the '{expression}' rule: {message}")]
    Rule {
        /// The rule.
        expression: String,
        /// The mistake in the expression.
        message: String,
    },
}

/// The error for values that break their schema, with all mistakes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.join("\n"))]
pub struct Invalid(Vec<String>);

impl Invalid {
    /// Values that do not fit their schema.
    pub fn because(why: &str) -> Self {
        Self(vec![why.to_owned()])
    }

    /// The mistakes as the original lists them, behind the operation that failed.
    pub fn listed(&self, attempt: Option<&str>) -> String {
        let lines: Vec<&str> = attempt.into_iter().chain(self.0.iter().map(String::as_str)).collect();
        let count = match lines.len() {
            1 => "1 error".to_owned(),
            count => format!("{count} errors"),
        };
        let hidden = lines.len().saturating_sub(MAX_TOLD);
        let more = if hidden > 0 {
            format!("\n\t* {hidden} more")
        } else {
            String::new()
        };
        let told = &lines[..lines.len() - hidden];
        format!("{count} occurred:\n\t* {}{more}", told.join("\n\t* "))
    }
}

impl Schemas {
    /// Reads the schemas of an owner. `files` must have the texts of all files that they refer to, directly or not.
    pub fn load(files: &Files, config: Option<&str>, values: Option<&str>) -> Result<Self, SchemaError> {
        let mut schemas = Self::default();
        if let Some(path) = config {
            let mut node = read::read(files, path)?;
            transform::forbid_others(&mut node);
            schemas.config = Some(Box::new(node));
        }
        if let Some(path) = values {
            let mut node = read::read(files, path)?;
            if let Some(parent) = schemas.config.as_deref().filter(|_| node.extends) {
                transform::extend(&mut node, parent);
            }
            transform::forbid_others(&mut node);
            let mut helm = node.clone();
            transform::require_for_helm(&mut helm);
            schemas.values = Some(Box::new(node));
            schemas.helm = Some(Box::new(helm));
        }
        Ok(schemas)
    }

    fn node(&self, kind: Kind) -> Option<&Node> {
        match kind {
            Kind::Config => self.config.as_deref(),
            Kind::Values => self.values.as_deref(),
            Kind::Helm => self.helm.as_deref(),
        }
    }

    /// Whether no schema has any rule.
    pub fn is_empty(&self) -> bool {
        self.config.is_none() && self.values.is_none()
    }

    /// Whether there is a schema of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.node(kind).is_some()
    }

    /// Whether the schema of this kind has CEL rules, which may take long.
    pub fn has_rules(&self, kind: Kind) -> bool {
        self.node(kind).is_some_and(|node| rules::has_some(node, |_| true))
    }

    /// Whether the schema of this kind has a CEL rule that reads the old value.
    pub fn looks_back(&self, kind: Kind) -> bool {
        self.node(kind)
            .is_some_and(|node| rules::has_some(node, Rule::looks_back))
    }

    /// Adds the schema's defaults for absent keys.
    pub fn fill(&self, kind: Kind, section: &mut Value) {
        if let Some(node) = self.node(kind) {
            defaults::fill(section, node);
        }
    }

    /// The defaults of a schema for an empty section.
    pub fn defaults(&self, kind: Kind) -> Value {
        let mut section = Value::Object(Map::new());
        self.fill(kind, &mut section);
        section
    }

    /// Checks a section against a schema: first the CEL rules, which may read the old value (`before`), then all the rest
    /// if the rules hold. Without a schema every section is valid.
    pub fn check(&self, kind: Kind, key: &str, section: &Value, before: Option<&Value>) -> Result<(), Invalid> {
        let Some(node) = self.node(kind) else { return Ok(()) };
        let broken = rules::broken(node, section, before);
        if !broken.is_empty() {
            // The original joins the messages of all broken rules into one mistake.
            return Err(self.told(section, &[broken.join("\n")]));
        }
        let errors = check::check(node, section, Path::Root(key)).into_errors();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(self.told(section, &errors))
        }
    }

    /// The error with these mistakes. Secrets that they quote are masked.
    fn told(&self, section: &Value, errors: &[String]) -> Invalid {
        let secrets = self.secrets(section);
        let known: Known = secrets.iter().map(String::as_str).collect();
        let told = errors.iter().map(|error| known.masked(error).into_owned());
        Invalid(told.collect())
    }
}

#[cfg(test)]
mod tests;
