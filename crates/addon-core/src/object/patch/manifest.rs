//! An object that a hook creates, with the names that identify it.

use std::fmt;

use serde_json::{Map, Value};

use super::document::{A_MAP, A_STRING, wrong};
use super::word::glimpse;
use super::{ApiVersion, NotASegment, Problem, Segment, address};

/// An object with a kind and a name. The name may be a prefix that the API server completes.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    api_version: Option<ApiVersion>,
    kind: Segment,
    namespace: Option<Segment>,
    name: Option<Segment>,
    content: Map<String, Value>,
}

/// A field of the object, and its mistake.
pub(super) type BadField = (&'static str, Problem);

impl Manifest {
    pub(super) fn parse(content: Map<String, Value>) -> Result<Self, BadField> {
        let nothing = Map::new();
        let metadata = match content.get("metadata") {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(metadata)) => metadata,
            Some(other) => return Err(("metadata", wrong(A_MAP, other))),
        };
        let kind = text(&content, "kind", "kind")?.ok_or(("kind", Problem::Missing))?;
        let api_version = text(&content, "apiVersion", "apiVersion")?.map(|text| {
            let found = glimpse(text);
            ApiVersion::parse(text).ok_or(("apiVersion", Problem::ApiVersion { found }))
        });
        let namespace = text(metadata, "namespace", "metadata.namespace")?;
        let name = text(metadata, "name", "metadata.name")?;
        let prefix = text(metadata, "generateName", "metadata.generateName")?;
        if name.or(prefix).is_none() {
            return Err(("metadata.name", Problem::Missing));
        }
        let word = |field, text: Option<&str>| text.map(Segment::parse).transpose().map_err(at(field));
        Ok(Self {
            api_version: api_version.transpose()?,
            kind: Segment::parse(kind).map_err(at("kind"))?,
            namespace: word("metadata.namespace", namespace)?,
            name: word("metadata.name", name)?,
            content,
        })
    }

    /// The group and version, if set.
    pub fn api_version(&self) -> Option<&ApiVersion> {
        self.api_version.as_ref()
    }

    /// The kind.
    pub fn kind(&self) -> &Segment {
        &self.kind
    }

    /// The namespace, if set.
    pub fn namespace(&self) -> Option<&Segment> {
        self.namespace.as_ref()
    }

    /// The name; `None` if the API server makes one.
    pub fn name(&self) -> Option<&Segment> {
        self.name.as_ref()
    }

    /// The whole object.
    pub fn content(&self) -> &Map<String, Value> {
        &self.content
    }
}

fn at(field: &'static str) -> impl Fn(NotASegment) -> BadField {
    move |error| (field, error.into())
}

/// A text in a map; `None` if it is absent or empty.
fn text<'map>(map: &'map Map<String, Value>, key: &str, field: &'static str) -> Result<Option<&'map str>, BadField> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err((field, wrong(A_STRING, other))),
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api_version = self.api_version.as_ref().map(ApiVersion::as_str);
        let namespace = self.namespace.as_ref().map(Segment::as_str);
        let name = self.name.as_ref().map_or("<generated>", Segment::as_str);
        address(f, api_version, self.kind.as_str(), namespace, name)
    }
}
