//! The rights to read the objects that hooks' bindings select. Admission and conversion bindings need no right.
//! Requests that a hook makes itself do not show in its configuration.

use addon_core::hook::config::{HookConfig, KubernetesBinding};

use super::kinds::{self, Kinds, Resource};
use super::rules::{Rights, Scope, Subject};

/// A watch needs a list first.
const WATCHING: [&str; 2] = ["list", "watch"];
const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Adds the rights for one hook. Returns the kinds that had to be guessed.
pub(super) fn collect(
    config: &HookConfig,
    kinds: &Kinds,
    release_namespace: &str,
    needed_by: &str,
    rights: &mut Rights,
) -> Vec<Resource> {
    let mut guessed = Vec::new();
    for binding in &config.kubernetes {
        let known = kinds.of_binding(binding.api_version.as_deref(), &binding.kind);
        let resource = known.cloned().unwrap_or_else(|| {
            let api_version = binding.api_version.as_deref().unwrap_or_default();
            let resource = kinds::guess(api_version, &binding.kind, true);
            guessed.push(resource.clone());
            resource
        });
        for place in places(binding, &resource, release_namespace) {
            for subject in subjects(binding, &resource) {
                rights.allow(&place, subject, &WATCHING, needed_by);
            }
        }
        if binding
            .namespaces
            .as_ref()
            .is_some_and(|chosen| chosen.labels.is_some())
        {
            rights.allow(&Scope::Cluster, Subject::all("", "namespaces"), &WATCHING, needed_by);
        }
    }
    for conversion in &config.conversions {
        let (group, resource) = CRDS;
        let subject = Subject::one(group, resource, &conversion.crd_name);
        rights.allow(&Scope::Cluster, subject, &["get", "patch"], needed_by);
    }
    guessed
}

/// The objects of a binding. With names in the binding each object is watched alone, so rights to single objects are
/// enough.
fn subjects(binding: &KubernetesBinding, Resource { group, plural, .. }: &Resource) -> Vec<Subject> {
    if binding.names.is_empty() {
        return vec![Subject::all(group, plural)];
    }
    let names = binding.names.iter();
    names.map(|name| Subject::one(group, plural, name)).collect()
}

fn places(binding: &KubernetesBinding, resource: &Resource, release_namespace: &str) -> Vec<Scope> {
    match &binding.namespaces {
        Some(chosen) if resource.is_namespaced && chosen.labels.is_none() && !chosen.names.is_empty() => chosen
            .names
            .iter()
            .map(|name| place_of(name, release_namespace))
            .collect(),
        _ => vec![Scope::Cluster],
    }
}

/// The scope for a namespace. The namespace of the releases is not named, because its name differs between clusters.
pub(super) fn place_of(namespace: &str, release_namespace: &str) -> Scope {
    if namespace == release_namespace {
        Scope::Release
    } else {
        Scope::Namespace(namespace.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use addon_core::hook::config::HookKind;

    use super::*;

    fn rights(config: &str) -> Vec<String> {
        let config = HookConfig::parse(config, HookKind::Module).unwrap();
        let mut rights = Rights::default();
        collect(&config, &Kinds::built_in(), "ours", "m", &mut rights);
        let places = rights.places().into_iter().cloned().collect::<Vec<_>>();
        let told = places.iter().flat_map(|place| {
            let rules = rights.rules(place).into_iter();
            rules.map(move |rule| format!("{place:?}: {}", rule.document()))
        });
        told.collect()
    }

    #[test]
    fn bindings_let_us_read_what_they_select() {
        let config = "
configVersion: v1
kubernetes:
- {kind: nodes, apiVersion: v1}
- {kind: Secret, apiVersion: v1, nameSelector: {matchNames: [a, b]}, namespace: {nameSelector: {matchNames: [ours, theirs]}}}
- {kind: Pod, apiVersion: v1, namespace: {labelSelector: {matchLabels: {a: b}}}}
kubernetesValidating:
- {name: x.example.com, rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
kubernetesCustomResourceConversion:
- {name: c, crdName: mice.example.com, conversions: [{fromVersion: v1, toVersion: v2}]}
";
        let secrets =
            r#"{"apiGroups":[""],"resourceNames":["a","b"],"resources":["secrets"],"verbs":["list","watch"]}"#;
        assert_eq!(
            rights(config),
            [
                r#"Cluster: {"apiGroups":[""],"resources":["namespaces","nodes","pods"],"verbs":["list","watch"]}"#.to_owned(),
                r#"Cluster: {"apiGroups":["apiextensions.k8s.io"],"resourceNames":["mice.example.com"],"resources":["customresourcedefinitions"],"verbs":["get","patch"]}"#.to_owned(),
                format!("Release: {secrets}"),
                format!("Namespace(\"theirs\"): {secrets}"),
            ]
        );
    }
}
