//! The settings for the health of a module's objects, from `module.yaml`.

use std::collections::BTreeSet;
use std::time::Duration;

use health_core::rule::Rules;
use names::ModuleName;

/// The time after which objects that are on their way count as unhealthy, without a setting.
pub const TIMEOUT: Duration = Duration::from_mins(5);

/// The settings for the health of a module's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    /// The longest time for which objects may be on their way.
    pub timeout: Duration,
    /// Objects that do not count.
    pub ignore: BTreeSet<Ignored>,
    /// The rules for objects of kinds whose status says it in another way.
    pub rules: Rules,
    /// The modules of `dependsOn` whose success is enough: their health does not count.
    pub until_ready: BTreeSet<ModuleName>,
}

/// Objects that do not count for the health of their module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// The kind, as in manifests.
    pub kind: String,
    /// The name; `None` for all objects of the kind.
    pub name: Option<String>,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            timeout: TIMEOUT,
            ignore: BTreeSet::new(),
            rules: Rules::default(),
            until_ready: BTreeSet::new(),
        }
    }
}

impl HealthSettings {
    /// Whether the success of a needed module is enough.
    pub fn is_content_with_ready(&self, need: &ModuleName) -> bool {
        self.until_ready.contains(need)
    }

    /// Whether an object does not count.
    pub fn ignores(&self, kind: &str, name: &str) -> bool {
        let is_meant =
            |ignored: &Ignored| ignored.kind == kind && ignored.name.as_deref().is_none_or(|own| own == name);
        self.ignore.iter().any(is_meant)
    }
}
