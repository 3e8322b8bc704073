//! Operations on documents: how they are applied, and how they are compacted for storage.
//!
//! Must never change a document when one of them does not apply.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::pointer::{self, Pointer};

/// One operation on a document of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Checks that a value is there; only while the patch is applied strictly.
    Test {
        /// Where.
        path: Pointer,
        /// The expected value.
        #[serde(default)]
        value: Value,
    },
    /// Sets a key, or inserts into a list.
    Add {
        /// Where.
        path: Pointer,
        /// What.
        #[serde(default)]
        value: Value,
    },
    /// Takes a key or an item away.
    Remove {
        /// Where.
        path: Pointer,
    },
}

impl Operation {
    /// Where it acts.
    pub fn path(&self) -> &Pointer {
        match self {
            Self::Test { path, .. } | Self::Add { path, .. } | Self::Remove { path } => path,
        }
    }

    /// Whether it only looks.
    pub fn is_test(&self) -> bool {
        matches!(self, Self::Test { .. })
    }
}

/// Why an operation does not apply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DoesNotApply {
    /// The path leads into nothing.
    #[error("nothing at the parent of '{path}'")]
    NoParent {
        /// The path.
        path: Pointer,
    },
    /// There is nothing to remove.
    #[error("nothing to remove at '{path}'")]
    Missing {
        /// The path.
        path: Pointer,
    },
    /// A list is not that long, or the last part of the path is no index.
    #[error("'{path}' is no place in a list of {length}")]
    Index {
        /// The path.
        path: Pointer,
        /// Items in the list.
        length: usize,
    },
    /// A test found something else.
    #[error("test of '{path}' failed")]
    Test {
        /// The path.
        path: Pointer,
    },
}

/// Operations on one section, in the order in which they act.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Operations(Vec<Operation>);

/// Whether missing things are forgiven.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Strict,
    Stored,
}

impl Operations {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.0.iter()
    }

    /// Applies all operations, or returns the first that cannot be applied.
    pub fn apply_strict(&self, document: &Value) -> Result<Value, DoesNotApply> {
        self.apply(document, Mode::Strict)
    }

    /// Applies operations that were accepted earlier to a document that may have changed since: a key that is gone need
    /// not be removed, and tests were checked when the hook ran.
    pub fn apply_stored(&self, document: &Value) -> Result<Value, DoesNotApply> {
        self.apply(document, Mode::Stored)
    }

    fn apply(&self, document: &Value, mode: Mode) -> Result<Value, DoesNotApply> {
        let mut patched = document.clone();
        for operation in &self.0 {
            operation.apply(&mut patched, mode)?;
        }
        Ok(patched)
    }

    /// These operations and later ones as one list: the last one of each path, nothing below a path that a later one
    /// sets or removes, in the order of the paths.
    ///
    /// Appends to a list share one path, so only the last of them is remembered, as in the original.
    #[must_use]
    pub fn compacted_with(&self, later: &Self) -> Self {
        // From the end, so that the operation that is seen first is the one that stays. A test hides no operation and
        // is hidden by none on its own path.
        let mut kept: BTreeMap<(&Pointer, bool), &Operation> = BTreeMap::new();
        let mut settled: BTreeSet<&str> = BTreeSet::new();
        for operation in self.0.iter().chain(&later.0).rev() {
            let path = operation.path();
            if path.ancestors().any(|ancestor| settled.contains(ancestor)) {
                continue;
            }
            kept.entry((path, !operation.is_test())).or_insert(operation);
            if !operation.is_test() {
                settled.insert(path.as_str());
            }
        }
        Self(kept.into_values().cloned().collect())
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        Self(operations.into_iter().collect())
    }
}

impl Operation {
    fn apply(&self, document: &mut Value, mode: Mode) -> Result<(), DoesNotApply> {
        match self {
            Self::Add { path, value } => add(document, path, value),
            Self::Remove { path } => match remove(document, path) {
                Err(_) if mode == Mode::Stored => Ok(()),
                removed => removed,
            },
            Self::Test { .. } if mode == Mode::Stored => Ok(()),
            // A missing value equals null.
            Self::Test { path, value } if path.find(document).unwrap_or(&Value::Null) == value => Ok(()),
            Self::Test { path, .. } => Err(DoesNotApply::Test { path: path.clone() }),
        }
    }
}

fn add(document: &mut Value, path: &Pointer, value: &Value) -> Result<(), DoesNotApply> {
    match path.parent_of(document) {
        Some((Value::Object(map), key)) => {
            map.insert(key.to_owned(), value.clone());
            Ok(())
        }
        Some((Value::Array(items), "-")) => {
            items.push(value.clone());
            Ok(())
        }
        Some((Value::Array(items), key)) => match pointer::index(key, items.len() + 1) {
            Some(at) => {
                items.insert(at, value.clone());
                Ok(())
            }
            None => Err(DoesNotApply::Index {
                path: path.clone(),
                length: items.len(),
            }),
        },
        _ => Err(DoesNotApply::NoParent { path: path.clone() }),
    }
}

fn remove(document: &mut Value, path: &Pointer) -> Result<(), DoesNotApply> {
    let removed = match path.parent_of(document) {
        Some((Value::Object(map), key)) => map.remove(key).is_some(),
        Some((Value::Array(items), key)) => match pointer::index(key, items.len()) {
            Some(at) => {
                items.remove(at);
                true
            }
            None => false,
        },
        _ => false,
    };
    if removed {
        Ok(())
    } else {
        Err(DoesNotApply::Missing { path: path.clone() })
    }
}
