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
    /// The fate of an upgrade after which the objects do not do their work.
    pub on_failure: OnFailure,
    /// The modules of `dependsOn` whose success is enough: their health does not count.
    pub until_ready: BTreeSet<ModuleName>,
}

/// The fate of an upgrade after which the objects of a module do not do their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The revision stays.
    Keep,
    /// The objects of the last healthy revision come back.
    Return,
}

impl OnFailure {
    /// Reads a value.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "keep" => Some(Self::Keep),
            "return" => Some(Self::Return),
            _ => None,
        }
    }
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
            on_failure: OnFailure::Keep,
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
