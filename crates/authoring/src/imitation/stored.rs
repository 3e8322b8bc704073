//! The objects of an imitated cluster, each at the place that its kind and names give, and the kinds that it serves.
//!
//! Must never hold two objects at one place.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thiserror::Error;

/// The namespace of an object that names none.
const DEFAULT: &str = "default";

/// A resource that the imitated cluster serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub group: String,
    /// The versions; the first one is preferred.
    pub versions: Vec<String>,
    pub kind: String,
    pub plural: String,
    pub is_namespaced: bool,
    pub short_names: Vec<String>,
}

/// Why an object cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Homeless {
    #[error("it has no {0}")]
    Lacks(&'static str),
    #[error("the kind {kind} of {api_version} is unknown")]
    Unknown { api_version: String, kind: String },
    #[error("objects of kind {kind} live in no namespace, and '{namespace}' is named")]
    ClusterWide { kind: String, namespace: String },
}

/// The place of an object; the namespace is empty for a cluster-wide one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An owner of fields: a field manager, and whether the fields are those of the status.
pub(super) type Owner = (String, bool);

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) resources: Vec<Resource>,
    pub(super) objects: BTreeMap<Place, Value>,
    /// The number of names that were generated.
    pub(super) generated: u32,
    /// The fields that were applied, by object and field manager.
    pub(super) applied: BTreeMap<Place, BTreeMap<Owner, Value>>,
}

impl Stored {
    pub(super) fn new(resources: Vec<Resource>) -> Self {
        Self {
            resources,
            objects: BTreeMap::new(),
            generated: 0,
            applied: BTreeMap::new(),
        }
    }

    pub(super) fn put(&mut self, mut object: Value) -> Result<(), Homeless> {
        let place = self.place(&object)?;
        if !place.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(place.namespace);
        }
        self.objects.insert(place, object);
        Ok(())
    }

    pub(super) fn remove(&mut self, object: &Value) -> Result<(), Homeless> {
        let place = self.place(object)?;
        self.objects.remove(&place);
        Ok(())
    }

    pub(super) fn find(&self, object: &Value) -> Result<Option<Value>, Homeless> {
        Ok(self.objects.get(&self.place(object)?).cloned())
    }

    pub(super) fn of_kind(&self, group: &str, kind: &str) -> Vec<Value> {
        let Some(resource) = self.resources.iter().find(|one| one.group == group && one.kind == kind) else {
            return Vec::new();
        };
        let is_of = |place: &Place| place.group == group && place.plural == resource.plural;
        let found = self.objects.iter().filter(|(place, _)| is_of(place));
        found.map(|(_, object)| object.clone()).collect()
    }

    /// The place of an object, from the kind and the names in the object itself.
    fn place(&self, object: &Value) -> Result<Place, Homeless> {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let api_version = text("/apiVersion").ok_or(Homeless::Lacks("apiVersion"))?;
        let kind = text("/kind").ok_or(Homeless::Lacks("kind"))?;
        let name = text("/metadata/name").ok_or(Homeless::Lacks("metadata.name"))?;
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let is_meant = |one: &&Resource| {
            one.group == group && one.kind == kind && one.versions.iter().any(|known| known == version)
        };
        let resource = self.resources.iter().find(is_meant).ok_or_else(|| Homeless::Unknown {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })?;
        let namespace = match (resource.is_namespaced, text("/metadata/namespace")) {
            (true, namespace) => namespace.unwrap_or(DEFAULT),
            (false, None) => "",
            (false, Some(namespace)) => {
                return Err(Homeless::ClusterWide {
                    kind: kind.to_owned(),
                    namespace: namespace.to_owned(),
                });
            }
        };
        Ok(Place {
            group: group.to_owned(),
            plural: resource.plural.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The list of kinds, in the form of the aggregated discovery: the core group, or all others.
    pub(super) fn discovery(&self, is_core: bool) -> Value {
        let mut groups: Vec<&str> = Vec::new();
        for resource in self.resources.iter().filter(|one| one.group.is_empty() == is_core) {
            if !groups.contains(&resource.group.as_str()) {
                groups.push(&resource.group);
            }
        }
        let items = groups
            .into_iter()
            .map(|group| json!({"metadata": {"name": group}, "versions": self.versions(group)}));
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items.collect::<Vec<_>>(),
        })
    }

    fn versions(&self, group: &str) -> Vec<Value> {
        let mut versions: Vec<(&str, Vec<Value>)> = Vec::new();
        for resource in self.resources.iter().filter(|one| one.group == group) {
            for version in &resource.versions {
                let served = json!({
                    "resource": resource.plural,
                    "responseKind": {"group": group, "version": version, "kind": resource.kind},
                    "scope": if resource.is_namespaced { "Namespaced" } else { "Cluster" },
                    "shortNames": resource.short_names,
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
                });
                match versions.iter_mut().find(|(known, _)| known == version) {
                    Some((_, list)) => list.push(served),
                    None => versions.push((version, vec![served])),
                }
            }
        }
        let shown = versions
            .into_iter()
            .map(|(version, list)| json!({"version": version, "resources": list}));
        shown.collect()
    }
}
