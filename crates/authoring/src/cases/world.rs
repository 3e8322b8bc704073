//! The cluster of one case: its objects, the kinds that it serves, and the selections of bindings.
//!
//! A kind is served once the case or the hook mentions it, because a case has no API server to ask. Must never be shared by
//! two cases.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::KubernetesBinding;
use addon_core::object::ObjectView;
use addon_core::object::patch::{ApiVersion, Operation, Segment};
use hooks::filters::compile;
use hooks::filters::jq;
use kube_access::kinds::Kinds as Served;
use objects::Patcher;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use watches::still::Still;

use crate::imitation::{Homeless, Imitation, Resource};
use crate::rights::kinds::{self, Kinds, group_of};

/// The kind of resource definitions.
const DEFINITION: &str = "CustomResourceDefinition";
/// The version of a kind that is mentioned without one.
const USUAL_VERSION: &str = "v1";
/// The namespace of the operator.
const NAMESPACE: &str = "default";

pub(super) struct World {
    kinds: Kinds,
    /// The versions of kinds that a definition lists, by group and kind.
    defined: BTreeMap<(String, String), Vec<String>>,
    served: Vec<Resource>,
    imitation: Imitation,
}

/// A kind as a document mentions it.
struct Mention<'a> {
    api_version: Option<&'a str>,
    /// Kind, plural or short name.
    word: &'a str,
    is_namespaced: bool,
}

impl World {
    /// A cluster with the resource definitions of a module.
    pub(super) fn new(crds: &[Value]) -> Self {
        let mut world = Self {
            kinds: Kinds::built_in(),
            defined: BTreeMap::new(),
            served: Vec::new(),
            imitation: Imitation::new(Vec::new()),
        };
        for crd in crds {
            world.learn(crd);
        }
        world
    }

    /// Adds the objects of a case. The error names the place in the list.
    pub(super) fn fill(&mut self, objects: &[Value]) -> Result<(), (usize, Homeless)> {
        objects
            .iter()
            .filter(|object| object["kind"] == DEFINITION)
            .for_each(|crd| self.learn(crd));
        objects
            .iter()
            .enumerate()
            .try_for_each(|(place, object)| self.put(object).map_err(|error| (place, error)))
    }

    /// Stores an object in the place of the one with its name.
    pub(super) fn put(&mut self, object: &Value) -> Result<(), Homeless> {
        self.mention_object(object);
        self.imitation.put(object.clone())
    }

    pub(super) fn remove(&mut self, object: &Value) -> Result<(), Homeless> {
        self.mention_object(object);
        self.imitation.remove(object)
    }

    pub(super) fn objects(&self) -> Vec<Value> {
        self.imitation.all()
    }

    /// The objects that a binding selects.
    pub(super) fn selected(&self, binding: &KubernetesBinding) -> Result<Vec<Value>, Failure> {
        let Some((group, kind, is_namespaced)) = self.kind_of(binding) else {
            // No object of the case is of that kind.
            return Ok(Vec::new());
        };
        if !is_namespaced
            && binding
                .namespaces
                .as_ref()
                .is_some_and(|one| one.labels.is_some() || !one.names.is_empty())
        {
            let report = format!(
                "binding '{}': objects of kind '{kind}' live in no namespace",
                binding.name
            );
            return Err(Failure::new(Class::Invalid, report).hint("leave out the binding's 'namespace'"));
        }
        let namespaces = self.imitation.objects("", "Namespace");
        let namespace = |name: &str| namespaces.iter().find(|found| found["metadata"]["name"] == name);
        let mut objects = self.imitation.objects(&group, &kind);
        objects.retain(|object| binding.selects(object, namespace));
        Ok(objects)
    }

    /// The snapshot of a binding.
    pub(super) fn snapshot(&self, binding: &KubernetesBinding) -> Result<Vec<ObjectView>, Failure> {
        Still::of(binding, compile)?.snapshot(&self.selected(binding)?)
    }

