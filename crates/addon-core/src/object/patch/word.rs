//! The small types of an operation: names that fit into the path of a request, versions, and names of operations.

use std::fmt;

use thiserror::Error;

/// A name that is one part of a request's path: no slash, no percent sign, not `.` or `..`, not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment(String);

/// The reason for which a text cannot be a part of a path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotASegment {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text is `.` or `..`, which would lead elsewhere.
    #[error("is {text:?}, which leads elsewhere in a path")]
    Dots {
        /// The text `.` or `..`.
        text: String,
    },
    /// The text has a character that would split it or change its meaning.
    #[error("is {text:?}, which holds {sign:?}")]
    Sign {
        /// The text with the character.
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

    /// The name as text.
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

    /// The text of the version.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name under which the API server records who set a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldManager(String);

impl FieldManager {
    /// The largest length that the API server accepts, in characters.
    const LONGEST: usize = 128;

    /// Checks a name.
    pub fn parse(text: &str) -> Option<Self> {
        let sound = !text.is_empty() && text.chars().count() <= Self::LONGEST && !text.chars().any(char::is_control);
        sound.then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a finalizer: a domain and a name, with a slash between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finalizer(String);

impl Finalizer {
    /// Checks a name by the rules of the API server for a domain and for the name behind it.
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, name) = text.split_once('/')?;
        let is_end = |c: char| c.is_ascii_alphanumeric();
        let is_label = |label: &str| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            label.starts_with(is_end) && label.ends_with(is_end) && label.chars().all(is_inner)
        };
        let is_domain = domain.len() <= 253 && domain.split('.').all(is_label);
        let is_inner = |c: char| is_end(c) || matches!(c, '-' | '_' | '.');
        let is_name =
            name.len() <= 63 && name.starts_with(is_end) && name.ends_with(is_end) && name.chars().all(is_inner);
        (is_domain && is_name).then(|| Self(text.to_owned()))
    }

    /// The name as text.
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
    Apply,
    Delete,
    DeleteInBackground,
    DeleteNonCascading,
    JqPatch,
    MergePatch,
    JsonPatch,
    AddFinalizer,
    RemoveFinalizer,
    Event,
}

impl OperationName {
    /// All operations.
    pub const ALL: [Self; 13] = [
        Self::Create,
        Self::CreateIfNotExists,
        Self::CreateOrUpdate,
        Self::Apply,
        Self::Delete,
        Self::DeleteInBackground,
        Self::DeleteNonCascading,
        Self::JqPatch,
        Self::MergePatch,
        Self::JsonPatch,
        Self::AddFinalizer,
        Self::RemoveFinalizer,
        Self::Event,
    ];

    /// The operation with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::CreateIfNotExists => "CreateIfNotExists",
            Self::CreateOrUpdate => "CreateOrUpdate",
            Self::Apply => "Apply",
            Self::Delete => "Delete",
            Self::DeleteInBackground => "DeleteInBackground",
            Self::DeleteNonCascading => "DeleteNonCascading",
            Self::JqPatch => "JQPatch",
            Self::MergePatch => "MergePatch",
            Self::JsonPatch => "JSONPatch",
            Self::AddFinalizer => "AddFinalizer",
            Self::RemoveFinalizer => "RemoveFinalizer",
            Self::Event => "Event",
        }
    }

    /// The fields that the operation requires.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Create | Self::CreateIfNotExists | Self::CreateOrUpdate => "'object'",
            Self::Apply => "'object' and 'fieldManager'",
            Self::Delete | Self::DeleteInBackground | Self::DeleteNonCascading => "'kind' and 'name'",
            Self::JqPatch => "'kind', 'name' and 'jqFilter'",
            Self::MergePatch => "'kind', 'name' and 'mergePatch'",
            Self::JsonPatch => "'kind', 'name' and 'jsonPatch'",
            Self::AddFinalizer | Self::RemoveFinalizer => "'kind', 'name' and 'finalizer'",
            Self::Event => "'kind', 'name', 'reason' and 'message'",
        }
    }
}

/// The beginning of a text, as much as an error may show.
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
