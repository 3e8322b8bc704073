//! Prints operations as documents, in the form in which hooks write them.

use helm_yaml::yaml::document::Document;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::{Change, EventContents, FieldManager, Manifest, Operation, Target, Terms, document};

impl Operation {
    /// The document that describes the operation.
    pub fn to_document(&self) -> Value {
        let mut printed = match self {
            Self::Create { object, .. } => json!({"object": object.content()}),
            Self::Apply {
                object,
                manager,
                force,
                terms,
            } => applied(object, manager, *force, terms),
            Self::Delete { target, .. } => on(target),
            Self::Patch { target, change, terms } => patch(target, change, terms),
            Self::Event { target, contents } => event(target, contents),
        };
        printed["operation"] = json!(self.name().as_str());
        printed
    }
}

fn on(target: &Target) -> Value {
    let mut printed = json!({"kind": target.kind.as_str(), "name": target.name.as_str()});
    if let Some(api_version) = &target.api_version {
        printed["apiVersion"] = json!(api_version.as_str());
    }
    if let Some(namespace) = &target.namespace {
        printed["namespace"] = json!(namespace.as_str());
    }
    printed
}

fn patch(target: &Target, change: &Change, terms: &Terms) -> Value {
    let mut printed = on(target);
    let (key, value) = match change {
        Change::Merge(patch) => ("mergePatch", json!(patch.keys())),
        Change::Json(patch) => ("jsonPatch", json!(patch.steps())),
        Change::Jq(filter) => ("jqFilter", json!(filter.as_str())),
        Change::Hold(finalizer) | Change::Free(finalizer) => ("finalizer", json!(finalizer.as_str())),
    };
    printed[key] = value;
    with(printed, terms)
}

fn event(target: &Target, contents: &EventContents) -> Value {
    let mut printed = on(target);
    printed["type"] = json!(contents.weight.as_str());
    printed["reason"] = json!(contents.reason());
    printed["message"] = json!(contents.message());
    if let Some(uid) = &contents.uid {
        printed["uid"] = json!(uid);
    }
    printed
}

fn applied(object: &Manifest, manager: &FieldManager, force: bool, terms: &Terms) -> Value {
    let mut printed = json!({"object": object.content(), "fieldManager": manager.as_str()});
    if force {
        printed["force"] = json!(true);
    }
    with(printed, terms)
}

/// The document with these options.
fn with(mut printed: Value, terms: &Terms) -> Value {
    if let Some(subresource) = &terms.subresource {
        printed["subresource"] = json!(subresource.as_str());
    }
    if terms.ignore_missing {
        printed["ignoreMissingObject"] = json!(true);
    }
    if terms.ignore_hook_error {
        printed["ignoreHookError"] = json!(true);
    }
    printed
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_document().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        document::read(&Document::at(1, value)).map_err(D::Error::custom)
    }
}
