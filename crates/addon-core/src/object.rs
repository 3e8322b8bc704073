//! Objects of the cluster, in the form in which hooks see them.
//!
//! Must never interpret an object beyond its names: the filter chooses the parts that a hook sees.

pub mod json;
pub mod patch;
pub mod snapshot;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::json::Json;

/// The name of an object. Sorted like snapshots: by namespace, then by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    /// The namespace; empty for a cluster-wide object.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// The kind in the object itself.
    pub kind: String,
}

impl ObjectName {
    /// The names in an object. A missing name is empty.
    pub fn of(object: &Value) -> Self {
        let text = |pointer| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            kind: text("/kind"),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, kind } = self;
        match namespace.as_str() {
            "" => write!(f, "{kind} {name}"),
            _ => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// An object as a binding shows it. Hooks get the fields in this order, which is alphabetical.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    /// The result of the filter, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "found")]
    pub filter_result: Option<Json>,
    /// The object, unless the binding keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Json>,
}

/// Distinguishes a filter result of null from a missing filter.
fn found<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
