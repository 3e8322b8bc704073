//! Upgrades that would have to change a field that the API server allows no user to change. Objects whose loss costs
//! nothing may be made anew, and so may objects that the module or a person names. Any other upgrade is held.
//!
//! Must never permit the deletion of an object that owns data or other objects.

use names::replaceable::{Replaceable, holds_others};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Facts;
use super::brake::Asked;
use crate::failure::{Class, Failure};

/// The annotation on objects that may be deleted and created anew.
pub const REPLACE: &str = "addon-operator/replace";

/// Kinds whose objects may be created anew at any time.
const WITHOUT_LOSS: [(&str, &str); 3] = [
    ("batch", "Job"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];
const SELECTOR: &str = "spec.selector";
const APPS: &str = "apps";

/// The object in the way of an upgrade, and the permissions to make it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obstacle<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The path of the field that the upgrade would change.
    pub field: &'a str,
    /// Whether the chart marks the object with the annotation.
    pub is_marked: bool,
    /// The objects that the module's `module.yaml` names.
    pub listed: &'a [Replaceable],
    /// The objects that a person has named for this upgrade.
    pub allowed: &'a [Replaceable],
}

/// The treatment of the object in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// The object is created anew, and its dependents are deleted with the old one.
    Replace,
    /// The object is created anew, and its dependents stay for the new one.
    ReplaceAlone,
    /// A person has to decide: with a permission, the object may be deleted.
    Ask,
    /// A person has to act: no permission lets the operator delete the object.
    Never,
}

impl Obstacle<'_> {
    /// The treatment of the object.
    pub fn way(&self) -> Way {
        let kind = (self.group, self.kind);
        let is_new_selector = self.field.starts_with(SELECTOR);
        // Pods of another selector would stand in the way of the new ones, and claims may go with their owner.
        if holds_others(self.group, self.kind) || kind == (APPS, "StatefulSet") && is_new_selector {
            return Way::Never;
        }
        let covers = |named: &Replaceable| named.covers(self.group, self.kind, self.name);
        let is_permitted = self.is_marked || self.listed.iter().chain(self.allowed).any(covers);
        if !is_permitted && !WITHOUT_LOSS.contains(&kind) {
            Way::Ask
        } else if self.group == APPS && !is_new_selector {
            // Pods of the same selector are taken over by the new object.
            Way::ReplaceAlone
        } else {
            Way::Replace
        }
    }
}

/// An upgrade that the API server refused. It is noted on the newest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The digest of the upgrade's inputs.
    pub inputs: String,
    /// The digests of the ConfigMap's sections in these inputs.
    pub asked: Asked,
    /// The API version of the object in the way, as the chart renders it.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; `None` for the release's namespace and for objects of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// The path of the field that the upgrade would change.
    pub field: String,
    /// The UID of the object. Another object of the name is no obstacle.
    pub uid: String,
    /// The treatment of the object.
    pub way: Way,
}

/// The reason for which a person's permission for the named objects does not let the upgrade continue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAllowed {
    /// The object in the way is not among the named ones.
    #[error("the upgrade is held for {object}, which is not among the named objects")]
    NotNamed {
        /// The object in the way.
        object: String,
    },
    /// No permission lets the operator delete the object in the way.
    #[error("{object} holds data or other objects, so it is never replaced")]
    Never {
        /// The object in the way.
        object: String,
    },
}

impl Refused {
    /// Whether the note is about the upgrade with these facts.
    pub fn is_of(&self, facts: &Facts) -> bool {
        self.inputs == facts.inputs && self.asked == facts.asked
    }

    /// Whether the object in the way is among the named objects.
    pub fn is_among(&self, named: &[Replaceable]) -> bool {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        named.iter().any(|named| named.covers(group, &self.kind, &self.name))
    }

    /// Checks that the upgrade continues if a person permits the deletion of the named objects.
    pub fn check(&self, named: &[Replaceable]) -> Result<(), NotAllowed> {
        let object = self.object();
        match self.way {
            Way::Never => Err(NotAllowed::Never { object }),
            Way::Ask | Way::Replace | Way::ReplaceAlone if self.is_among(named) => Ok(()),
            Way::Ask | Way::Replace | Way::ReplaceAlone => Err(NotAllowed::NotNamed { object }),
        }
    }

