//! Documents with facts that a value does not have: the line of a key, and the spelling of its scalar.
//!
//! Must never look below the keys of the root.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::compose::Composer;
use super::node::{self, Content, Node};
use super::{Dialect, YamlError};

/// A document of a YAML stream, with its line and the spelling of its keys' scalars.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value of the document.
    pub value: Value,
    /// The line of the document's root, from 1.
    pub line: usize,
    keys: BTreeMap<String, Key>,
}

#[derive(Debug, Clone, PartialEq)]
struct Key {
    line: usize,
    text: Option<String>,
}

impl Document {
    /// A document of which only the line and the value are known.
    pub fn at(line: usize, value: Value) -> Self {
        Self {
            value,
            line,
            keys: BTreeMap::new(),
        }
    }

    /// The line of a key of the root; the line of the root if the key is not written there.
    pub fn line_of(&self, key: &str) -> usize {
        self.keys.get(key).map_or(self.line, |key| key.line)
    }

    /// The scalar under a key of the root, as it was written. So a date keeps its spelling.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.keys.get(key)?.text.as_deref()
    }
}

/// Reads all documents in the dialect of `ConfigMap` sections.
pub fn documents_v3(text: &str) -> Result<Vec<Document>, YamlError> {
    let mut composer = Composer::new(text)?;
    let mut documents = Vec::new();
    while let Some(root) = composer.document()? {
        documents.push(Document {
            value: node::to_value(&root, Dialect::V3)?,
            line: root.place.line,
            keys: keys(&root),
        });
    }
    Ok(documents)
}

fn keys(root: &Node) -> BTreeMap<String, Key> {
    let Content::Mapping(entries) = &root.content else {
        return BTreeMap::new();
    };
    let written = entries.iter().filter_map(|(key, value)| {
        let Content::Scalar { text: name, .. } = &key.content else {
            return None;
        };
        let text = match &value.content {
            // The meaning of a `!!binary` value is its decoded contents, not its spelling.
            Content::Scalar { text, tag, .. } if tag.as_deref() != Some("binary") => Some(text.clone()),
            Content::Scalar { .. } | Content::Sequence(_) | Content::Mapping(_) => None,
        };
        let line = key.place.line;
        Some((name.clone(), Key { line, text }))
    });
    written.collect()
}

/// The type of a value, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Null.
    Null,
    /// True or false.
    Boolean,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A list.
    List,
    /// A map.
    Map,
}

impl Kind {
    /// The type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Map,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "nothing",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Map => "a map",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_and_texts_of_the_keys_are_kept() {
        let text = "# first\na: 2024-01-01\nb: {c: 1}\n---\n- 1\n---\nd: !!binary YQ==\n";
        let [first, second, third] = &documents_v3(text).unwrap()[..] else {
            panic!("three documents")
        };
        assert_eq!(first.value, json!({"a": "2024-01-01T00:00:00Z", "b": {"c": 1}}));
        assert_eq!((first.line, first.line_of("b"), first.line_of("z")), (2, 3, 2));
        assert_eq!((first.text_of("a"), first.text_of("b")), (Some("2024-01-01"), None));
        assert_eq!((second.line, &second.value), (5, &json!([1])));
        assert_eq!((third.text_of("d"), &third.value), (None, &json!({"d": "a"})));
    }

    #[test]
    fn nothing_is_no_document_and_a_separator_makes_an_empty_one() {
        assert_eq!(documents_v3("# a word\n").unwrap(), []);
        let empty = documents_v3("a: 1\n---\n").unwrap();
        assert_eq!(empty[1].value, Value::Null);
        assert_eq!(Document::at(3, Value::Null).line_of("a"), 3);
    }
}
