//! What a module says itself that it needs: the field `rights` of its `module.yaml`. Only its author knows what hooks write
//! and what their scripts ask for.

use std::io;
use std::path::Path;

use addon_core::module::description::RIGHTS;
use addon_core::yaml::{self, YamlError};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::installed::granted;
use super::rules::{Place, Rights};
use super::watched::place_of;

pub(super) const FILE: &str = "module.yaml";

/// A rule, and where it is to count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Claim {
    /// The whole cluster, unless it says otherwise.
    #[serde(default)]
    namespaces: Vec<String>,
    /// The namespace of the releases.
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

/// Why the field cannot be used.
#[derive(Debug, Error)]
pub(super) enum Mistake {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("is no YAML: {0}")]
    Yaml(YamlError),
    #[error("{RIGHTS} should be a list")]
    NoList,
    #[error("{RIGHTS}[{at}] is no rule: {source}")]
    Rule { at: usize, source: serde_json::Error },
    #[error("{RIGHTS}[{at}] names neither apiGroups with resources nor nonResourceURLs")]
    Nothing { at: usize },
}

/// All that a module says.
pub(super) fn read(module: &Path) -> Result<Vec<Claim>, Mistake> {
    let text = match fs_err::read_to_string(module.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Mistake::Read(error)),
    };
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Claim>, Mistake> {
    let document = yaml::documents_v2(text).map_err(Mistake::Yaml)?.into_iter().next();
    match document.and_then(|mut document| document.get_mut(RIGHTS).map(Value::take)) {
        None => Ok(Vec::new()),
        Some(Value::Array(rules)) => rules
            .into_iter()
            .enumerate()
            .map(|(at, rule)| {
                let claim: Claim = serde_json::from_value(rule).map_err(|source| Mistake::Rule { at, source })?;
                if claim.paths.is_empty() && (claim.api_groups.is_empty() || claim.resources.is_empty()) {
                    return Err(Mistake::Nothing { at });
                }
                Ok(claim)
            })
            .collect(),
        Some(_) => Err(Mistake::NoList),
    }
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
        let own = self.in_release.then_some(Place::Release);
        let mut places: Vec<Place> = named.chain(own).collect();
        if places.is_empty() {
            places.push(Place::Cluster);
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
        let elsewhere = Place::Namespace("kube-system".to_owned());
        assert_eq!(rights.places(), [&Place::Cluster, &Place::Release, &elsewhere].into());
        assert_eq!(
            rights.rules(&Place::Cluster)[0].document().to_string(),
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
            ("rights: [{verb: get}]", "rights[0] is no rule: unknown field `verb`"),
        ] {
            let mistake = parse(text).unwrap_err().to_string();
            assert!(mistake.starts_with(told), "{mistake}");
        }
        assert!(parse("").unwrap().is_empty());
    }
}
