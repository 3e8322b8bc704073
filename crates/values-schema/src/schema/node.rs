//! One node of a schema: the keywords for a value at its place.
//!
//! Only the part of JSON Schema, draft 4, that the original uses; other keywords are ignored. Must never hold a
//! reference: references are resolved when a schema is read.

use std::collections::BTreeMap;

use gojq::pattern::translate;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::rules::Rule;

/// The size limit of a compiled regular expression in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// The keywords for a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Node {
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    pub(super) format: String,
    pub(super) choices: Vec<Value>,
    pub(super) default: Option<Value>,
    pub(super) number: NumberLimits,
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) items: Items,
    pub(super) additional_items: Option<Others>,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Self>,
    pub(super) additional_properties: Option<Others>,
    pub(super) pattern_properties: Vec<(Pattern, Self)>,
    pub(super) all_of: Vec<Self>,
    pub(super) any_of: Vec<Self>,
    pub(super) one_of: Vec<Self>,
    pub(super) not: Option<Box<Self>>,
    pub(super) dependencies: BTreeMap<String, Dependency>,
    /// Whether the schema explicitly marks the value as a secret (true) or as no secret (false).
    pub(super) secret: Option<bool>,
    /// Whether the node has `x-extend`.
    pub(super) extends: bool,
    /// The keys in `x-required-for-helm`, if the schema has that field.
    pub(super) required_for_helm: Option<Vec<String>>,
    /// The rules in `x-deckhouse-validations`, if the schema has that field.
    pub(super) rules: Option<Vec<Rule>>,
}

/// The bounds of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct NumberLimits {
    pub(super) multiple_of: Option<f64>,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
}

/// The rules for the items of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Items {
    /// No schema: every item is valid.
    #[default]
    Any,
    /// One schema for all items.
    Each(Box<Node>),
    /// One schema for each position in the list.
    Places(Vec<Node>),
}

/// The rule for keys or items that no other keyword names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Others {
    Allowed,
    Forbidden,
    Like(Box<Node>),
}

/// The keys or the schema that are required if a key is there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Dependency {
    Keys(Vec<String>),
    Schema(Box<Node>),
}

/// A regular expression with its text. An invalid one matches nothing and keeps its error.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) text: String,
    compiled: Result<Regex, String>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let compiled = RegexBuilder::new(&translate(text))
            .size_limit(MAX_COMPILED)
            .nest_limit(50)
            .build()
            .map_err(|error| complaint(text, &error));
        Self {
            text: text.to_owned(),
            compiled,
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(text))
    }

    /// The error of an invalid expression.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }
}

/// The error text of the original for the usual mistake: look-around, which RE2 does not have.
fn complaint(text: &str, error: &regex::Error) -> String {
    let around = ["(?=", "(?!", "(?<=", "(?<!", "(?>"].into_iter().find_map(|sign| {
        let place = text.find(sign)?;
        Some((place, sign))
    });
    match (around, error) {
        (Some((_, sign)), _) => format!("invalid or unsupported Perl syntax: `{sign}`"),
        (None, regex::Error::CompiledTooBig(_)) => "expression too large".to_owned(),
        (None, error) => {
            // The last of the lines that show the place names the mistake.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}
