//! Declared rights: the field `rights` in a module's `module.yaml`, and a file of its own for global hooks.
//!
//! Only the author of hooks knows which objects they read and change. An entry that cannot be parsed must never be
//! ignored: a lost right shows only when a hook fails without it.

use std::io;
use std::path::Path;

use addon_core::module::description::RIGHTS;
use helm_yaml::yaml::{self, YamlError};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::installed::granted;
use super::rules::{Rights, Scope};
use super::watched::place_of;

/// The file in which a module declares rights; it has other fields, too.
pub(super) const FILE: &str = "module.yaml";
/// The file in which a directory of global hooks declares rights.
pub(super) const GLOBAL_FILE: &str = "rights.yaml";

/// A declared rule, and the namespaces in which it applies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Claim {
    /// The namespaces; empty for the whole cluster.
    #[serde(default)]
    namespaces: Vec<String>,
    /// Whether the rule applies in the namespace of the releases.
    #[serde(default)]
    in_release: bool,
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Vec<String>,
    verbs: Vec<String>,
}

/// Why a declaration cannot be used.
#[derive(Debug, Error)]
pub(super) enum Mistake {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("is not YAML: {0}")]
    Yaml(YamlError),
    #[error("it should be a map with the field {RIGHTS}")]
    NoMap,
    #[error("there is only the field {RIGHTS}, and not {field}")]
    Unknown { field: String },
    #[error("only one document is read, and there are {0}")]
    Several(usize),
    #[error("{RIGHTS} should be a list")]
    NoList,
    #[error("{RIGHTS}[{at}] is no rule: {source}")]
    Rule { at: usize, source: serde_json::Error },
    #[error("{RIGHTS}[{at}].verbs is empty")]
    NoVerb { at: usize },
    #[error("{RIGHTS}[{at}] names neither apiGroups with resources nor nonResourceURLs")]
    Nothing { at: usize },
}

/// All rights that a module declares.
pub(super) fn of_module(module: &Path) -> Result<Vec<Claim>, Mistake> {
    text(&module.join(FILE))?.map_or(Ok(Vec::new()), |text| parse(&text))
}

/// All rights that a directory of global hooks declares.
pub(super) fn of_global_hooks(dir: &Path) -> Result<Vec<Claim>, Mistake> {
    text(&dir.join(GLOBAL_FILE))?.map_or(Ok(Vec::new()), |text| parse_alone(&text))
}

/// The text of the file; none if it does not exist.
fn text(file: &Path) -> Result<Option<String>, Mistake> {
    match fs_err::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Mistake::Read(error)),
    }
}

/// Parses a file whose other fields are ignored.
fn parse(text: &str) -> Result<Vec<Claim>, Mistake> {
    let document = yaml::documents_v2(text).map_err(Mistake::Yaml)?.into_iter().next();
    let said = document.and_then(|mut document| document.get_mut(RIGHTS).map(Value::take));
    said.map_or(Ok(Vec::new()), rules)
}

/// Parses a file that has no other purpose, so an unknown field is a mistake.
fn parse_alone(text: &str) -> Result<Vec<Claim>, Mistake> {
    let mut documents = yaml::documents_v2(text).map_err(Mistake::Yaml)?;
    if documents.len() > 1 {
        return Err(Mistake::Several(documents.len()));
    }
    let mut fields = match documents.pop() {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(Mistake::NoMap),
    };
    let said = fields.remove(RIGHTS);
    match fields.into_iter().next() {
        Some((field, _)) => Err(Mistake::Unknown { field }),
        None => said.map_or(Ok(Vec::new()), rules),
    }
}

fn rules(said: Value) -> Result<Vec<Claim>, Mistake> {
    let Value::Array(rules) = said else {
        return Err(Mistake::NoList);
    };
    let rule = |(at, rule)| {
        let claim: Claim = serde_json::from_value(rule).map_err(|source| Mistake::Rule { at, source })?;
        if claim.paths.is_empty() && (claim.api_groups.is_empty() || claim.resources.is_empty()) {
            return Err(Mistake::Nothing { at });
        }
        if claim.verbs.is_empty() {
            return Err(Mistake::NoVerb { at });
        }
        Ok(claim)
    };
    rules.into_iter().enumerate().map(rule).collect()
}

impl Claim {
    pub(super) fn collect(&self, release_namespace: &str, needed_by: &str, rights: &mut Rights) {
        let rule = serde_json::json!({
            "apiGroups": self.api_groups,
            "resources": self.resources,
            "resourceNames": self.resource_names,
            "nonResourceURLs": self.paths,
            "verbs": self.verbs,
        });
        let named = self.namespaces.iter().map(|name| place_of(name, release_namespace));
        let own = self.in_release.then_some(Scope::Release);
        let mut places: Vec<Scope> = named.chain(own).collect();
        if places.is_empty() {
            places.push(Scope::Cluster);
        }
        for place in places {
            granted(&rule, &place, needed_by, rights);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_where_they_say() {
        let text = "
rights:
- {apiGroups: [''], resources: [secrets], verbs: [create]}
- {apiGroups: [''], resources: [pods], verbs: [get], namespaces: [kube-system], inRelease: true}
";
        let mut rights = Rights::default();
        for claim in parse(text).unwrap() {
            claim.collect("ours", "m", &mut rights);
        }
        let elsewhere = Scope::Namespace("kube-system".to_owned());
        assert_eq!(rights.places(), [&Scope::Cluster, &Scope::Release, &elsewhere].into());
        assert_eq!(
            rights.rules(&Scope::Cluster)[0].document().to_string(),
            r#"{"apiGroups":[""],"resources":["secrets"],"verbs":["create"]}"#
        );
    }

    #[test]
    fn what_is_no_rule_is_told() {
        for (text, told) in [
            ("rights: all", "rights should be a list"),
            ("rights: [{verbs: [get]}]", "rights[0] names neither"),
            (
                "rights: [{apiGroups: [''], resources: [pods]}]",
                "rights[0] is no rule: missing field `verbs`",
            ),
            (
                "rights: [{nonResourceURLs: [/metrics], verbs: []}]",
                "rights[0].verbs is empty",
            ),
            ("rights: [{verb: get}]", "rights[0] is no rule: unknown field `verb`"),
        ] {
            let mistake = parse(text).unwrap_err().to_string();
            assert!(mistake.starts_with(told), "{mistake}");
        }
        assert!(parse("").unwrap().is_empty());
        assert!(
            parse("drift: off").unwrap().is_empty(),
            "a module says other things, too"
        );
    }

    #[test]
    fn what_lies_beside_global_hooks_says_nothing_else() {
        let text = "rights: [{apiGroups: [''], resources: [pods], verbs: [get]}]";
        assert_eq!(parse_alone(text).unwrap().len(), 1);
        for (text, told) in [
            ("[{verbs: [get]}]", "it should be a map with the field rights"),
            ("right: []", "there is only the field rights, and not right"),
            (
                "rights: []\ndrift: off",
                "there is only the field rights, and not drift",
            ),
            (
                "rights: []\n---\nrights: []",
                "only one document is read, and there are 2",
            ),
            ("rights: {}", "rights should be a list"),
            ("rights: [", "is not YAML: "),
        ] {
            let mistake = parse_alone(text).unwrap_err().to_string();
            assert!(mistake.starts_with(told), "{mistake}");
        }
        assert!(parse_alone("# Nothing.\n").unwrap().is_empty());
    }
}
