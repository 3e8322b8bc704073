//! The small words of an operation: names that fit into the path of a request, versions, and what operations are called.

use std::fmt;

use thiserror::Error;

/// A name that is one part of a request's path: no slash, no percent sign, not `.` or `..`, not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment(String);

/// Why a text is no name in a path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotASegment {
    /// There is nothing.
    #[error("is empty")]
    Empty,
    /// It would lead elsewhere.
    #[error("is {text:?}, which leads elsewhere in a path")]
    Dots {
        /// The text.
        text: String,
    },
    /// As part of a path it would be two parts, or another one.
    #[error("is {text:?}, which holds {sign:?}")]
    Sign {
        /// The text.
        text: String,
        /// The character that is not allowed there.
        sign: char,
    },
}

impl Segment {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, NotASegment> {
        match text {
            "" => return Err(NotASegment::Empty),
            "." | ".." => return Err(NotASegment::Dots { text: text.to_owned() }),
            _ => {}
        }
        let unfit = |c: &char| matches!(c, '/' | '%') || c.is_whitespace() || c.is_control();
        match text.chars().find(unfit) {
            Some(sign) => Err(NotASegment::Sign {
                text: glimpse(text),
                sign,
            }),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version, alone or after its group and a slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(String);

impl ApiVersion {
    /// Checks a version.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = text.split('/');
        let sound = parts.clone().count() <= 2 && parts.map(Segment::parse).all(|part| part.is_ok());
        sound.then(|| Self(text.to_owned()))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of an operation in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the names are the contract; `Operation` tells what each does"
)]
pub enum OperationName {
    Create,
    CreateIfNotExists,
    CreateOrUpdate,
    Delete,
    DeleteInBackground,
    DeleteNonCascading,
    JqPatch,
    MergePatch,
    JsonPatch,
}

impl OperationName {
    /// All there are.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::CreateIfNotExists,
        Self::CreateOrUpdate,
        Self::Delete,
        Self::DeleteInBackground,
        Self::DeleteNonCascading,
        Self::JqPatch,
        Self::MergePatch,
        Self::JsonPatch,
    ];

    /// The operation of exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// As files have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::CreateIfNotExists => "CreateIfNotExists",
            Self::CreateOrUpdate => "CreateOrUpdate",
            Self::Delete => "Delete",
            Self::DeleteInBackground => "DeleteInBackground",
            Self::DeleteNonCascading => "DeleteNonCascading",
            Self::JqPatch => "JQPatch",
            Self::MergePatch => "MergePatch",
            Self::JsonPatch => "JSONPatch",
        }
    }

    /// Its required fields.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Create | Self::CreateIfNotExists | Self::CreateOrUpdate => "'object'",
            Self::Delete | Self::DeleteInBackground | Self::DeleteNonCascading => "'kind' and 'name'",
            Self::JqPatch => "'kind', 'name' and 'jqFilter'",
            Self::MergePatch => "'kind', 'name' and 'mergePatch'",
            Self::JsonPatch => "'kind', 'name' and 'jsonPatch'",
        }
    }
}

/// So much of a text as an error may show of it.
pub(super) fn glimpse(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
