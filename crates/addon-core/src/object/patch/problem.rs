//! The mistakes in a file of object patches, and the remedies for its author.
//!
//! Must never show more of a document than one word, because there may be secrets in it.

use std::fmt;

use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::Document;
use thiserror::Error;

use super::{NotASegment, OperationName};
use crate::failure::{Class, Failure};

/// The error for a file. None of its operations is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadPatchFile {
    /// The text cannot be parsed.
    #[error("got bad object patches")]
    Text {
        /// The reason why the text cannot be parsed.
        #[from]
        source: Unreadable,
    },
    /// A document of the file is no valid operation.
    #[error("got bad object patches: document {number} at line {line}")]
    Document {
        /// The number of the document, from 1.
        number: usize,
        /// The line of the mistake, from 1; with JSON, the first line of the document.
        line: usize,
        /// The mistake.
        source: BadOperation,
    },
}

/// The reason for which a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// The text is invalid YAML.
    #[error("not YAML: {0}")]
    Yaml(YamlError),
    /// The text is neither JSON nor YAML, and may have been meant as either.
    #[error("neither JSON: {json}; nor YAML: {yaml}")]
    Both {
        /// The error of the JSON parser.
        json: YamlError,
        /// The error of the YAML parser.
        yaml: YamlError,
    },
}

/// The mistake of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct BadOperation {
    /// The operation, if its name is known.
    pub operation: Option<OperationName>,
    /// The field, with dots between its keys; empty for the whole document.
    pub field: String,
    /// The mistake.
    pub problem: Problem,
}

/// The mistake of a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The field is required.
    #[error("is missing")]
    Missing,
    /// The field is empty.
    #[error("is empty")]
    Empty,
    /// The value has the wrong type.
    #[error("should be {wanted}, not {found}")]
    Type {
        /// The expected type.
        wanted: &'static str,
        /// The type of the value.
        found: &'static str,
    },
    /// The name of the operation is unknown.
    #[error("names no operation: {found:?}")]
    Operation {
        /// The unknown name.
        found: String,
    },
    /// The name cannot be a part of a request's path.
    #[error(transparent)]
    Segment(#[from] NotASegment),
    /// The value is no group and version.
    #[error("is {found:?}, which is no version")]
    ApiVersion {
        /// The value that is no group and version.
        found: String,
    },
    /// The value is no name of a field manager.
    #[error("is {found:?}, which is no name of a field manager")]
    FieldManager {
        /// The invalid name.
        found: String,
    },
    /// The value is no name of a finalizer.
    #[error("is {found:?}, which is no name of a finalizer")]
    Finalizer {
        /// The invalid name.
        found: String,
    },
    /// The value is no type of an Event.
    #[error("is {found:?}, which is no type of an Event")]
    Weight {
        /// The invalid type.
        found: String,
    },
    /// The value is no reason of an Event.
    #[error("is {found:?}, which is no reason of an Event")]
    Reason {
        /// The invalid reason.
        found: String,
    },
    /// The string is no YAML document.
    #[error("holds a string that is not YAML: {0}")]
    Text(YamlError),
    /// The string has several documents.
    #[error("holds {documents} documents in one string")]
    Several {
        /// The number of documents.
        documents: usize,
    },
    /// The name of the JSON patch's step is unknown.
    #[error("names no step of a JSON patch: {found:?}")]
    PatchStep {
        /// The unknown name.
        found: String,
    },
    /// The path of the JSON patch is invalid.
    #[error("is {found:?}, which is no JSON pointer")]
    Pointer {
        /// The invalid path.
        found: String,
    },
    /// A value would be moved into itself.
    #[error("lies inside of what is moved")]
    Inside,
}

impl fmt::Display for BadOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "{operation}: ")?;
        }
        match self.field.as_str() {
            "" => write!(f, "the document {}", self.problem),
            field => write!(f, "field '{field}' {}", self.problem),
        }
    }
}

