//! Object patches: what a hook asks to be done to objects of the cluster, read from the file it wrote.
//!
//! A file is read as a whole or not at all, and an operation that exists can be carried out as far as that can be known
//! without a cluster. Must never carry anything out.

mod document;
mod file;
mod manifest;
mod print;
mod problem;
mod step;
mod word;

use std::fmt;

use serde_json::{Map, Value};

pub use manifest::Manifest;
pub use problem::{BadOperation, BadPatchFile, Problem, Unreadable};
pub use step::{PatchStep, Pointer};
pub use word::{ApiVersion, NotASegment, OperationName, Segment};

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Makes an object.
    Create {
        /// The object.
        object: Manifest,
        /// The action if an object of that name exists.
        existing: Existing,
    },
    /// Takes an object away.
    Delete {
        /// Which.
        target: Target,
        /// The deletion of the objects that it owns.
        dependents: Dependents,
    },
    /// Changes an object.
    Patch {
        /// Which.
        target: Target,
        /// How.
        change: Change,
        /// Its further options.
        terms: Terms,
    },
}

/// The action for an object that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Existing {
    /// It should not: the operation fails.
    Refuse,
    /// It stays as it is.
    Keep,
    /// The new one takes its place.
    Replace,
}

/// The deletion of the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependents {
    /// They go first, and the operation lasts until the object is gone too.
    First,
    /// They are deleted later, without a wait.
    Later,
    /// They stay.
    Stay,
}

/// Which object an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Group and version; without them the kind decides alone.
    pub api_version: Option<ApiVersion>,
    /// Its kind, its plural or a short name of it.
    pub kind: Segment,
    /// Its namespace, if its kind has one.
    pub namespace: Option<Segment>,
    /// Its name.
    pub name: Segment,
}

/// How an object is to change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// These keys take these values, and those with null go.
    Merge(MergePatch),
    /// These steps one after the other, all or none.
    Json(JsonPatch),
    /// To the result of the filter.
    Jq(JqFilter),
}

/// The new value of each key that it names; not empty.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePatch(Map<String, Value>);

impl MergePatch {
    /// A merge patch, unless nothing is in it.
    pub fn new(keys: Map<String, Value>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The keys.
    pub fn keys(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// Steps of a JSON patch, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch(Vec<PatchStep>);

impl JsonPatch {
    /// A JSON patch, unless nothing is in it.
    pub fn new(steps: Vec<PatchStep>) -> Option<Self> {
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The steps in order.
    pub fn steps(&self) -> &[PatchStep] {
        &self.0
    }
}

/// A jq program as written, not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JqFilter(String);

impl JqFilter {
    /// A filter, unless nothing is in it.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// The program.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The conditions of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The part of the object that changes apart from the rest, such as `status`.
    pub subresource: Option<Segment>,
    /// A missing object needs no change.
    pub ignore_missing: bool,
    /// The change counts although the hook failed.
    pub ignore_hook_error: bool,
}

/// Reads a file: a stream of JSON documents or else of YAML documents, each an operation. Nothing in it is nothing to do.
pub fn parse(text: &str) -> Result<Vec<Operation>, BadPatchFile> {
    let documents = file::documents(text)?;
    let numbered = documents.iter().zip(1..);
    numbered
        .map(|(document, number)| document::read(document).map_err(|bad| bad.of_document(number, document)))
        .collect()
}

/// Parses the file of a failed hook: the operations that are still done.
pub fn parse_tolerated(text: &str) -> Result<Vec<Operation>, BadPatchFile> {
    let mut operations = parse(text)?;
    operations.retain(Operation::counts_despite_hook_error);
    Ok(operations)
}

impl Operation {
    /// The name under which hooks ask for it.
    pub fn name(&self) -> OperationName {
        match self {
            Self::Create { existing, .. } => match existing {
                Existing::Refuse => OperationName::Create,
                Existing::Keep => OperationName::CreateIfNotExists,
                Existing::Replace => OperationName::CreateOrUpdate,
            },
            Self::Delete { dependents, .. } => match dependents {
                Dependents::First => OperationName::Delete,
                Dependents::Later => OperationName::DeleteInBackground,
                Dependents::Stay => OperationName::DeleteNonCascading,
            },
            Self::Patch { change, .. } => match change {
                Change::Merge(_) => OperationName::MergePatch,
                Change::Json(_) => OperationName::JsonPatch,
                Change::Jq(_) => OperationName::JqPatch,
            },
        }
    }

    /// A failed hook may only patch the status of an object.
    pub fn counts_despite_hook_error(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Delete { .. } => false,
            Self::Patch { terms, .. } => {
                let status = terms.subresource.as_ref().is_some_and(|part| part.as_str() == "status");
                terms.ignore_hook_error && status
            }
        }
    }
}

impl fmt::Display for Operation {
    /// The operation and its object, in the form in which error texts of the original begin.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { object, .. } => write!(f, "Create object {object}"),
            Self::Delete { target, .. } => write!(f, "Delete object {target}"),
            Self::Patch { target, .. } => write!(f, "Filter object {target}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api_version = self.api_version.as_ref().map(ApiVersion::as_str);
        let namespace = self.namespace.as_ref().map(Segment::as_str);
        address(f, api_version, self.kind.as_str(), namespace, self.name.as_str())
    }
}

/// The parts that are set, with slashes between them.
fn address(
    f: &mut fmt::Formatter<'_>,
    api_version: Option<&str>,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> fmt::Result {
    for part in [api_version, Some(kind), namespace].into_iter().flatten() {
        write!(f, "{part}/")?;
    }
    f.write_str(name)
}

#[cfg(test)]
mod tests;