    /// The object in the way.
    pub fn object(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// The failure that reports the held upgrade.
    pub fn failure(&self, release: &str) -> Failure {
        let (kind, name, object) = (self.kind.to_lowercase(), &self.name, self.object());
        let namespace = self.namespace.as_deref();
        let namespace = namespace.map_or_else(String::new, |namespace| format!(" --namespace {namespace}"));
        let failure = held(release, &self.kind, name, &self.field);
        let failure = match self.way {
            Way::Never => failure
                .hint("the object holds data or other objects: copy these, delete it and let it be made anew yourself"),
            Way::Ask | Way::Replace | Way::ReplaceAlone => failure
                .hint(format!(
                    "if it may be made anew, `addon-operator module upgrade {release} --replace {object}` allows it once, \
                     `replace: [{object}]` in module.yaml or the annotation {REPLACE}: \"true\" in the chart always"
                ))
                .hint(format!(
                    "or delete it: `kubectl delete {kind} {name}{namespace}`, and the upgrade goes on by itself"
                )),
        };
        failure.hint(format!("or put {} back as it was", self.field))
    }
}

/// The failure of an upgrade that would change this field, without a remedy.
pub fn held(release: &str, kind: &str, name: &str, field: &str) -> Failure {
    let report = format!(
        "the upgrade of release '{release}' is held: it would change {field} of {kind}/{name}, and the API server lets nobody \
         change this field"
    );
    Failure::new(Class::Blocked, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(texts: &[&str]) -> Vec<Replaceable> {
        texts.iter().map(|text| Replaceable::parse(text).unwrap()).collect()
    }

    fn way(group: &str, kind: &str, field: &str, permission: &str) -> Way {
        let (listed, allowed) = match permission {
            "listed" => (named(&[&format!("{kind}/a")]), Vec::new()),
            "allowed" => (Vec::new(), named(&["Job/b", &format!("{kind}/a")])),
            "another" => (named(&[&format!("{kind}/b")]), named(&["Secret/a"])),
            _ => (Vec::new(), Vec::new()),
        };
        let obstacle = Obstacle {
            group,
            kind,
            name: "a",
            field,
            is_marked: permission == "marked",
            listed: &listed,
            allowed: &allowed,
        };
        obstacle.way()
    }

    #[test]
    fn what_is_lost_without_harm_or_permitted_is_replaced() {
        for (group, kind, field, permission, expected) in [
            ("batch", "Job", "spec.template", "", Way::Replace),
            ("rbac.authorization.k8s.io", "RoleBinding", "roleRef", "", Way::Replace),
            ("apps", "Deployment", "spec.selector", "", Way::Ask),
            ("apps", "Deployment", "spec.selector", "another", Way::Ask),
            ("apps", "Deployment", "spec.selector", "marked", Way::Replace),
            ("apps", "Deployment", "spec.selector", "listed", Way::Replace),
            ("apps", "Deployment", "spec.selector", "allowed", Way::Replace),
            ("apps", "StatefulSet", "spec", "", Way::Ask),
            ("apps", "StatefulSet", "spec", "marked", Way::ReplaceAlone),
            ("apps", "StatefulSet", "spec", "allowed", Way::ReplaceAlone),
            ("", "Service", "spec.clusterIPs[0]", "listed", Way::Replace),
            // Another group's kind of the same name is another kind.
            ("example.com", "Job", "spec.template", "", Way::Ask),
        ] {
            assert_eq!(
                way(group, kind, field, permission),
                expected,
                "{kind} {field} {permission}"
            );
        }
    }

    #[test]
    fn no_permission_lets_data_go() {
        for permission in ["", "marked"] {
            for (group, kind) in [
                ("", "PersistentVolumeClaim"),
                ("", "Namespace"),
                ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ] {
                assert_eq!(way(group, kind, "spec", permission), Way::Never, "{kind}");
            }
        }
        for permission in ["marked", "listed", "allowed"] {
            assert_eq!(way("apps", "StatefulSet", "spec.selector", permission), Way::Never);
        }
    }

    fn refused(way: Way) -> Refused {
        Refused {
            inputs: "i".to_owned(),
            asked: Asked::default(),
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("other".to_owned()),
            name: "web".to_owned(),
            field: "spec.selector".to_owned(),
            uid: "u".to_owned(),
            way,
        }
    }

    #[test]
    fn a_person_has_to_name_the_object_in_the_way() {
        let object = || "Deployment/web".to_owned();
        let held = refused(Way::Ask);
        assert_eq!(held.check(&named(&["Job/a", "deployment/web"])), Ok(()));
        assert_eq!(
            held.check(&named(&["Deployment/db"])),
            Err(NotAllowed::NotNamed { object: object() })
        );
        assert_eq!(held.check(&[]), Err(NotAllowed::NotNamed { object: object() }));
        let never = refused(Way::Never);
        assert_eq!(
            never.check(&named(&["Deployment/web"])),
            Err(NotAllowed::Never { object: object() })
        );
    }

    #[test]
    fn a_held_upgrade_names_each_way_out() {
        let failure = refused(Way::Ask).failure("one");
        assert!(
            failure.report.contains("change spec.selector of Deployment/web,"),
            "{failure}"
        );
        let hints = failure.hints.join("\n");
        for way_out in [
            "`addon-operator module upgrade one --replace Deployment/web`",
            "`replace: [Deployment/web]`",
            "addon-operator/replace: \"true\"",
            "`kubectl delete deployment web --namespace other`",
            "put spec.selector back",
        ] {
            assert!(hints.contains(way_out), "{way_out}: {hints}");
        }
        let hints = refused(Way::Never).failure("one").hints.join("\n");
        assert!(!hints.contains("--replace") && !hints.contains("kubectl"), "{hints}");
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = refused(Way::Ask);
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(serde_json::from_str::<Refused>(&text).unwrap(), note);
    }
}
