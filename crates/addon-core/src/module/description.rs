//! `module.yaml`: what a module says of itself. Today that is which modules it needs.
//!
//! The file is older than us: programs that embed the original keep other things in it, which are let pass. What nobody
//! is known to write there is told. Must never pass over a field that could be ours and is misspelt.

use serde_json::Value;
use thiserror::Error;

use crate::name::{ModuleName, NameError};
use crate::yaml::YamlError;
use crate::yaml::document::{self, Document, Kind};

/// The one field that means something to us.
pub const DEPENDS_ON: &str = "dependsOn";

/// What programs that embed the original read from it. To us it means nothing.
const OF_OTHERS: [&str; 14] = [
    "accessibility",
    "critical",
    "description",
    "descriptions",
    "disable",
    "exclusiveGroup",
    "name",
    "namespace",
    "requirements",
    "stage",
    "subsystems",
    "tags",
    "update",
    "weight",
];

/// What a module says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The modules that have to succeed first, each once, in the order of the file.
    pub depends_on: Vec<ModuleName>,
    /// Why the module cannot be used as it is described.
    pub mistakes: Vec<Mistake>,
    /// Fields that mean nothing to anybody we know.
    pub unknown: Vec<UnknownField>,
}

/// Something that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Mistake {
    /// It holds something else than fields.
    #[error("should hold a map, but holds {0}")]
    NoMap(Kind),
    /// A field that speaks of dependencies in other words.
    #[error("line {line}: unknown field {field}, is {DEPENDS_ON} meant?")]
    Misspelt {
        /// Where it stands.
        line: usize,
        /// As it is written.
        field: String,
    },
    /// A field of ours holds the wrong kind of thing.
    #[error("line {line}: {field} should be {expected}, but is {found}")]
    Wrong {
        /// Where it stands.
        line: usize,
        /// Its path.
        field: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: Kind,
    },
    /// A text where the name of a module should be.
    #[error("line {line}: {field} names no module")]
    Name {
        /// Where it stands.
        line: usize,
        /// Its path.
        field: String,
        /// Why not.
        source: NameError,
    },
}

/// A field that is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: unknown field {field} is ignored")]
pub struct UnknownField {
    /// Where it stands.
    pub line: usize,
    /// As it is written.
    pub field: String,
}

impl Description {
    /// Reads the first document of a text; an empty one says nothing.
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        let document = document::documents_v3(text)?.into_iter().next();
        Ok(document.map_or_else(Self::default, |document| Self::read(&document)))
    }

    fn read(document: &Document) -> Self {
        let mut description = Self::default();
        match &document.value {
            Value::Null => {}
            Value::Object(fields) => {
                for (field, value) in fields {
                    description.take(document.line_of(field), field, value);
                }
            }
            other => description.mistakes.push(Mistake::NoMap(Kind::of(other))),
        }
        description
    }

    fn take(&mut self, line: usize, field: &str, value: &Value) {
        let name = || field.to_owned();
        if field == DEPENDS_ON {
            self.take_names(line, value);
        } else if is_nearly_ours(field) {
            self.mistakes.push(Mistake::Misspelt { line, field: name() });
        } else if !OF_OTHERS.contains(&field) {
            self.unknown.push(UnknownField { line, field: name() });
        }
    }

    fn take_names(&mut self, line: usize, value: &Value) {
        let wrong = |field: String, expected, value| Mistake::Wrong {
            line,
            field,
            expected,
            found: Kind::of(value),
        };
        let Value::Array(items) = value else {
            let mistake = wrong(DEPENDS_ON.to_owned(), "a list of module names", value);
            return self.mistakes.push(mistake);
        };
        for (at, item) in items.iter().enumerate() {
            let field = format!("{DEPENDS_ON}[{at}]");
            match item.as_str().map(ModuleName::parse) {
                Some(Ok(name)) if self.depends_on.contains(&name) => {}
                Some(Ok(name)) => self.depends_on.push(name),
                Some(Err(source)) => self.mistakes.push(Mistake::Name { line, field, source }),
                None => self.mistakes.push(wrong(field, "the name of a module", item)),
            }
        }
    }
}

/// It speaks of dependencies in other words: `dependOn`, `depends-on`, `dependencies`.
fn is_nearly_ours(field: &str) -> bool {
    field.to_ascii_lowercase().starts_with("depend")
}
