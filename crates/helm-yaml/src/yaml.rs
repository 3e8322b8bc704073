//! YAML as the two readers of the original read it, and YAML that both read back unchanged.
//!
//! The parser is a library. The meaning of scalars, duplicate keys and `<<` is decided here, because files of users
//! depend on them. Must never panic on a text, or need endless time or memory for it.

mod compose;
pub mod document;
mod node;
mod scalar;
mod strictness;
mod write;

use granit_parser::Marker;
use serde_json::Value;
use thiserror::Error;

pub use write::to_string;

use compose::Composer;

/// The depth to which a document may be nested, aliases included. It is far more than people write, and far less than
/// fills a stack.
pub const MAX_DEPTH: usize = 400;

const SECOND: &str =
    "a second document begins here, and only the first counts: move its keys up, and remove the line `---`";

/// The error for a text that is no usable YAML, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The mistake.
    pub message: String,
}

impl YamlError {
    fn at(place: TextPlace, message: impl Into<String>) -> Self {
        Self {
            line: place.line,
            column: place.column,
            message: message.into(),
        }
    }
}

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextPlace {
    line: usize,
    column: usize,
}

impl From<Marker> for TextPlace {
    fn from(marker: Marker) -> Self {
        Self {
            line: marker.line(),
            column: marker.col() + 1,
        }
    }
}

/// The reader of the original to imitate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// YAML 1.1 scalars; of equal keys the last counts. For values files, charts and hook configurations.
    V2,
    /// YAML 1.1 scalars; equal keys are an error.
    V2Strict,
    /// YAML 1.2 booleans; timestamps; equal keys are an error. For sections of the `ConfigMap`.
    V3,
}

impl Dialect {
    fn is_v3(self) -> bool {
        self == Self::V3
    }
}

/// Reads the first document in the dialect of values files, charts and hook configurations.
pub fn from_str_v2(text: &str) -> Result<Value, YamlError> {
    first(text, Dialect::V2)
}

/// Like [`from_str_v2`], but refuses equal keys in one map.
pub fn from_str_v2_strict(text: &str) -> Result<Value, YamlError> {
    first(text, Dialect::V2Strict)
}

/// Reads the first document in the dialect of `ConfigMap` sections.
pub fn from_str_v3(text: &str) -> Result<Value, YamlError> {
    first(text, Dialect::V3)
}

/// Like [`from_str_v2`], but refuses a second document.
pub fn only_v2(text: &str) -> Result<Value, YamlError> {
    let value = from_str_v2(text)?;
    second_document(text).map_or(Ok(value), Err)
}

/// Like [`from_str_v3`], but refuses a second document.
pub fn only_v3(text: &str) -> Result<Value, YamlError> {
    let value = from_str_v3(text)?;
    second_document(text).map_or(Ok(value), Err)
}

/// The error about a second document, which most readers drop. A document without content does not count.
pub fn second_document(text: &str) -> Option<YamlError> {
    let mut composer = Composer::new(text).ok()?;
    composer.document().ok()??;
    loop {
        let root = match composer.document() {
            Ok(root) => root?,
            Err(error) => return Some(error),
        };
        if node::to_value(&root, Dialect::V2) != Ok(Value::Null) {
            return Some(YamlError::at(root.place, SECOND));
        }
    }
}

/// Reads all documents in the dialect of [`from_str_v2`].
pub fn documents_v2(text: &str) -> Result<Vec<Value>, YamlError> {
    let mut composer = Composer::new(text)?;
    let mut documents = Vec::new();
    while let Some(root) = composer.document()? {
        documents.push(node::to_value(&root, Dialect::V2)?);
    }
    Ok(documents)
}

fn first(text: &str, dialect: Dialect) -> Result<Value, YamlError> {
    match Composer::new(text)?.document()? {
        Some(root) => node::to_value(&root, dialect),
        None => Ok(Value::Null),
    }
}

#[cfg(test)]
mod tests;
