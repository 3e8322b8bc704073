//! JSON pointers. Indexes are read as leniently as by the original.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The number of characters of a path that an error shows.
const SHOWN: usize = 200;

/// A path to a place in a document, with at least one key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer {
    /// The text of the pointer. The first field, because pointers are sorted by it.
    text: String,
    keys: Vec<String>,
}

impl Pointer {
    /// Reads a pointer; `None` if it does not begin with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let keys = text
            .strip_prefix('/')?
            .split('/')
            .map(|key| key.replace("~1", "/").replace("~0", "~"))
            .collect();
        Some(Self {
            text: text.to_owned(),
            keys,
        })
    }

    /// The text of the pointer.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The keys of the path, outermost first.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The number of keys.
    pub(super) fn depth(&self) -> usize {
        self.keys.len()
    }

    /// The pointers to the places that contain this one.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.text.match_indices('/').skip(1).map(|(end, _)| &self.text[..end])
    }

    /// The value at the path in a document.
    pub fn find<'doc>(&self, document: &'doc Value) -> Option<&'doc Value> {
        self.keys.iter().try_fold(document, |value, key| match value {
            Value::Object(map) => map.get(key),
            Value::Array(items) => items.get(index(key, items.len())?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }

    /// The map or list that contains the place, and the last key of the path.
    pub(super) fn parent_of<'doc>(&self, document: &'doc mut Value) -> Option<(&'doc mut Value, &str)> {
        let (last, keys) = self.keys.split_last()?;
        let parent = keys.iter().try_fold(document, |value, key| match value {
            Value::Object(map) => map.get_mut(key),
            Value::Array(items) => index(key, items.len()).and_then(|at| items.get_mut(at)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })?;
        Some((parent, last))
    }
}

/// The index that a key means in a list of this length. Negative ones count from the end.
pub(super) fn index(key: &str, places: usize) -> Option<usize> {
    let at: i64 = key.parse().ok()?;
    let places = i64::try_from(places).ok()?;
    let at = if at < 0 { at + places } else { at };
    usize::try_from(at).ok().filter(|_| at < places)
}

/// Shows the beginning of a long path only.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{}…", &self.text[..end]),
            None => f.write_str(&self.text),
        }
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.text
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("'{text}' is no JSON pointer"))
    }
}
