//! Object patches: the operations on objects of the cluster that a hook writes into a file.
//!
//! A file is accepted as a whole or refused as a whole. An `Operation` that exists is valid as far as that can be known
//! without a cluster. Must never carry an operation out.

mod document;
mod event;
mod file;
mod manifest;
mod print;
mod problem;
mod step;
mod word;

use std::fmt;

use serde_json::{Map, Value};

pub use event::{EventContents, Weight};
pub use manifest::Manifest;
pub use problem::{BadOperation, BadPatchFile, Problem, Unreadable};
pub use step::{PatchStep, Pointer};
pub use word::{ApiVersion, FieldManager, Finalizer, NotASegment, OperationName, Segment};

/// An operation on an object of the cluster that a hook asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Creates an object.
    Create {
        /// The object.
        object: Manifest,
        /// The action if an object of that name exists.
        existing: Existing,
    },
    /// Sets fields of an object, or creates the object with them. Other fields stay.
    Apply {
        /// The fields. The fields that name the object are among them.
        object: Manifest,
        /// The owner of the fields.
        manager: FieldManager,
        /// Whether fields of other managers are taken over.
        force: bool,
        /// The further options.
        terms: Terms,
    },
    /// Deletes an object.
    Delete {
        /// The object.
        target: Target,
        /// The action on the objects that the deleted object owns.
        dependents: Dependents,
    },
    /// Changes an object.
    Patch {
        /// The object.
        target: Target,
        /// The change.
        change: Change,
        /// The further options.
        terms: Terms,
    },
    /// Tells people about an object by an Event of Kubernetes.
    Event {
        /// The object.
        target: Target,
        /// The contents of the Event.
        contents: EventContents,
    },
}

/// The action on an object that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Existing {
    /// The operation fails, and the object stays.
    Refuse,
    /// The existing object stays as it is.
    Keep,
    /// The new object replaces the existing one.
    Replace,
}

/// The action on the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependents {
    /// The owned objects are deleted first. The operation lasts until the object itself is gone.
    First,
    /// The owned objects are deleted later, without a wait.
    Later,
    /// The owned objects stay.
    Stay,
}

/// The object of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group and version; `None`: the kind decides.
    pub api_version: Option<ApiVersion>,
    /// The kind, plural or short name.
    pub kind: Segment,
    /// The namespace, if the kind is namespaced.
    pub namespace: Option<Segment>,
    /// The name of the object.
    pub name: Segment,
}

/// The change of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A merge patch: sets these keys, and removes the keys whose value is null.
    Merge(MergePatch),
    /// A JSON patch: does all of these steps, or none.
    Json(JsonPatch),
    /// A jq filter: replaces the object by the result.
    Jq(JqFilter),
    /// A finalizer that the object gets, if it is not being deleted.
    Hold(Finalizer),
    /// A finalizer that the object loses.
    Free(Finalizer),
}

/// The keys and values of a merge patch; not empty.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePatch(Map<String, Value>);

impl MergePatch {
    /// A merge patch; `None` if it has no keys.
    pub fn new(keys: Map<String, Value>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The top-level keys of the patch, each with its value.
    pub fn keys(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// The steps of a JSON patch, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch(Vec<PatchStep>);

impl JsonPatch {
    /// A JSON patch; `None` if it has no steps.
    pub fn new(steps: Vec<PatchStep>) -> Option<Self> {
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The steps of the JSON patch in order.
    pub fn steps(&self) -> &[PatchStep] {
        &self.0
    }
}

/// The text of a jq program, not blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JqFilter(String);

impl JqFilter {
    /// A filter; `None` if the text is blank.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// The program as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The options of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The subresource to change, such as `status`.
    pub subresource: Option<Segment>,
    /// Whether a missing object is no error.
    pub ignore_missing: bool,
    /// Whether the change is made even if the hook failed.
    pub ignore_hook_error: bool,
}

/// Reads a file: a stream of JSON documents or, if it is none, of YAML documents. Each document is an operation. An
/// empty file has no operations.
pub fn parse(text: &str) -> Result<Vec<Operation>, BadPatchFile> {
    let documents = file::documents(text)?;
    let numbered = documents.iter().zip(1..);
    numbered
        .map(|(document, number)| document::read(document).map_err(|bad| bad.of_document(number, document)))
        .collect()
}

/// Reads the file of a failed hook: only the operations that are made even if the hook failed.
pub fn parse_tolerated(text: &str) -> Result<Vec<Operation>, BadPatchFile> {
    let mut operations = parse(text)?;
    operations.retain(Operation::counts_despite_hook_error);
    Ok(operations)
}

impl Operation {
    /// The name of the operation in a hook's file.
    pub fn name(&self) -> OperationName {
        match self {
            Self::Create { existing, .. } => match existing {
                Existing::Refuse => OperationName::Create,
                Existing::Keep => OperationName::CreateIfNotExists,
                Existing::Replace => OperationName::CreateOrUpdate,
            },
            Self::Apply { .. } => OperationName::Apply,
            Self::Delete { dependents, .. } => match dependents {
                Dependents::First => OperationName::Delete,
                Dependents::Later => OperationName::DeleteInBackground,
                Dependents::Stay => OperationName::DeleteNonCascading,
            },
            Self::Patch { change, .. } => match change {
                Change::Merge(_) => OperationName::MergePatch,
                Change::Json(_) => OperationName::JsonPatch,
                Change::Jq(_) => OperationName::JqPatch,
                Change::Hold(_) => OperationName::AddFinalizer,
                Change::Free(_) => OperationName::RemoveFinalizer,
            },
            Self::Event { .. } => OperationName::Event,
        }
    }

    /// Whether the operation is made even if the hook failed. This is possible only for changes of an object's status.
    pub fn counts_despite_hook_error(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Delete { .. } | Self::Event { .. } => false,
            Self::Apply { terms, .. } | Self::Patch { terms, .. } => {
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
            Self::Apply { object, .. } => write!(f, "Apply object {object}"),
            Self::Delete { target, .. } => write!(f, "Delete object {target}"),
            Self::Patch { target, .. } => write!(f, "Filter object {target}"),
            Self::Event { target, .. } => write!(f, "Event of object {target}"),
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
