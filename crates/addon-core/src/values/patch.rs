//! Patches of values: the texts of hooks, the operations that a hook's owner allows, and their application.
//!
//! A patch is applied in two ways: *strictly*, when the hook made it, to the values that the hook saw; and *stored*, in
//! its compacted form, each time that the values are computed anew. Must never change a document if it refuses an
//! operation.

mod operation;
mod pointer;

use std::fmt;

use helm_yaml::number;
use helm_yaml::yaml;
use names::{ENABLED_SUFFIX, GLOBAL_KEY, ModuleName, NameError, Owner};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::values::kind_of;

pub use operation::{DoesNotApply, Operation, Operations};
pub use pointer::Pointer;

/// The patch file that a hook wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PatchFile {
    /// The patch of the values in memory.
    Values,
    /// The patch of the values in the `ConfigMap`.
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

/// The error for a patch file that is no stream of JSON patches.
#[derive(Debug, Error)]
#[error("got bad json patch for {file}")]
pub struct BadPatch {
    /// The patch file that cannot be read.
    pub file: PatchFile,
    /// The mistake, with its position in the file.
    #[source]
    pub source: serde_json::Error,
}

/// A patch as a hook wrote it, with any operations on any paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(Vec<WrittenOperation>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WrittenOperation {
    #[serde(default)]
    op: String,
    #[serde(default)]
    path: String,
    /// The value; `null` if the operation has none.
    #[serde(default)]
    value: Value,
}

impl Patch {
    /// Reads a patch file: a stream of JSON documents, each a list of operations or a single one.
    pub fn parse(text: &str, file: PatchFile) -> Result<Self, BadPatch> {
        let bad = |source| BadPatch { file, source };
        if text.starts_with('\u{feff}') {
            return Err(bad(serde::de::Error::custom(
                "saved with a byte order mark: save it as UTF-8 without one",
            )));
        }
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

    /// The path of the first operation.
    pub fn first_path(&self) -> Option<&str> {
        self.0.first().map(|written| written.path.as_str())
    }

    /// Whether the patch has no operations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Separates the operations on values from those on flags. Refuses operations that a hook of this owner must not make.
    pub fn accept(&self, owner: &Owner) -> Result<Accepted, Unacceptable> {
        let mut operations = Vec::new();
        let mut flags = Vec::new();
        for written in &self.0 {
            match acceptable_root(written, owner)? {
                Root::Section => operations.push(written.operation()?),
                Root::Flag(module) => flags.push(written.flag(module)?),
            }
        }
        Ok(Accepted {
            operations: operations.into_iter().collect(),
            flags,
        })
    }
}

/// The part of the values that an operation is about.
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
            // The error must not quote the value, which may be a secret.
            let found = kind_of(&item);
            return Err(serde::de::Error::custom(format_args!(
                "a value of type {found} is no operation"
            )));
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
            "add" if path.depth() + depth(&self.value) > yaml::MAX_DEPTH => Err(Unacceptable::TooDeep { path }),
            "add" => Ok(Operation::Add {
                path,
                value: self.value.clone(),
            }),
            "remove" => Ok(Operation::Remove { path }),
            "test" => Ok(Operation::Test {
                path,
                value: self.value.clone(),
            }),
            _ => Err(self.unacceptable()),
        }
    }

    fn flag(&self, module: ModuleName) -> Result<FlagOp, Unacceptable> {
        match (self.op.as_str(), &self.value) {
            ("add", Value::Bool(enabled)) => Ok(FlagOp {
                module,
                opinion: Some(*enabled),
            }),
            ("add", value) => Err(Unacceptable::FlagValue {
                path: self.path.clone(),
                found: kind_of(value),
            }),
            ("remove", _) => Ok(FlagOp { module, opinion: None }),
            _ => Err(self.unacceptable()),
        }
    }

    fn unacceptable(&self) -> Unacceptable {
        match self.op.as_str() {
            "replace" => Unacceptable::Replace,
            op => Unacceptable::Operation { op: op.to_owned() },
        }
    }
}

/// The depth to which maps and lists are nested.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Object(map) => map.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// An operation that a hook must not make.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unacceptable {
    /// The `replace` of JSON Patch, which no hook may use.
    #[error("unsupported patch operation 'replace'")]
    Replace,
    /// An operation other than `add`, `remove` and `test`.
    #[error("patch operation '{op}' is none of add, remove and test")]
    Operation {
        /// The operation's name.
        op: String,
    },
    /// A path into the values of another owner.
    #[error("unacceptable patch operation for path '{root}' ({})", accepted_roots(.owner))]
    Root {
        /// The first key of the operation's path.
        root: String,
        /// The owner of the hook.
        owner: Owner,
    },
    /// A path that names no key.
    #[error("patch path '{path}' leads to no key of the values")]
    NoRoot {
        /// The path of the operation.
        path: String,
    },
    /// Values that are nested too deep to be parsed again.
    #[error(
        "patch operation 'add' for '{path}' would nest values deeper than {} levels",
        yaml::MAX_DEPTH
    )]
    TooDeep {
        /// The path of the operation.
        path: Pointer,
    },
    /// A flag for a name that no module can have.
    #[error("patch path '{path}' is no flag of a module")]
    Flag {
        /// The path of the operation.
        path: String,
        /// The reason why the name is invalid.
        #[source]
        source: NameError,
    },
    /// A flag that is neither true nor false.
    #[error(
        "apply enabled patch operation 'add' for {path}: unsupported module enabled value: should be true or false, not \
         of type {found}"
    )]
    FlagValue {
        /// The flag.
        path: String,
        /// The type of the value.
        found: &'static str,
    },
}

fn accepted_roots(owner: &Owner) -> String {
    match owner {
        Owner::Global => format!("only '{GLOBAL_KEY}' and '*{ENABLED_SUFFIX}' are permitted"),
        Owner::Module(name) => format!("only '{}' accepted", name.values_key()),
    }
}

/// A patch whose operations its owner allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The operations on the owner's section.
    pub operations: Operations,
    /// The operations on flags, in their order.
    pub flags: Vec<FlagOp>,
}

/// The flag of a module that a global hook sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagOp {
    /// The module.
    pub module: ModuleName,
    /// The flag of the module; `None` clears an earlier flag.
    pub opinion: Option<bool>,
}

#[cfg(test)]
mod tests;
