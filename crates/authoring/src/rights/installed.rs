//! The rights to install the objects of charts, to keep them as they are, and to tell why they are not healthy.
//!
//! RBAC lets the operator grant only rights that it has. So the rules of rendered roles become rights of the operator,
//! and a role that is only referred to needs the verb `bind`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Hands;
use super::kinds::Resource;
use super::rules::{Rights, Scope, Subject};

/// The verbs that helm needs for an object, and those with which the operator notices its deletion.
const KEEPING: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
/// The verbs to write objects anew before their stored version is removed.
const REWRITING: [&str; 3] = ["get", "list", "update"];
/// The verbs to notice the deletion of objects that another account writes.
const SEEING: [&str; 3] = ["get", "list", "watch"];
const RBAC: &str = "rbac.authorization.k8s.io";
const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Rendered roles by kind and name. The operator has the rights that they grant, so it needs no right to bind them.
pub(super) type Roles = BTreeSet<(String, String)>;

/// Adds the rights for one rendered object. `place` is the object's namespace, or the cluster.
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
    if is_helm_hook(object) {
        // Before helm recreates an object that is a helm hook, it checks whether the namespace is being deleted.
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

fn is_helm_hook(object: &Value) -> bool {
    object.pointer("/metadata/annotations/helm.sh~1hook").is_some()
}

/// Adds the rights to watch an object that the module's account installs.
pub(super) fn seen(resource: &Resource, place: &Scope, needed_by: &str, rights: &mut Rights) {
    let subject = Subject::all(&resource.group, &resource.plural);
    rights.allow(place, subject, &SEEING, needed_by);
}

/// Adds the rights to tell why an object is not healthy: what is read beside the object itself. Helm hooks are not judged.
pub(super) fn explained(object: &Value, resource: &Resource, place: &Scope, needed_by: &str, rights: &mut Rights) {
    if is_helm_hook(object) {
        return;
    }
    let mut allow = |group: &str, plural: &str, verb: &str| {
        rights.allow(place, Subject::all(group, plural), &[verb], needed_by);
    };
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment") => allow("apps", "replicasets", "list"),
        ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") | ("", "Pod") => {}
        ("", "PersistentVolumeClaim") => return allow("", "events", "list"),
        _ => return,
    }
    allow("", "events", "list");
    allow("", "pods", "list");
    allow("", "pods/log", "get");
}

/// Adds the rights to tell whether a Service that a webhook calls has endpoints.
pub(super) fn called(place: &Scope, needed_by: &str, rights: &mut Rights) {
    let slices = Subject::all("discovery.k8s.io", "endpointslices");
    rights.allow(place, slices, &["list", "watch"], needed_by);
}

/// The kind and name of an object that is a role.
pub(super) fn role(object: &Value) -> Option<(String, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").filter(|kind| matches!(*kind, "Role" | "ClusterRole"))?;
    Some((kind.to_owned(), text("/metadata/name")?.to_owned()))
}

fn of_role(role: &Value, plural: &str, place: &Scope, needed_by: &str, rights: &mut Rights) {
    if role.get("aggregationRule").is_some() {
        // An aggregated role may have rules of other roles, which are not known.
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
    // It is not known which definition will lose a version later, so all of them get these rights.
    if let Some((plural, group)) = name.split_once('.') {
        rights.allow(&Scope::Cluster, Subject::all(group, plural), &REWRITING, needed_by);
    }
}

#[cfg(test)]
mod tests {
    use helm_yaml::yaml;

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

    #[test]
    fn the_cause_of_a_workload_is_read_at_its_pods() {
        let told = |object: &Value| -> Vec<String> {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
            let (kinds, mut rights) = (Kinds::built_in(), Rights::default());
            let resource = kinds.of_manifest(text("/apiVersion"), text("/kind")).unwrap();
            explained(object, resource, &Scope::Release, "m", &mut rights);
            let rules = rights.rules(&Scope::Release).into_iter();
            rules.map(|rule| rule.document().to_string()).collect()
        };
        let of = |version: &str, kind: &str| serde_json::json!({"apiVersion": version, "kind": kind});
        let of_pods = [
            r#"{"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]}"#,
            r#"{"apiGroups":[""],"resources":["events","pods"],"verbs":["list"]}"#,
        ];
        assert_eq!(told(&of("apps/v1", "StatefulSet")), of_pods);
        assert_eq!(told(&of("batch/v1", "Job")), of_pods);
        let of_sets = r#"{"apiGroups":["apps"],"resources":["replicasets"],"verbs":["list"]}"#;
        assert_eq!(told(&of("apps/v1", "Deployment")), [&of_pods[..], &[of_sets]].concat());
        assert_eq!(told(&of("v1", "ConfigMap")), [""; 0]);
        let mut hook = of("batch/v1", "Job");
        hook["metadata"] = serde_json::json!({"annotations": {"helm.sh/hook": "pre-install"}});
        assert_eq!(told(&hook), [""; 0]);
    }
}
