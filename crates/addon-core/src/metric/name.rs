//! Names of metrics, labels and groups. Must never accept a name that no page can show.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest accepted length of a name, in characters. A longer name is a mistake, and it would be repeated often:
/// every series of a metric is shown with all label names.
const MAX_LENGTH: usize = 256;

/// The error for a text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The name is empty.
    #[error("a {what} must not be empty")]
    Empty {
        /// The thing to be named.
        what: &'static str,
    },
    /// The name has a NUL, which Prometheus takes for the end of the page.
    #[error("'{name}' is no {what}: it holds a NUL, which Prometheus cannot read")]
    Nul {
        /// The thing to be named.
        what: &'static str,
        /// The name. Another character replaces each character that cannot be shown.
        name: String,
    },
    /// The name is reserved for Prometheus.
    #[error("'{name}' is no label name: those that begin with two underscores belong to Prometheus")]
    Reserved {
        /// The reserved name.
        name: String,
    },
    /// The name is too long.
    #[error("a {what} of {length} characters is too long, {MAX_LENGTH} are allowed")]
    Long {
        /// The thing to be named.
        what: &'static str,
        /// The name's length in characters.
        length: usize,
    },
}

/// The name of a metric, `container_restarts_total`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricName(Arc<str>);

impl MetricName {
    /// Accepts every metric name of Prometheus: any text in UTF-8.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check(text, "metric name")?;
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabelName(Arc<str>);

impl LabelName {
    /// Accepts every label name that Prometheus lets users choose: any text in UTF-8 that is not reserved.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        check(text, "label name")?;
        if text.starts_with("__") {
            return Err(NameError::Reserved { name: text.to_owned() });
        }
        Ok(Self(text.into()))
    }

    /// The label that all series of hooks have.
    pub(super) fn hook() -> Self {
        Self("hook".into())
    }

    /// The label that all series of modules' hooks have.
    pub(super) fn module() -> Self {
        Self("module".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The part of an invalid text that an error shows, on one line.
pub(super) fn shown(text: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(80).map(visible).collect()
}

fn check(text: &str, what: &'static str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.contains('\0') {
        return Err(NameError::Nul {
            what,
            name: shown(text),
        });
    }
    let length = text.chars().count();
    if length > MAX_LENGTH {
        return Err(NameError::Long { what, length });
    }
    Ok(())
}

/// The name of a group of series, which are replaced together. Hooks that use the same name share the group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Group(Arc<str>);

impl Group {
    /// The group of this name; `None` for an empty name.
    pub fn named(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for LabelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for MetricName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MetricName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<MetricName> for String {
    fn from(name: MetricName) -> Self {
        name.0.as_ref().into()
    }
}

impl TryFrom<String> for LabelName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<LabelName> for String {
    fn from(name: LabelName) -> Self {
        name.0.as_ref().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_prometheus_reads() {
        for name in ["a", "_", "a:b_1", "A9", "1a", "a-b", "a b", "плод", "a\n\"\\"] {
            assert_eq!(MetricName::parse(name).unwrap().as_str(), name);
            assert_eq!(LabelName::parse(name).unwrap().as_str(), name);
        }
        let wrong = |name: &str| LabelName::parse(name).unwrap_err().to_string();
        assert_eq!(wrong(""), "a label name must not be empty");
        assert_eq!(
            wrong("a\0"),
            "'a\u{fffd}' is no label name: it holds a NUL, which Prometheus cannot read"
        );
        assert_eq!(
            wrong("__name__"),
            "'__name__' is no label name: those that begin with two underscores belong to Prometheus"
        );
        assert!(MetricName::parse("__a").is_ok());
        assert!(MetricName::parse(&"ж".repeat(256)).is_ok());
        assert_eq!(
            MetricName::parse(&"ж".repeat(257)).unwrap_err().to_string(),
            "a metric name of 257 characters is too long, 256 are allowed"
        );
    }
}
