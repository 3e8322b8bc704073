//! The mistakes in `module.yaml`, each with its line and its remedy, and the fields that are ignored.
//!
//! Must never say that the module can be used in spite of a mistake.

use helm_yaml::yaml::document::Kind;
use names::NameError;
use names::replaceable::NotReplaceable;
use thiserror::Error;

use super::{DRIFT, Restoring, SERVICE_ACCOUNT};

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mistake {
    /// The document is no map.
    #[error("should hold a map, but holds {0}")]
    NoMap(Kind),
    /// There is more than one document.
    #[error("line {line}: a second document begins here, and only one is read: remove the line `---`")]
    SecondDocument {
        /// The line of the second document, from 1.
        line: usize,
    },
    /// A field is probably a misspelling of one of our fields.
    #[error("line {line}: unknown field {field}, is {meant} meant?")]
    Misspelt {
        /// The line of the misspelt field, from 1.
        line: usize,
        /// The field as it is written.
        field: String,
        /// The field that was probably meant.
        meant: &'static str,
    },
    /// A field of ours has a value of the wrong type.
    #[error("line {line}: {field} should be {expected}, but is {found}")]
    Wrong {
        /// The line of the field, from 1.
        line: usize,
        /// The field's path.
        field: String,
        /// The expected type.
        expected: &'static str,
        /// The type of the value.
        found: Kind,
    },
    /// A map has a field that no version of it has.
    #[error("line {line}: unknown field {field}; there are {fields}")]
    NoField {
        /// The line of the map, from 1.
        line: usize,
        /// The field's path.
        field: String,
        /// The fields of the map.
        fields: &'static str,
    },
    /// A value is no time.
    #[error("line {line}: {field} should be a time above zero, such as 90s or 5m")]
    Duration {
        /// The line of the field, from 1.
        line: usize,
        /// The field's path.
        field: String,
    },
    /// A rule for the health of objects cannot be used.
    #[error("line {line}: {field}: {reason}")]
    Rule {
        /// The line of the field, from 1.
        line: usize,
        /// The field's path.
        field: String,
        /// The mistake, with its position in the expression.
        reason: String,
    },
    /// The value of `drift` is invalid.
    #[error("line {line}: {DRIFT} should be one of {}", Restoring::WORDS)]
    Drift {
        /// The line of the field, from 1.
        line: usize,
    },
    /// The value is no valid name of a service account.
    #[error("line {line}: {SERVICE_ACCOUNT} should be the name of a service account of the operator's namespace")]
    Account {
        /// The line of the field, from 1.
        line: usize,
    },
    /// A text is no valid name of a module.
    #[error("line {line}: {field} names no module")]
    Name {
        /// The line of the field, from 1.
        line: usize,
        /// The field's path.
        field: String,
        /// The reason why the text names no module.
        source: NameError,
    },
    /// A text names no object that may be replaced.
    #[error("line {line}: {field} names no object that may be replaced")]
    Replace {
        /// The line of the field, from 1.
        line: usize,
        /// The field's path.
        field: String,
        /// The reason, with the remedy.
        source: NotReplaceable,
    },
}

/// A field that is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: unknown field {field} is ignored")]
pub struct UnknownField {
    /// The line of the field, from 1.
    pub line: usize,
    /// The field as it is written.
    pub field: String,
}
