//! The steps of a JSON patch (RFC 6902).
//!
//! Must never accept a step that the API server is sure to refuse.

use serde::Serialize;
use serde_json::Value;

use super::Problem;
use super::document::{A_MAP, A_STRING, wrong};
use super::word::glimpse;

/// One operation of a JSON patch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the RFC")]
pub enum PatchStep {
    Add { path: Pointer, value: Value },
    Remove { path: Pointer },
    Replace { path: Pointer, value: Value },
    Move { from: Pointer, path: Pointer },
    Copy { from: Pointer, path: Pointer },
    Test { path: Pointer, value: Value },
}

/// A JSON pointer: empty for the whole document, else it begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pointer(String);

impl Pointer {
    /// Checks a pointer.
    pub fn parse(text: &str) -> Option<Self> {
        let begins = text.is_empty() || text.starts_with('/');
        let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        (begins && escapes).then(|| Self(text.to_owned()))
    }

    /// The text of the pointer.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn lies_inside(&self, other: &Self) -> bool {
        let below = self.0.strip_prefix(&other.0);
        below.is_some_and(|below| below.starts_with('/'))
    }
}

/// A field of the step with a dot before it, and its mistake.
type BadField = (&'static str, Problem);

/// Reads one operation of a JSON patch.
pub(super) fn read(item: &Value) -> Result<PatchStep, BadField> {
    let Value::Object(keys) = item else {
        return Err(("", wrong(A_MAP, item)));
    };
    let text = |key, field| match keys.get(key) {
        None | Some(Value::Null) => Err((field, Problem::Missing)),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err((field, wrong(A_STRING, other))),
    };
    let pointer = |key, field| {
        let text = text(key, field)?;
        Pointer::parse(text).ok_or_else(|| (field, Problem::Pointer { found: glimpse(text) }))
    };
    let path = || pointer("path", ".path");
    let from = || pointer("from", ".from");
    // Null is a valid value, too.
    let value = || keys.get("value").cloned().ok_or((".value", Problem::Missing));
    let step = match text("op", ".op")? {
        "add" => PatchStep::Add {
            path: path()?,
            value: value()?,
        },
        "remove" => PatchStep::Remove { path: path()? },
        "replace" => PatchStep::Replace {
            path: path()?,
            value: value()?,
        },
        "move" => PatchStep::Move {
            from: from()?,
            path: path()?,
        },
        "copy" => PatchStep::Copy {
            from: from()?,
            path: path()?,
        },
        "test" => PatchStep::Test {
            path: path()?,
            value: value()?,
        },
        other => return Err((".op", Problem::PatchStep { found: glimpse(other) })),
    };
    match &step {
        PatchStep::Move { from, path } if path.lies_inside(from) => Err((".path", Problem::Inside)),
        _ => Ok(step),
    }
}
