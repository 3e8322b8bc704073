//! The rights to install the objects that charts render to, and to keep them unchanged.
//!
//! RBAC lets us grant only rights that we have: the rules of rendered roles become rights of ours, and a role that is
//! only referred to must be one that we may give away.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Hands;
use super::kinds::Resource;
use super::rules::{Rights, Scope, Subject};

/// The verbs of helm on objects, and those to notice that they vanish.
const KEEPING: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
/// The verbs for writing objects once more, before a version in which they are stored goes.
const REWRITING: [&str; 3] = ["get", "list", "update"];
/// The verbs to notice that they vanish, if another account writes them.
const SEEING: [&str; 3] = ["get", "list", "watch"];
const RBAC: &str = "rbac.authorization.k8s.io";
const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Roles that charts render, by kind and name: we have the rights that they grant anyway.
pub(super) type Roles = BTreeSet<(String, String)>;

/// Adds the rights for one rendered object; `place` is its namespace or the cluster.
pub(super) fn collect(
    object: &Value,
    resource: &Resource,
    place: &Scope,
    roles: &Roles,
    needed_by: &str,
    rights: &mut Rights,
) {
    let Resource {
        group, kind, plural, ..
    } = resource;
    rights.allow(place, Subject::all(group, plural), &KEEPING, needed_by);
    if object.pointer("/metadata/annotations/helm.sh~1hook").is_some() {
        // Before it makes such an object anew helm looks whether the namespace is about to go.
        rights.allow(&Scope::Release, Subject::all("", "namespaces"), &["get"], needed_by);
    }
    if group != RBAC {
        return;
    }
    match kind.as_str() {
        "Role" | "ClusterRole" => of_role(object, plural, place, needed_by, rights),
        "RoleBinding" | "ClusterRoleBinding" => of_binding(object, place, roles, needed_by, rights),
        _ => {}
    }
}

/// Adds the rights to watch an object that an account of the module installs.
pub(super) fn seen(resource: &Resource, place: &Scope, needed_by: &str, rights: &mut Rights) {
    let subject = Subject::all(&resource.group, &resource.plural);
    rights.allow(place, subject, &SEEING, needed_by);
}

/// The role that an object is, if it is one.
pub(super) fn role(object: &Value) -> Option<(String, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").filter(|kind| matches!(*kind, "Role" | "ClusterRole"))?;
    Some((kind.to_owned(), text("/metadata/name")?.to_owned()))
}

fn of_role(role: &Value, plural: &str, place: &Scope, needed_by: &str, rights: &mut Rights) {
    if role.get("aggregationRule").is_some() {
        // Rules that other roles add to it are not known.
        let name = role
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        rights.allow(place, Subject::one(RBAC, plural, name), &["escalate"], needed_by);
    }
    for rule in role.get("rules").and_then(Value::as_array).into_iter().flatten() {
        granted(rule, place, needed_by, rights);
    }
}

/// Adds the rights that a rule grants.
pub(super) fn granted(rule: &Value, place: &Scope, needed_by: &str, rights: &mut Rights) {
    let texts = |field: &str| {
        let items = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let (verbs, names) = (texts("verbs"), texts("resourceNames"));
    for path in texts("nonResourceURLs") {
        rights.allow(&Scope::Cluster, Subject::Path(path.to_owned()), &verbs, needed_by);
    }
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            if names.is_empty() {
                rights.allow(place, Subject::all(group, resource), &verbs, needed_by);
            }
            for name in &names {
                rights.allow(place, Subject::one(group, resource, name), &verbs, needed_by);
            }
        }
    }
}

fn of_binding(binding: &Value, place: &Scope, roles: &Roles, needed_by: &str, rights: &mut Rights) {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/roleRef/kind"), text("/roleRef/name"));
    if roles.contains(&(kind.to_owned(), name.to_owned())) {
        return;
    }
    let plural = match kind {
        "ClusterRole" => "clusterroles",
        _ => "roles",
    };
    rights.allow(place, Subject::one(RBAC, plural, name), &["bind"], needed_by);
}

/// Adds the rights to install a resource definition.
pub(super) fn crd(name: &str, hands: Hands, needed_by: &str, rights: &mut Rights) {
    let (group, resource) = CRDS;
    if hands == Hands::Theirs {
        return rights.allow(&Scope::Cluster, Subject::one(group, resource, name), &SEEING, needed_by);
    }
    rights.allow(&Scope::Cluster, Subject::all(group, resource), &["create"], needed_by);
    let one = Subject::one(group, resource, name);
    rights.allow(&Scope::Cluster, one, &["get", "list", "patch", "watch"], needed_by);
    let status = Subject::one(group, &format!("{resource}/status"), name);
    rights.allow(&Scope::Cluster, status, &["patch"], needed_by);
    // Which of them will lose a version cannot be seen before it is gone from the file.
    if let Some((plural, group)) = name.split_once('.') {
        rights.allow(&Scope::Cluster, Subject::all(group, plural), &REWRITING, needed_by);
    }
}

#[cfg(test)]
mod tests {
    use addon_core::yaml;

    use super::super::kinds::Kinds;
    use super::*;

    #[test]
    fn who_gives_a_right_must_have_it() {
        let objects = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: ['', apps], resources: [pods], verbs: [get], resourceNames: [a]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sum}
aggregationRule: {clusterRoleSelectors: []}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: one}
roleRef: {kind: ClusterRole, name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: other}
roleRef: {kind: ClusterRole, name: view}
";
        let objects = yaml::documents_v2(objects).unwrap();
        let roles: Roles = objects.iter().filter_map(role).collect();
        let (kinds, mut rights) = (Kinds::built_in(), Rights::default());
        for object in &objects {
            let kind = object["kind"].as_str().unwrap();
            let resource = kinds.of_manifest("rbac.authorization.k8s.io/v1", kind).unwrap();
            let place = if resource.is_namespaced {
                Scope::Release
            } else {
                Scope::Cluster
            };
            collect(object, resource, &place, &roles, "m", &mut rights);
        }
        let told = |place: &Scope| -> Vec<String> {
            let rules = rights.rules(place).into_iter();
            rules.map(|rule| rule.document().to_string()).collect()
        };
        let keeping = r#""verbs":["create","delete","get","list","patch","watch"]"#;
        assert_eq!(
            told(&Scope::Cluster),
            [
                r#"{"nonResourceURLs":["/metrics"],"verbs":["get"]}"#.to_owned(),
                r#"{"apiGroups":[""],"resourceNames":["a"],"resources":["pods"],"verbs":["get"]}"#.to_owned(),
                r#"{"apiGroups":["apps"],"resourceNames":["a"],"resources":["pods"],"verbs":["get"]}"#.to_owned(),
                format!(r#"{{"apiGroups":["{RBAC}"],"resources":["clusterroles"],{keeping}}}"#),
                format!(
                    r#"{{"apiGroups":["{RBAC}"],"resourceNames":["sum"],"resources":["clusterroles"],"verbs":["escalate"]}}"#
                ),
            ]
        );
        assert_eq!(
            told(&Scope::Release),
            [
                format!(r#"{{"apiGroups":["{RBAC}"],"resources":["rolebindings"],{keeping}}}"#),
                format!(
                    r#"{{"apiGroups":["{RBAC}"],"resourceNames":["view"],"resources":["clusterroles"],"verbs":["bind"]}}"#
                ),
            ]
        );
    }
}
