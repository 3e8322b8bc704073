//! The API resources of kinds, without an API server: those of Kubernetes are in a table beside this file, others are
//! read from resource definitions.

use std::collections::BTreeMap;

use serde_json::Value;

/// Columns: group (`-` for none), kind, plural, whether it is namespaced, short names. `tests/chart/kinds.rs` renews
/// the file.
const BUILT_IN: &str = include_str!("kinds.txt");

/// A resource, as RBAC names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
    pub(crate) short_names: Vec<String>,
}

/// All known kinds, by API group and kind.
#[derive(Debug)]
pub(crate) struct Kinds(BTreeMap<(String, String), Resource>);

impl Kinds {
    pub(crate) fn built_in() -> Self {
        let lines = BUILT_IN.lines().filter(|line| !line.starts_with('#'));
        let resources = lines.filter_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let group = words.next().filter(|group| group != "-").unwrap_or_default();
            let (kind, plural, scope) = (words.next()?, words.next()?, words.next()?);
            Some(Resource {
                group,
                kind,
                plural,
                is_namespaced: scope == "namespaced",
                short_names: words.collect(),
            })
        });
        Self(
            resources
                .map(|found| ((found.group.clone(), found.kind.clone()), found))
                .collect(),
        )
    }

    /// Adds the kind of a resource definition.
    pub(crate) fn learn(&mut self, crd: &Value) {
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (Some(group), Some(kind), Some(plural)) = (
            text("/spec/group"),
            text("/spec/names/kind"),
            text("/spec/names/plural"),
        ) else {
            return;
        };
        let short_names = crd.pointer("/spec/names/shortNames").and_then(Value::as_array);
        let short_names = short_names.into_iter().flatten().filter_map(Value::as_str);
        let resource = Resource {
            group: group.clone(),
            kind: kind.clone(),
            plural,
            is_namespaced: text("/spec/scope").is_none_or(|scope| scope == "Namespaced"),
            short_names: short_names.map(str::to_owned).collect(),
        };
        self.0.insert((group, kind), resource);
    }

    /// The resource of a kind in a manifest.
    pub(crate) fn of_manifest(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.0.get(&(group_of(api_version).to_owned(), kind.to_owned()))
    }

    /// The resource of a kind in a hook's binding: kind, plural or short name, in any case. Without an API version it
    /// may be of any group.
    pub(crate) fn of_binding(&self, api_version: Option<&str>, word: &str) -> Option<&Resource> {
        let is_meant = |one: &&Resource| {
            let mut names = [&one.kind, &one.plural].into_iter().chain(&one.short_names);
            api_version.is_none_or(|wanted| group_of(wanted) == one.group)
                && names.any(|name| name.eq_ignore_ascii_case(word))
        };
        // Without a group a kind of Kubernetes itself comes first, as in an API server's order.
        self.0.values().find(is_meant)
    }
}

/// The likely resource of a kind without a definition.
pub(crate) fn guess(api_version: &str, kind: &str, is_namespaced: bool) -> Resource {
    let word = kind.to_ascii_lowercase();
    let plural = match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if word.ends_with(['s', 'x']) || word.ends_with("ch") => format!("{word}es"),
        _ => format!("{word}s"),
    };
    Resource {
        group: group_of(api_version).to_owned(),
        kind: kind.to_owned(),
        plural,
        is_namespaced,
        short_names: Vec::new(),
    }
}

pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_are_found_by_every_name() {
        let mut kinds = Kinds::built_in();
        for (api_version, word) in [(Some("apps/v1"), "Deployment"), (None, "deployments"), (None, "deploy")] {
            let found = kinds.of_binding(api_version, word).unwrap();
            assert_eq!((found.group.as_str(), found.plural.as_str()), ("apps", "deployments"));
        }
        assert!(kinds.of_binding(Some("v1"), "Deployment").is_none());
        assert!(!kinds.of_manifest("v1", "Namespace").unwrap().is_namespaced);
        assert_eq!(kinds.of_binding(None, "event").unwrap().group, "");
        assert!(kinds.of_manifest("example.com/v1", "Mouse").is_none());
        kinds.learn(&json!({"spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"kind": "Mouse", "plural": "mice", "shortNames": ["mo"]},
        }}));
        let found = kinds.of_manifest("example.com/v1", "Mouse").unwrap();
        assert_eq!((found.plural.as_str(), found.is_namespaced), ("mice", false));
        assert_eq!(kinds.of_binding(None, "MO").unwrap(), found);
    }

    #[test]
    fn a_plural_is_guessed_as_people_make_them() {
        for (kind, plural) in [
            ("Certificate", "certificates"),
            ("Policy", "policies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Switch", "switches"),
        ] {
            assert_eq!(guess("example.com/v1", kind, true).plural, plural);
        }
    }
}
