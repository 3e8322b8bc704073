//! Manifests that helm has rendered: their objects, each with its template, and the differences between two of them.
//!
//! Must never print the contents of an object: a difference is told by its place alone.

use std::collections::{BTreeMap, BTreeSet};

use helm::labels::HELM_HOOK;
use helm_yaml::yaml::{self, YamlError};
use objects::key::flat;
use serde_json::Value;

use crate::kinds::Kinds;

/// The comment before a manifest that names its template.
const SOURCE: &str = "# Source: ";
/// The annotation that makes an object a hook of Argo CD.
pub const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
/// The labels that Flux puts on each object of a release.
pub const OF_FLUX: [&str; 2] = ["helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"];
/// The annotation that keeps helm from deleting an object.
const POLICY: &str = "helm.sh/resource-policy";
/// The kinds whose deletion deletes more than an object.
const WITH_DATA: [&str; 3] = ["CustomResourceDefinition", "Namespace", "PersistentVolumeClaim"];
/// The label that the operator sets on each object.
const HERITAGE: &str = "heritage";
/// The kinds that select pods alone, whose labels stay.
const OF_PODS: [&str; 7] = [
    "DaemonSet",
    "Deployment",
    "Job",
    "PodDisruptionBudget",
    "ReplicaSet",
    "Service",
    "StatefulSet",
];
/// The number of places that are told of one object.
const PLACES: usize = 3;

/// An object with the path of its template.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    pub template: String,
    pub object: Value,
}

/// The objects of a rendering.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendering {
    pub objects: Vec<Rendered>,
    /// Helm hooks: each with its events, as in `Job/migrate (pre-upgrade)`.
    pub hooks: Vec<String>,
}

impl Rendering {
    /// Reads the output of helm.
    pub fn read(manifest: &str) -> Result<Self, YamlError> {
        let mut rendering = Self::default();
        for piece in pieces(manifest) {
            let template = piece.lines().find_map(|line| line.strip_prefix(SOURCE));
            let template = template.unwrap_or_default().trim();
            for object in yaml::documents_v2(piece)?.into_iter().flat_map(flat) {
                if !object.is_object() {
                    continue;
                }
                if let Some(events) = object["metadata"]["annotations"][HELM_HOOK].as_str() {
                    rendering.hooks.push(format!("{} ({events})", shown(&object)));
                    continue;
                }
                rendering.objects.push(Rendered {
                    template: template.to_owned(),
                    object,
                });
            }
        }
        Ok(rendering)
    }

    /// The objects that have no namespace although their kind has one, by their templates.
    pub fn homeless(&self, kinds: &Kinds) -> BTreeSet<&str> {
        let objects = self.objects.iter();
        let homeless = objects.filter(|rendered| is_homeless(&rendered.object, kinds));
        homeless.map(|rendered| rendered.template.as_str()).collect()
    }

    /// The helm hooks that have one of these events.
    pub fn hooks_at(&self, events: &[&str]) -> Vec<String> {
        let has = |hook: &&String| {
            let told = hook
                .rsplit_once('(')
                .map_or("", |(_, events)| events.trim_end_matches(')'));
            told.split(',').any(|event| events.contains(&event.trim()))
        };
        self.hooks.iter().filter(has).cloned().collect()
    }
}

/// The objects with data that helm would delete at an upgrade, because the module does not render them.
pub fn lost(release: &Rendering, module: &Rendering, namespace: &str, kinds: &Kinds) -> Vec<String> {
    let new = settled(&module.objects, namespace, kinds);
    let mut old = settled(&release.objects, namespace, kinds);
    old.retain(|key, object| {
        let is_kept = object["metadata"]["annotations"][POLICY] == "keep";
        let has_data = WITH_DATA.contains(&object["kind"].as_str().unwrap_or_default());
        has_data && !is_kept && !new.contains_key(key)
    });
    old.values().map(shown).collect()
}

/// Those helm hooks that helm deletes and makes anew although they are no programs that run and end.
pub fn remade(hooks: &[String]) -> impl Iterator<Item = String> {
    let is_program = |hook: &&String| hook.starts_with("Job/") || hook.starts_with("Pod/");
    let remade = hooks.iter().filter(move |hook| !is_program(hook));
    remade.map(|hook| format!("{hook} is a helm hook, which helm deletes and makes anew"))
}

/// The objects that find other objects by a label that the operator changes.
pub fn by_heritage(release: &Rendering) -> impl Iterator<Item = String> {
    let is_affected = |object: &Value| !OF_PODS.contains(&object["kind"].as_str().unwrap_or_default());
    let objects = release.objects.iter().map(|rendered| &rendered.object);
    let found = objects.filter(move |object| is_affected(object) && selects(object, false));
    found.map(|object| format!("{} selects by the label {HERITAGE}, which changes", shown(object)))
}

