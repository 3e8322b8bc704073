//! Names of objects that may be deleted and made anew, as people write them: `Deployment/web`, `Service/*`,
//! `Issuer.cert-manager.io/main`.
//!
//! Must never accept a kind whose objects hold data or other objects.

use std::fmt;

use thiserror::Error;

/// Kinds whose objects hold data or other objects, so that no setting may permit their deletion.
const OWNING: [(&str, &str); 4] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];
/// The name that stands for all objects of a kind.
const ALL: &str = "*";

/// Whether objects of this kind hold data or other objects.
pub fn holds_others(group: &str, kind: &str) -> bool {
    OWNING.contains(&(group, kind))
}

/// An object, or all objects of a kind, that may be made anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replaceable {
    /// The API group; `None` for any group.
    group: Option<String>,
    kind: String,
    name: String,
}

/// The reason for which a text names no object that may be made anew.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotReplaceable {
    /// The text is no kind with a name.
    #[error("'{text}' should be KIND/NAME, as in Deployment/web; KIND/* names all objects of the kind")]
    Form {
        /// The text, as a person wrote it in `module.yaml` or on the command line.
        text: String,
    },
    /// Objects of the kind hold data or other objects.
    #[error("'{text}': a {kind} holds data or other objects and is never replaced; leave it out")]
    HoldsOthers {
        /// The text, as a person wrote it in `module.yaml` or on the command line.
        text: String,
        /// The kind of the object.
        kind: &'static str,
    },
}

impl Replaceable {
    /// Parses `KIND/NAME` or `KIND.GROUP/NAME`. The case of the kind does not matter, as with kubectl.
    pub fn parse(text: &str) -> Result<Self, NotReplaceable> {
        let form = || NotReplaceable::Form { text: text.to_owned() };
        let (kind, name) = text.split_once('/').ok_or_else(form)?;
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group)),
            None => (kind, None),
        };
        let is_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_group = |group: &str| {
            let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
            !group.is_empty() && group.bytes().all(is_letter)
        };
        let is_whole = |name: &str| !name.contains(|letter: char| letter.is_whitespace() || "/*,".contains(letter));
        let is_name = name == ALL || !name.is_empty() && is_whole(name);
        if !is_kind || !group.is_none_or(is_group) || !is_name {
            return Err(form());
        }
        let is_meant =
            |owning: &(&str, &str)| kind.eq_ignore_ascii_case(owning.1) && group.is_none_or(|group| group == owning.0);
        if let Some((_, kind)) = OWNING.iter().find(|owning| is_meant(owning)) {
            let text = text.to_owned();
            return Err(NotReplaceable::HoldsOthers { text, kind });
        }
        Ok(Self {
            group: group.map(str::to_owned),
            kind: kind.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Whether it names this object.
    pub fn covers(&self, group: &str, kind: &str, name: &str) -> bool {
        self.group.as_deref().is_none_or(|own| own == group)
            && self.kind.eq_ignore_ascii_case(kind)
            && (self.name == ALL || self.name == name)
    }

    /// Whether it names one object alone.
    pub fn is_single(&self) -> bool {
        self.name != ALL
    }
}

impl fmt::Display for Replaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(group) = &self.group {
            write!(f, ".{group}")?;
        }
        write!(f, "/{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_by_kind_and_name() {
        for (text, group, kind, name, expected) in [
            ("Deployment/web", "apps", "Deployment", "web", true),
            ("deployment/web", "apps", "Deployment", "web", true),
            ("Deployment.apps/web", "apps", "Deployment", "web", true),
            ("Deployment.example.com/web", "apps", "Deployment", "web", false),
            ("Deployment/web", "apps", "Deployment", "web-2", false),
            ("Deployment/*", "apps", "Deployment", "web-2", true),
            ("Deployment/*", "apps", "StatefulSet", "web", false),
            (
                "ClusterRole/system:a",
                "rbac.authorization.k8s.io",
                "ClusterRole",
                "system:a",
                true,
            ),
            // A kind of the same name in another group is not known to hold data.
            ("Namespace.example.com/a", "example.com", "Namespace", "a", true),
        ] {
            let named = Replaceable::parse(text).unwrap();
            assert_eq!(
                named.covers(group, kind, name),
                expected,
                "{text} {group} {kind} {name}"
            );
            assert_eq!(named.to_string(), text);
            assert_eq!(named.is_single(), !text.ends_with('*'));
        }
    }

    #[test]
    fn other_texts_and_kinds_that_hold_data_are_refused() {
        for text in [
            "",
            "/",
            "Deployment",
            "Deployment/",
            "/web",
            "a/Deployment/web",
            "Deploy ment/web",
            "Deployment/we*",
            "Deployment/a,b",
            "Deployment./web",
            "Deployment/web ",
            "*/web",
        ] {
            let form = NotReplaceable::Form { text: text.to_owned() };
            assert_eq!(Replaceable::parse(text), Err(form), "{text}");
        }
        for (text, kind) in [
            ("PersistentVolumeClaim/*", "PersistentVolumeClaim"),
            ("persistentvolume/a", "PersistentVolume"),
            ("Namespace/a", "Namespace"),
            ("CustomResourceDefinition/a", "CustomResourceDefinition"),
            (
                "CustomResourceDefinition.apiextensions.k8s.io/a",
                "CustomResourceDefinition",
            ),
        ] {
            let text = text.to_owned();
            assert_eq!(
                Replaceable::parse(&text),
                Err(NotReplaceable::HoldsOthers { text, kind })
            );
        }
    }
}
