//! Hooks: what they bind to, what they are told, and what they answer.
//!
//! Must never run one: a hook is a description here.

pub mod config;
pub mod context;
pub mod crontab;
pub mod output;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::HookName;
use config::{HookConfig, Stage};

/// The configured hooks of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hooks(BTreeMap<HookName, Arc<HookConfig>>);

impl Hooks {
    /// A hook of that name.
    pub fn get(&self, name: &HookName) -> Option<&Arc<HookConfig>> {
        self.0.get(name)
    }

    /// All hooks by name.
    pub fn iter(&self) -> impl Iterator<Item = (&HookName, &Arc<HookConfig>)> {
        self.0.iter()
    }

    /// The hooks that take part in a stage, in the order in which they run: by number, then by name.
    pub fn at_stage(&self, stage: Stage) -> Vec<&HookName> {
        let mut taking_part: Vec<_> = self
            .0
            .iter()
            .filter_map(|(name, config)| Some((config.order(stage)?, name)))
            .collect();
        taking_part.sort_unstable();
        taking_part.into_iter().map(|(_, name)| name).collect()
    }
}

impl FromIterator<(HookName, Arc<HookConfig>)> for Hooks {
    fn from_iter<I: IntoIterator<Item = (HookName, Arc<HookConfig>)>>(hooks: I) -> Self {
        Self(hooks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::HookKind;

    #[test]
    fn hooks_of_a_stage_run_by_number_then_by_name() {
        let hook = |name: &str, config: &str| {
            let config = HookConfig::parse(config, HookKind::Global).unwrap();
            (HookName::parse(name).unwrap(), Arc::new(config))
        };
        let hooks = Hooks::from_iter([
            hook("sub/c.sh", "configVersion: v1\nonStartup: 20"),
            hook("b.sh", "configVersion: v1\nonStartup: -1\nafterAll: 1"),
            hook("d.sh", "configVersion: v1\nbeforeAll: 1"),
            hook("a.sh", "onStartup: 20"),
        ]);
        let names = |stage| {
            hooks
                .at_stage(stage)
                .into_iter()
                .map(HookName::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Stage::OnStartup), ["b.sh", "a.sh", "sub/c.sh"]);
        assert_eq!(names(Stage::AfterAll), ["b.sh"]);
        assert!(names(Stage::BeforeHelm).is_empty());
        assert_eq!(hooks.iter().count(), 4);
        assert!(hooks.get(&HookName::parse("e.sh").unwrap()).is_none());
    }
}