/// Whether a selector below the value names the label; `within` tells that the value is in a selector.
fn selects(value: &Value, within: bool) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_selector = key.ends_with("elector") || key.starts_with("match");
            (within && (key == HERITAGE || key == "key" && value == HERITAGE)) || selects(value, within || is_selector)
        }),
        Value::Array(items) => items.iter().any(|item| selects(item, within)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn pieces(manifest: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    for line in manifest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            pieces.push(&manifest[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    pieces.push(&manifest[start..]);
    pieces
}

fn is_homeless(object: &Value, kinds: &Kinds) -> bool {
    kinds.has_namespace(object) && object["metadata"]["namespace"].as_str().is_none_or(str::is_empty)
}

pub fn shown(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// An object's identity in the form of Argo CD: group, kind, namespace and name.
fn identity(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    [group, &kind, &text(&metadata["namespace"]), &text(&metadata["name"])].join("/")
}

/// The objects with the namespace that they get, and without the labels that only tell their owner.
pub fn settled(objects: &[Rendered], namespace: &str, kinds: &Kinds) -> BTreeMap<String, Value> {
    let settle = |rendered: &Rendered| {
        let mut object = rendered.object.clone();
        if is_homeless(&object, kinds) {
            object["metadata"]["namespace"] = Value::from(namespace);
        }
        for field in ["labels", "annotations"] {
            if let Some(texts) = object["metadata"][field].as_object_mut() {
                texts.retain(|key, _| !OF_FLUX.contains(&key.as_str()));
            }
            let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if let Some(metadata) = object["metadata"].as_object_mut()
                && metadata.get(field).is_some_and(is_empty)
            {
                metadata.remove(field);
            }
        }
        (identity(&object), object)
    };
    objects.iter().map(settle).collect()
}

/// The differences between the objects of a release and those of its module, in words: none if both are the same.
pub fn differences(release: &Rendering, module: &Rendering, namespace: &str, kinds: &Kinds) -> Vec<String> {
    let (old, new) = (
        settled(&release.objects, namespace, kinds),
        settled(&module.objects, namespace, kinds),
    );
    let mut told = Vec::new();
    for (key, object) in &old {
        match new.get(key) {
            None => told.push(format!("{} is not rendered", shown(object))),
            Some(other) if other != object => {
                let mut places = Vec::new();
                differ(object, other, String::new(), &mut places);
                // A field that is `null` equals one that is absent.
                if !places.is_empty() {
                    told.push(format!("{} has another {}", shown(object), places.join(", ")));
                }
            }
            Some(_) => {}
        }
    }
    let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
    told.extend(added.map(|(_, object)| format!("{} is new", shown(object))));
    told
}

/// The objects of which only Argo CD or only the module knows the name, in words. Argo CD names the CRDs and the namespace, too,
/// that helm's charts do not render.
pub fn other_names(names: &BTreeSet<String>, module: &Rendering, namespace: &str, kinds: &Kinds) -> Vec<String> {
    let new = settled(&module.objects, namespace, kinds);
    let mut told = Vec::new();
    let is_apart =
        |name: &str| name.contains("/CustomResourceDefinition/") || name == format!("/Namespace//{namespace}");
    let gone = names.iter().filter(|name| !new.contains_key(*name) && !is_apart(name));
    told.extend(gone.map(|name| format!("{} is not rendered", brief(name))));
    let added = new.keys().filter(|name| !names.contains(*name));
    told.extend(added.map(|name| format!("{} is new", brief(name))));
    told
}

fn brief(identity: &str) -> String {
    let parts: Vec<&str> = identity.split('/').collect();
    match parts.as_slice() {
        [_, kind, _, name] => format!("{kind}/{name}"),
        _ => identity.to_owned(),
    }
}

/// Adds the places in which two values differ, up to the number that is told of one object.
pub fn differ(one: &Value, other: &Value, path: String, places: &mut Vec<String>) {
    if places.len() >= PLACES || one == other {
        return;
    }
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let (one, other) = (one.get(key), other.get(key));
                let nothing = Value::Null;
                differ(one.unwrap_or(&nothing), other.unwrap_or(&nothing), below(key), places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                differ(one, other, format!("{path}[{at}]"), places);
            }
        }
        _ => places.push(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    \
                       helm.toolkit.fluxcd.io/name: web\ndata: {x: '1', word: open-sesame}\n---\n# Source: web/templates/b.yaml\n\
                       apiVersion: v1\nkind: Service\nmetadata: {name: b, namespace: shop}\n";

    fn read(manifest: &str) -> Rendering {
        Rendering::read(manifest).unwrap()
    }

    #[test]
    fn the_same_objects_differ_in_nothing() {
        let new = OLD.replace("  name: a\n", "  name: a\n  namespace: shop\n");
        let new = new.replace("  labels:\n    helm.toolkit.fluxcd.io/name: web\n", "");
        assert_eq!(differences(&read(OLD), &read(&new), "shop", &Kinds::some()), [""; 0]);
        let elsewhere = differences(&read(OLD), &read(&new), "other", &Kinds::some());
        assert_eq!(elsewhere, ["ConfigMap/a is not rendered", "ConfigMap/a is new"]);
    }

    #[test]
    fn differences_are_told_by_place_and_never_by_value() {
        let empty = OLD.replace("\ndata: {", "\nbinaryData: null\ndata: {z: null, ");
        assert_eq!(differences(&read(OLD), &read(&empty), "shop", &Kinds::some()), [""; 0]);
        let new = OLD.replace("open-sesame", "other").replace("name: b", "name: c");
        assert_eq!(
            differences(&read(OLD), &read(&new), "shop", &Kinds::some()),
            [
                "ConfigMap/a has another data.word",
                "Service/b is not rendered",
                "Service/c is new"
            ]
        );
    }

    #[test]
    fn hooks_are_told_apart_and_homeless_objects_are_found() {
        let hook = "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations: {helm.sh/hook: 'pre-install, post-upgrade'}\n";
        let rendering = read(&format!("{OLD}{hook}"));
        assert_eq!(rendering.objects.len(), 2);
        assert_eq!(
            rendering.hooks_at(&["post-upgrade"]),
            ["Job/j (pre-install, post-upgrade)"]
        );
        assert_eq!(rendering.hooks_at(&["pre-upgrade"]), [""; 0]);
        let homeless: Vec<&str> = rendering.homeless(&Kinds::some()).into_iter().collect();
        assert_eq!(homeless, ["web/templates/a.yaml"]);
    }

    #[test]
    fn a_claim_that_helm_would_delete_is_lost() {
        let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: c\n";
        let of = |text: &str| lost(&read(text), &read(OLD), "shop", &Kinds::some());
        assert_eq!(of(claim), ["PersistentVolumeClaim/c"]);
        assert_eq!(
            of(&format!("{claim}  annotations: {{helm.sh/resource-policy: keep}}\n")),
            [""; 0]
        );
        assert_eq!(of(&OLD.replace("name: b", "name: c")), [""; 0]);
    }

    #[test]
    fn hooks_that_are_no_programs_are_made_anew() {
        let hooks = ["Job/j (pre-install)", "Pod/p (pre-install)", "Secret/s (pre-install)"].map(str::to_owned);
        let remade: Vec<String> = remade(&hooks).collect();
        assert_eq!(
            remade,
            ["Secret/s (pre-install) is a helm hook, which helm deletes and makes anew"]
        );
    }

    #[test]
    fn a_selector_of_objects_by_heritage_is_told() {
        let of = |kind: &str, spec: &str| {
            read(&format!(
                "kind: {kind}\nmetadata: {{name: a, labels: {{heritage: Helm}}}}\nspec: {spec}\n"
            ))
        };
        for (kind, spec, expected) in [
            ("ServiceMonitor", "{selector: {matchLabels: {heritage: Helm}}}", true),
            (
                "X",
                "{podSelector: {matchExpressions: [{key: heritage, operator: Exists}]}}",
                true,
            ),
            ("ServiceMonitor", "{selector: {matchLabels: {app: heritage}}}", false),
            ("X", "{key: heritage, labels: {heritage: Helm}}", false),
            ("Deployment", "{selector: {matchLabels: {heritage: Helm}}}", false),
        ] {
            assert_eq!(
                by_heritage(&of(kind, spec)).count(),
                usize::from(expected),
                "{kind} {spec}"
            );
        }
    }

    #[test]
    fn an_application_is_compared_by_names() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = named(&[
            "/ConfigMap/shop/a",
            "/Service/shop/b",
            "/Namespace//shop",
            "apiextensions.k8s.io/CustomResourceDefinition//x",
        ]);
        assert_eq!(other_names(&names, &read(OLD), "shop", &Kinds::some()), [""; 0]);
        let names = named(&["/ConfigMap/shop/a", "apps/Deployment/shop/d"]);
        assert_eq!(
            other_names(&names, &read(OLD), "shop", &Kinds::some()),
            ["Deployment/d is not rendered", "Service/b is new"]
        );
    }
}
