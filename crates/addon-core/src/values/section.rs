//! The parsed `ConfigMap`: sections, flags, and the mistakes of each key.
//!
//! A broken key affects only its owner. Must never delay a module because of a mistake in the key of another module.

mod channel;

use std::collections::BTreeMap;
use std::fmt;

use channel_core::source;
use channel_core::source::ModuleSources;
use helm_yaml::yaml;
use names::{ENABLED_SUFFIX, GLOBAL_KEY, MAINTENANCE_SUFFIX, MODULE_SOURCES, ModuleName, Owner};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use channel::ChannelKeys;

/// The contents of one key of the `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry<T> {
    /// The key is absent.
    #[default]
    Absent,
    /// The key is valid.
    Good(T),
    /// The key is broken. Its last good contents stay.
    Bad,
}

impl<T> Entry<T> {
    /// The contents of a valid key.
    pub fn good(&self) -> Option<&T> {
        match self {
            Self::Good(value) => Some(value),
            Self::Absent | Self::Bad => None,
        }
    }

    /// Whether the key exists, valid or broken.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// Whether the operator restores a module's objects to the state of the release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Maintenance {
    /// The operator restores the module's objects.
    #[default]
    Managed,
    /// People maintain the objects by hand, so the operator leaves them alone.
    NoResourceReconciliation,
}

/// The keys of one module in the `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The values: a map or a list.
    pub values: Entry<Value>,
    /// The flag that switches the module.
    pub enabled: Entry<bool>,
    /// Whether the operator or people maintain the module's objects.
    pub maintenance: Entry<Maintenance>,
}

impl Section {
    /// This section as a layer of values. The layer is empty if only the other keys mention the module. If the values
    /// are broken, the caller keeps the layer that it has.
    pub fn layer(&self) -> Entry<Value> {
        let mentioned = self.enabled.is_present() || self.maintenance.is_present();
        match &self.values {
            Entry::Absent if mentioned => Entry::Good(Value::Object(Map::new())),
            values => values.clone(),
        }
    }
}

/// The mistake in one key of the ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionProblem {
    /// The key of the ConfigMap with the mistake.
    pub key: String,
    /// The owner of the key; `None` if the key names no module.
    pub owner: Option<Owner>,
    /// The mistake, with line and column if these are known.
    pub message: String,
}

impl fmt::Display for SectionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, owner, message } = self;
        match owner {
            Some(owner @ Owner::Module(_)) => write!(f, "key '{key}' of {owner}: {message}"),
            Some(Owner::Global) | None => write!(f, "key '{key}': {message}"),
        }
    }
}

/// The parsed `ConfigMap`. An absent key is a decision; a broken one is a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigDocument {
    /// The global section.
    pub global: Entry<Value>,
    /// The modules that keys mention, known or not.
    pub sections: BTreeMap<ModuleName, Section>,
    /// The keys that say which version of the operator is wanted.
    pub channel: ChannelKeys,
    /// The registries from which modules come.
    #[serde(default)]
    pub module_sources: Entry<ModuleSources>,
    /// The mistakes of keys.
    pub problems: Vec<SectionProblem>,
}

impl ConfigDocument {
    /// Reads the data of a `ConfigMap`.
    pub fn parse(data: &BTreeMap<String, String>) -> Self {
        let mut document = Self::default();
        for (key, text) in data {
            if key == GLOBAL_KEY {
                let read = global(text);
                document.global = document.entry(key, &Owner::Global, read);
            } else if let Some(read) = document.channel.take(key, text) {
                document.problems.extend(read.err().map(|message| SectionProblem {
                    key: key.to_owned(),
                    owner: None,
                    message,
                }));
            } else if key == MODULE_SOURCES {
                let read = source::parse(text).map_err(|error| error.to_string());
                document.module_sources = document.setting(key, read);
            } else if let Some(stem) = key.strip_suffix(ENABLED_SUFFIX) {
                if let Some(module) = document.module(key, stem) {
                    let entry = document.entry(key, &module.clone().into(), flag(key, text));
                    document.sections.entry(module).or_default().enabled = entry;
                }
            } else if let Some(stem) = key.strip_suffix(MAINTENANCE_SUFFIX) {
                if let Some(module) = document.module(key, stem) {
                    let entry = document.entry(key, &module.clone().into(), maintenance(key, text));
                    document.sections.entry(module).or_default().maintenance = entry;
                }
            } else if let Some(module) = document.module(key, key) {
                let entry = document.entry(key, &module.clone().into(), values(key, text));
                document.sections.entry(module).or_default().values = entry;
            }
        }
        document
    }

    /// The problems of one owner.
    pub fn problems_of<'doc>(&'doc self, owner: &'doc Owner) -> impl Iterator<Item = &'doc SectionProblem> {
        self.problems
            .iter()
            .filter(move |problem| problem.owner.as_ref() == Some(owner))
    }

    /// A key that belongs to no owner.
    fn setting<T>(&mut self, key: &str, read: Result<T, String>) -> Entry<T> {
        match read {
            Ok(value) => Entry::Good(value),
            Err(message) => {
                self.problems.push(SectionProblem {
                    key: key.to_owned(),
                    owner: None,
                    message,
                });
                Entry::Bad
            }
        }
    }

    fn module(&mut self, key: &str, stem: &str) -> Option<ModuleName> {
        ModuleName::from_values_key(stem)
            .map_err(|error| {
                let message = error.to_string();
                self.problems.push(SectionProblem {
                    key: key.to_owned(),
                    owner: None,
                    message,
                });
            })
            .ok()
    }

    fn entry<T>(&mut self, key: &str, owner: &Owner, read: Result<T, String>) -> Entry<T> {
        match read {
            Ok(value) => Entry::Good(value),
            Err(message) => {
                self.problems.push(SectionProblem {
                    key: key.to_owned(),
                    owner: Some(owner.clone()),
                    message,
                });
                Entry::Bad
            }
        }
    }
}

fn global(text: &str) -> Result<Value, String> {
    match yaml::only_v2(text).map_err(|error| format!("ConfigMap: bad yaml at key '{GLOBAL_KEY}': {error}"))? {
        Value::Null => Ok(Value::Object(Map::new())),
        map @ Value::Object(_) => Ok(map),
        _ => Err("global config should be map".to_owned()),
    }
}

/// Parses a module's section. An empty text is refused here, but not in the global section. The original refuses it,
/// too, and the text may be empty by mistake.
fn values(key: &str, text: &str) -> Result<Value, String> {
    match yaml::only_v3(text).map_err(|error| format!("bad yaml at key '{key}': {error}"))? {
        section @ (Value::Object(_) | Value::Array(_)) => Ok(section),
        _ => Err(format!(
            "bad value at key '{key}': module config should be array or map"
        )),
    }
}

fn flag(key: &str, text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!(
            "module enabled key '{key}' should have a boolean value, got '{text}'"
        )),
    }
}

fn maintenance(key: &str, text: &str) -> Result<Maintenance, String> {
    match text {
        "" => Ok(Maintenance::Managed),
        "NoResourceReconciliation" | "noresourcereconciliation" => Ok(Maintenance::NoResourceReconciliation),
        _ => Err(format!(
            "module maintenanceState key '{key}' can only take 'NoResourceReconciliation' or nothing, got '{text}'"
        )),
    }
}

/// The text of a whole section for the `ConfigMap`.
pub fn to_text(section: &Value) -> String {
    yaml::to_string(section)
}

#[cfg(test)]
mod tests;
