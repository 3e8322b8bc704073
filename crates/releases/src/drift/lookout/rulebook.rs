//! The settings of modules for the health of their objects, as the watches of kinds need them.
//!
//! Must never apply the rule of one module to an object of another.

use std::collections::BTreeMap;

use addon_core::digest::Digest;
use addon_core::module::health::HealthSettings;
use addon_core::release::RELEASE_NAME;
use health_core::rule::{Rule, Rules};
use health_core::{Finding, judge};
use jiff::Timestamp;
use jobs::catalogue::Catalogue;
use serde_json::Value;

use super::releases::KindName;

/// The settings of the modules that have any, by release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rulebook(BTreeMap<String, HealthSettings>);

/// The rules for one kind, by release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KindRules(BTreeMap<String, Rule>);

impl Rulebook {
    pub(super) fn of(catalogue: &Catalogue) -> Self {
        let is_set = |health: &HealthSettings| !health.ignore.is_empty() || health.rules != Rules::default();
        let modules = catalogue.modules().filter(|(_, files)| is_set(&files.health));
        Self(
            modules
                .map(|(name, files)| (name.to_string(), files.health.clone()))
                .collect(),
        )
    }

    pub(super) fn ignores(&self, release: &str, kind: &KindName, name: &str) -> bool {
        let settings = self.0.get(release);
        settings.is_some_and(|settings| settings.ignores(&kind.kind, name))
    }

    /// The releases with other settings in the other book.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a String> {
        let releases = self.0.keys().chain(other.0.keys());
        releases.filter(|release| self.0.get(*release) != other.0.get(*release))
    }

    pub(super) fn of_kind(&self, kind: &KindName) -> KindRules {
        let releases = self.0.iter();
        let rules = releases.filter_map(|(release, settings)| {
            let rule = settings.rules.of_kind(&kind.api_version, &kind.kind)?;
            Some((release.clone(), rule.clone()))
        });
        KindRules(rules.collect())
    }
}

impl KindRules {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A digest of the texts.
    pub(super) fn digest(&self) -> Digest {
        let texts = self.0.iter().map(|(release, rule)| (release, rule.text()));
        Digest::of(&serde_json::json!(texts.collect::<BTreeMap<_, _>>()))
    }

    /// Judges an object by the rule of the release that helm's mark names, or by the general rules.
    pub(super) fn judge(&self, object: &Value, now: Timestamp) -> Finding {
        let release = object["metadata"]["annotations"][RELEASE_NAME].as_str();
        match release.and_then(|release| self.0.get(release)) {
            Some(rule) => rule.judge(object, now),
            None => judge(object, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use health_core::State;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_for_the_objects_of_its_module_alone() {
        let text = json!({"apiVersion": "example.org/v1", "kind": "Table", "failed": "status.phase == 'bad'"});
        let mut rules = Rules::default();
        rules.add(&serde_json::from_value(text).unwrap()).unwrap();
        let settings = HealthSettings {
            rules,
            ..HealthSettings::default()
        };
        let book = Rulebook([("one".to_owned(), settings)].into());
        let empty = Rulebook::default();
        assert_eq!(book.differing(&empty).collect::<Vec<_>>(), ["one"]);
        let kind = |kind: &str| KindName {
            api_version: "example.org/v2".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
        };
        assert!(book.of_kind(&kind("Chair")).is_empty());
        let of_kind = book.of_kind(&kind("Table"));
        assert_ne!(of_kind.digest(), KindRules::default().digest());
        let judged = |release: &str| {
            let annotations = json!({RELEASE_NAME: release});
            let object = json!({"metadata": {"annotations": annotations}, "status": {"phase": "bad"}});
            of_kind.judge(&object, Timestamp::UNIX_EPOCH).state
        };
        assert_eq!((judged("one"), judged("two")), (State::Failed, State::Current));
    }
}