impl BadOperation {
    pub(super) fn of_document(self, number: usize, document: &Document) -> BadPatchFile {
        let key = self.field.split(['.', '[']).next().unwrap_or_default();
        BadPatchFile::Document {
            number,
            line: document.line_of(key),
            source: self,
        }
    }

    fn advice(&self) -> String {
        let needs = || match self.operation {
            Some(operation) => format!("{operation} needs {}", operation.needs()),
            None => "an operation is a map with the key 'operation' and those that it needs".to_owned(),
        };
        match &self.problem {
            Problem::Type { found, .. } if self.field.is_empty() => match *found {
                "a list" => "write the operations one after the other instead of a list of them".to_owned(),
                "nothing" => "take out the empty document: `---` stands between two operations, not after them".to_owned(),
                _ => needs(),
            },
            Problem::Missing | Problem::Type { .. } if self.field == "operation" => known_operations(),
            Problem::Operation { found } => {
                let meant = OperationName::ALL
                    .into_iter()
                    .find(|name| name.as_str().eq_ignore_ascii_case(found));
                meant.map_or_else(known_operations, |meant| format!("write it as '{meant}'"))
            }
            Problem::Missing if self.field.starts_with("jsonPatch[") => {
                "add, replace and test need 'path' and 'value', remove needs 'path', move and copy need 'from' and 'path'"
                    .to_owned()
            }
            Problem::Missing if self.field.starts_with("object.") => {
                "an object names its 'kind' and, in 'metadata', its 'name'; 'apiVersion' tells kinds of one name apart"
                    .to_owned()
            }
            Problem::Missing | Problem::Empty => needs(),
            Problem::Segment(NotASegment::Empty) if matches!(&*self.field, "kind" | "name") => needs(),
            Problem::Type {
                wanted: "a string",
                found: "a number" | "true or false",
            } => "put it in quotes".to_owned(),
            Problem::Type { wanted, .. } if matches!(&*self.field, "object" | "mergePatch" | "jsonPatch") => {
                format!("write {wanted}, or a string that holds one")
            }
            Problem::Type { wanted, .. } => format!("write {wanted}"),
            Problem::ApiVersion { .. } => "write a version such as v1, or a group and a version such as apps/v1".to_owned(),
            Problem::FieldManager { .. } => {
                "write up to 128 printable characters, such as the name of the module".to_owned()
            }
            Problem::Finalizer { .. } => {
                "write a domain in small letters, a slash and a name, such as example.com/volumes".to_owned()
            }
            Problem::Weight { .. } => "write Normal or Warning".to_owned(),
            Problem::Reason { .. } => "write one word of up to 128 letters and digits, such as BackupFailed".to_owned(),
            Problem::Segment(_) => "write the bare name, as kubectl shows it".to_owned(),
            Problem::Text(_) => "the lines are those inside of the string; a block that begins with | keeps them".to_owned(),
            Problem::Several { .. } => "write one operation for each document".to_owned(),
            Problem::PatchStep { .. } => "a step is one of add, remove, replace, move, copy and test".to_owned(),
            Problem::Pointer { .. } => {
                "a path begins with a slash; inside of a key ~1 stands for a slash and ~0 for a tilde".to_owned()
            }
            Problem::Inside => "copy it instead, or move it elsewhere".to_owned(),
        }
    }
}

fn known_operations() -> String {
    let names = OperationName::ALL.map(OperationName::as_str).join(", ");
    format!("an operation is one of {names}")
}

impl BadPatchFile {
    /// The remedy, for the author of the hook.
    pub fn advice(&self) -> String {
        match self {
            Self::Text { .. } => {
                "the file is a stream of JSON documents, or YAML documents with `---` between them".to_owned()
            }
            Self::Document { source, .. } => source.advice(),
        }
    }
}

impl From<BadPatchFile> for Failure {
    fn from(bad: BadPatchFile) -> Self {
        Self::of(Class::HookFailed, &bad).hint(bad.advice())
    }
}
