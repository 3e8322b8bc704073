//! Operations on documents: their application, and their compaction for storage.
//!
//! Must never change a document if one of the operations cannot be applied.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::pointer::{self, Pointer};

/// One operation on a document of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Checks a value. Only done when the patch is applied strictly.
    Test {
        /// The path of the value in the document.
        path: Pointer,
        /// The expected value.
        #[serde(default)]
        value: Value,
    },
    /// Sets a key, or inserts an item into a list.
    Add {
        /// The path at which the value is set or inserted.
        path: Pointer,
        /// The value that is set or inserted.
        #[serde(default)]
        value: Value,
    },
    /// Removes a key or an item.
    Remove {
        /// The path of the removed key or item.
        path: Pointer,
    },
}

impl Operation {
    /// The path of the operation in the document.
    pub fn path(&self) -> &Pointer {
        match self {
            Self::Test { path, .. } | Self::Add { path, .. } | Self::Remove { path } => path,
        }
    }

    /// Whether the operation is a test, which changes nothing.
    pub fn is_test(&self) -> bool {
        matches!(self, Self::Test { .. })
    }
}

/// The reason for which an operation cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DoesNotApply {
    /// A parent of the path does not exist.
    #[error("nothing at the parent of '{path}'")]
    NoParent {
        /// The path of the operation.
        path: Pointer,
    },
    /// The place does not exist, so nothing can be removed.
    #[error("nothing to remove at '{path}'")]
    Missing {
        /// The path of the operation.
        path: Pointer,
    },
    /// The list is too short, or the last part of the path is no index.
    #[error("'{path}' is no place in a list of {length}")]
    Index {
        /// The path of the operation.
        path: Pointer,
        /// The number of items in the list.
        length: usize,
    },
    /// The tested value differs from the expected value.
    #[error("test of '{path}' failed")]
    Test {
        /// The path of the tested value.
        path: Pointer,
    },
}

/// Operations on one section, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Operations(Vec<Operation>);

/// Whether operations on missing paths are errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Strict,
    Stored,
}

impl Operations {
    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.0.iter()
    }

    /// Applies all operations, or returns the error of the first that cannot be applied.
    pub fn apply_strict(&self, document: &Value) -> Result<Value, DoesNotApply> {
        self.apply(document, Mode::Strict)
    }

    /// Applies operations that were accepted earlier to a document that may have changed since. Removing a missing key is
    /// no error, and tests are skipped because they were checked when the hook ran.
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

    /// Combines these operations with later ones: keeps the last operation of each path, drops operations below a path
    /// that a later operation sets or removes, and sorts by path.
    ///
    /// Appends to a list share one path, so only the last of them is kept, as in the original.
    #[must_use]
    pub fn compacted_with(&self, later: &Self) -> Self {
        // Goes from the end, so that the last operation of each path is kept. A test neither hides operations on its path
        // nor is hidden by them.
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
