//! Patches of values: what a hook wrote, what of it its owner may do, and how it is applied.
//!
//! A patch is applied twice in its life. *Strictly*, when the hook made it, against the values it saw. And *stored*, in
//! its compacted form, each time the values are computed anew. Must never change a document that it refuses.

mod pointer;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::name::{ENABLED_SUFFIX, GLOBAL_KEY, ModuleName, NameError, Owner};
use crate::number;

pub use pointer::Pointer;

/// Which of its two patch files a hook wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PatchFile {
    /// Values in memory.
    Values,
    /// Values in the `ConfigMap`.
    Config,
}

impl fmt::Display for PatchFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Values => "values",
            Self::Config => "config values",
        })
    }
}

/// A patch file that is no stream of JSON patches.
#[derive(Debug, Error)]
#[error("got bad json patch for {file}")]
pub struct BadPatch {
    /// The file.
    pub file: PatchFile,
    /// What is wrong, and where.
    #[source]
    pub source: serde_json::Error,
}

/// A patch as a hook wrote it: any operations on any paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(Vec<WrittenOperation>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenOperation {
    #[serde(default)]
    op: String,
    #[serde(default)]
    path: String,
    /// Nothing and `null` are the same to an operation.
    #[serde(default)]
    value: Value,
}

impl Patch {
    /// Reads a patch file: a stream of JSON documents, each a list of operations or a single one.
    pub fn parse(text: &str, file: PatchFile) -> Result<Self, BadPatch> {
        let bad = |source| BadPatch { file, source };
        let mut operations = Vec::new();
        for item in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            match item.map_err(bad)? {
                Value::Array(list) => {
                    let list: Result<Vec<_>, _> = list.into_iter().map(WrittenOperation::read).collect();
                    operations.extend(list.map_err(bad)?);
                }
                single => operations.push(WrittenOperation::read(single).map_err(bad)?),
            }
        }
        Ok(Self(operations))
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Separates values from flags, and refuses what a hook of this owner may not do.
    pub fn accept(&self, owner: &Owner) -> Result<Accepted, Unacceptable> {
        let mut accepted = Accepted::default();
        for written in &self.0 {
            match acceptable_root(written, owner)? {
                Root::Section => accepted.operations.0.push(written.operation()?),
                Root::Flag(module) => accepted.flags.push(written.flag(module)?),
            }
        }
        Ok(accepted)
    }
}

/// What an operation is about.
enum Root {
    Section,
    Flag(ModuleName),
}

fn acceptable_root(written: &WrittenOperation, owner: &Owner) -> Result<Root, Unacceptable> {
    let Some(rest) = written.path.strip_prefix('/') else {
        return Err(Unacceptable::NoRoot {
            path: written.path.clone(),
        });
    };
    let (root, below) = match rest.split_once('/') {
        Some((root, below)) => (root, Some(below)),
        None => (rest, None),
    };
    if root == owner.values_key() {
        return Ok(Root::Section);
    }
    let unacceptable = || Unacceptable::Root {
        root: root.to_owned(),
        owner: owner.clone(),
    };
    match (owner, root.strip_suffix(ENABLED_SUFFIX)) {
        (Owner::Global, Some(key)) if below.is_none() => {
            let module = ModuleName::from_values_key(key);
            module.map(Root::Flag).map_err(|source| Unacceptable::Flag {
                path: written.path.clone(),
                source,
            })
        }
        _ => Err(unacceptable()),
    }
}

impl WrittenOperation {
    fn read(item: Value) -> Result<Self, serde_json::Error> {
        if !item.is_object() {
            return Err(serde::de::Error::custom(format_args!("{item} is no operation")));
        }
        let mut operation: Self = serde_json::from_value(item)?;
        number::settle(&mut operation.value);
        Ok(operation)
    }

    fn operation(&self) -> Result<Operation, Unacceptable> {
        let path = Pointer::parse(&self.path).ok_or_else(|| Unacceptable::NoRoot {
            path: self.path.clone(),
        })?;
        match self.op.as_str() {
            "add" => Ok(Operation::Add {
                path,
                value: self.value.clone(),
            }),
            "remove" => Ok(Operation::Remove { path }),
            "test" => Ok(Operation::Test {
                path,
                value: self.value.clone(),
            }),
            _ => Err(self.unsupported()),
        }
    }

    fn flag(&self, module: ModuleName) -> Result<FlagOp, Unacceptable> {
        match (self.op.as_str(), &self.value) {
            ("add", Value::Bool(enabled)) => Ok(FlagOp {
                module,
                opinion: Some(*enabled),
            }),
            ("add", value) => Err(Unacceptable::FlagValue {
                value: value.to_string(),
            }),
            ("remove", _) => Ok(FlagOp { module, opinion: None }),
            _ => Err(self.unsupported()),
        }
    }

    fn unsupported(&self) -> Unacceptable {
        Unacceptable::Operation { op: self.op.clone() }
    }
}

/// Something a hook may not do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unacceptable {
    /// An operation other than `add`, `remove` and `test`.
    #[error("unsupported patch operation '{op}'")]
    Operation {
        /// Its name.
        op: String,
    },
    /// A path into what belongs to somebody else.
    #[error("unacceptable patch operation for path '{root}' ({})", accepted_roots(.owner))]
    Root {
        /// First part of the path.
        root: String,
        /// Whose hook it is.
        owner: Owner,
    },
    /// A path that names no key.
    #[error("patch path '{path}' leads to no key of the values")]
    NoRoot {
        /// The path.
        path: String,
    },
    /// A flag of something that cannot be a module.
    #[error("patch path '{path}' is no flag of a module")]
    Flag {
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: NameError,
    },
    /// A flag that is neither true nor false.
    #[error("unsupported module enabled value: {value}, should be true or false")]
    FlagValue {
        /// The value as JSON.
        value: String,
    },
}

fn accepted_roots(owner: &Owner) -> String {
    match owner {
        Owner::Global => format!("only '{GLOBAL_KEY}' and '*{ENABLED_SUFFIX}' are permitted"),
        Owner::Module(name) => format!("only '{}' accepted", name.values_key()),
    }
}

/// A patch after its owner's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// What it does to the owner's section.
    pub operations: Operations,
    /// What it says about modules, in order.
    pub flags: Vec<FlagOp>,
}

/// A global hook's opinion on whether a module is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagOp {
    /// The module.
    pub module: ModuleName,
    /// The opinion; nothing takes an earlier one back.
    pub opinion: Option<bool>,
}

/// One operation on a document of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Checks that a value is there; only while the patch is applied strictly.
    Test {
        /// Where.
        path: Pointer,
        /// What it should be.
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

    fn is_test(&self) -> bool {
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

    /// Applies all, or says which does not apply.
    pub fn apply_strict(&self, document: &Value) -> Result<Value, DoesNotApply> {
        self.apply(document, Mode::Strict)
    }

    /// Applies what was accepted earlier to a document that may have changed since: what is already gone need not be
    /// removed, and tests had their say when the hook ran.
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
        // From the end, so that what is seen first is what stays. A test hides no operation and is hidden by none on its
        // own path.
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
            // What is missing equals null.
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

#[cfg(test)]
mod tests;