    /// Carries out object patches as the operator does.
    pub(super) async fn apply(&mut self, operations: &[Operation]) -> Result<(), Failure> {
        for operation in operations {
            match operation {
                Operation::Create { object, .. } | Operation::Apply { object, .. } => {
                    self.mention(&Mention {
                        api_version: object.api_version().map(ApiVersion::as_str),
                        word: object.kind().as_str(),
                        is_namespaced: object.namespace().is_some(),
                    });
                }
                Operation::Delete { target, .. }
                | Operation::Patch { target, .. }
                | Operation::Event { target, .. } => {
                    self.mention(&Mention {
                        api_version: target.api_version.as_ref().map(ApiVersion::as_str),
                        word: Segment::as_str(&target.kind),
                        is_namespaced: target.namespace.is_some(),
                    });
                    if let Operation::Event { .. } = operation {
                        self.mention(&Mention {
                            api_version: Some("v1"),
                            word: "Event",
                            is_namespaced: true,
                        });
                    }
                }
            }
        }
        let cluster = self.imitation.cluster(NAMESPACE);
        let patcher = Patcher::new(cluster.clone(), Served::new(cluster), jq);
        patcher.apply(operations, &CancellationToken::new()).await
    }

    /// Group and kind of the objects that a binding selects, and whether they are namespaced.
    fn kind_of(&self, binding: &KubernetesBinding) -> Option<(String, String, bool)> {
        let api_version = binding.api_version.as_deref().filter(|version| !version.is_empty());
        if let Some(known) = self.kinds.of_binding(api_version, &binding.kind) {
            return Some((known.group.clone(), known.kind.clone(), known.is_namespaced));
        }
        let is_meant = |one: &&Resource| is_named(one, api_version, &binding.kind);
        let guessed = self.served.iter().find(is_meant)?;
        Some((guessed.group.clone(), guessed.kind.clone(), guessed.is_namespaced))
    }

    fn learn(&mut self, crd: &Value) {
        self.kinds.learn(crd);
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let versions = crd
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let served = versions.filter(|version| version["served"] != false);
        let names = served.filter_map(|version| version["name"].as_str()).map(str::to_owned);
        if let (Some(group), Some(kind)) = (text("/spec/group"), text("/spec/names/kind")) {
            self.defined.insert((group, kind), names.collect());
        }
    }

    fn mention_object(&mut self, object: &Value) {
        let word = object["kind"].as_str().unwrap_or_default();
        self.mention(&Mention {
            api_version: object["apiVersion"].as_str(),
            word,
            is_namespaced: object["metadata"]["namespace"].is_string(),
        });
    }

    /// Serves a kind in the mentioned version, if a cluster could have it.
    fn mention(&mut self, mention: &Mention<'_>) {
        let Some(found) = self.resource(mention) else { return };
        let mentioned = mention.api_version.map(|text| text.rsplit('/').next().unwrap_or(text));
        let versions = match self.defined.get(&(found.group.clone(), found.kind.clone())) {
            Some(defined) => defined.clone(),
            None => mentioned.into_iter().map(str::to_owned).collect(),
        };
        let is_same = |one: &&mut Resource| one.group == found.group && one.kind == found.kind;
        match self.served.iter_mut().find(is_same) {
            Some(served) => add(&mut served.versions, versions),
            None if versions.is_empty() => self.served.push(Resource {
                versions: vec![USUAL_VERSION.to_owned()],
                ..found
            }),
            None => self.served.push(Resource { versions, ..found }),
        }
        self.imitation.serve(self.served.clone());
    }

    /// The resource of a mentioned kind: a known one, one that was mentioned before, or the likely one.
    fn resource(&self, mention: &Mention<'_>) -> Option<Resource> {
        let api_version = mention.api_version.filter(|version| !version.is_empty());
        let resource = |known: &kinds::Resource| Resource {
            group: known.group.clone(),
            versions: Vec::new(),
            kind: known.kind.clone(),
            plural: known.plural.clone(),
            is_namespaced: known.is_namespaced,
            short_names: known.short_names.clone(),
        };
        if let Some(known) = self.kinds.of_binding(api_version, mention.word) {
            return Some(resource(known));
        }
        if let Some(served) = self.served.iter().find(|one| is_named(one, api_version, mention.word)) {
            return Some(served.clone());
        }
        let api_version = api_version.filter(|_| !mention.word.is_empty())?;
        Some(resource(&kinds::guess(
            api_version,
            mention.word,
            mention.is_namespaced,
        )))
    }
}

/// Whether a document means this resource by the word.
fn is_named(resource: &Resource, api_version: Option<&str>, word: &str) -> bool {
    api_version.is_none_or(|version| group_of(version) == resource.group)
        && [&resource.kind, &resource.plural]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(word))
}

fn add(versions: &mut Vec<String>, more: Vec<String>) {
    for version in more {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
}
