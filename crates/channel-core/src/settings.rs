//! The keys of the ConfigMap that say which version is wanted and when it may be taken.
//!
//! Must never use a part of a text if another part has a mistake.

use std::collections::BTreeSet;

use helm_yaml::yaml::{self, YamlError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::channel::Channel;
use super::policy::Policy;
use super::reference::{Fault, ImageDigest};

/// The settings of people about the wanted version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The channel. If it is absent, the tag of our own image is used.
    pub channel: Option<Channel>,
    /// The policy for the time and the way of taking a version.
    pub policy: Policy,
    /// Digests that a person has approved.
    pub approved: BTreeSet<ImageDigest>,
}

/// The error for a text that is no list of digests.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApprovalError {
    /// The text is not YAML.
    #[error("bad yaml: {0}")]
    Yaml(YamlError),
    /// The value is neither a list nor a text.
    #[error("should be digests with blanks or commas between them, or a list of them, and is {0}")]
    Kind(String),
    /// An element is no digest.
    #[error(transparent)]
    Digest(Fault),
}

/// Reads a list of digests: words with blanks or commas between them, or a YAML list. An empty text is an empty list.
pub fn approved(text: &str) -> Result<BTreeSet<ImageDigest>, ApprovalError> {
    let document = match yaml::only_v3(text) {
        Ok(document) => document,
        // A text with commas at the ends of its lines is no valid YAML, but its meaning is clear.
        Err(error) => return words(text).map_err(|_| ApprovalError::Yaml(error)),
    };
    approved_in(&document)
}

/// Reads a list of digests that is part of a document: words in one text, or a list.
pub fn approved_in(document: &Value) -> Result<BTreeSet<ImageDigest>, ApprovalError> {
    match document {
        Value::Null => Ok(BTreeSet::new()),
        Value::String(text) => words(text),
        Value::Array(items) => {
            let digest = |item: &Value| match item {
                Value::String(text) => ImageDigest::parse(text).map_err(ApprovalError::Digest),
                other => Err(ApprovalError::Kind(format!("a list with {other}"))),
            };
            items.iter().map(digest).collect()
        }
        other => Err(ApprovalError::Kind(other.to_string())),
    }
}

fn words(text: &str) -> Result<BTreeSet<ImageDigest>, ApprovalError> {
    let separates = |c: char| c.is_whitespace() || c == ',';
    let words = text.split(separates).filter(|word| !word.is_empty());
    let digests = words.map(|word| ImageDigest::parse(word).map_err(ApprovalError::Digest));
    digests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_words_or_a_list() {
        let (a, b) = (
            format!("sha256:{}", "a".repeat(64)),
            format!("sha256:{}", "b".repeat(64)),
        );
        let both: BTreeSet<ImageDigest> = [&a, &b].map(|text| ImageDigest::parse(text).unwrap()).into();
        for text in [
            format!("{a} {b}"),
            format!("{a},{b}"),
            format!("{a},\n{b},\n"),
            format!("{a}\n{b}\n"),
            format!("- {a}\n- {b}\n"),
            format!("['{b}', \"{a}\"]"),
            format!("- {a}\n- {b}\n- {b}\n"),
        ] {
            assert_eq!(approved(&text), Ok(both.clone()), "{text}");
        }
        for text in ["", " \n", "[]", "# none\n"] {
            assert_eq!(approved(text), Ok(BTreeSet::new()), "{text}");
        }
    }

    #[test]
    fn a_digest_that_is_none_is_told() {
        let a = format!("sha256:{}", "a".repeat(64));
        for (text, told) in [
            ("1.4.2".to_owned(), "should be a digest: sha256: and 64 digits"),
            (
                "1.4".to_owned(),
                "should be digests with blanks or commas between them, or a list of them, and is 1.4",
            ),
            (format!("{a} latest"), "'latest' should be a digest"),
            (format!("- {a}\n- 5\n"), "a list with 5"),
            (format!("a: {a}"), "should be digests with blanks or commas"),
            (format!("[{a}"), "bad yaml: line "),
        ] {
            let error = approved(&text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
