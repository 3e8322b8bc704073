//! The `ConfigMap` as the core sees it: sections, flags, and the mistakes of each key.
//!
//! A broken key affects only its owner. Must never make one module wait because of a mistake of another.

mod channel;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::name::{ENABLED_SUFFIX, GLOBAL_KEY, MAINTENANCE_SUFFIX, ModuleName, Owner};
use crate::yaml;

pub use channel::ChannelKeys;

/// The contents of one key of the `ConfigMap`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// The key is there and sound.
    Good(T),
    /// The key is there and broken: its last good contents stay.
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

    /// Whether the key is there, sound or not.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// Whether we keep a module's objects as its release has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Maintenance {
    /// We do.
    #[default]
    Managed,
    /// A person changes them by hand.
    NoResourceReconciliation,
}

/// The `ConfigMap`'s values and flags of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its values: a map, or a list.
    pub values: Entry<Value>,
    /// Whether it is to run.
    pub enabled: Entry<bool>,
    /// Its maintenance state.
    pub maintenance: Entry<Maintenance>,
}

impl Section {
    /// The layer that this section is for the values: a module that is only mentioned has an empty one.
    /// A section with broken values gives no layer; the caller keeps the one that it has.
    pub fn layer(&self) -> Entry<Value> {
        let mentioned = self.enabled.is_present() || self.maintenance.is_present();
        match &self.values {
            Entry::Absent if mentioned => Entry::Good(Value::Object(Map::new())),
            values => values.clone(),
        }
    }
}

/// Something wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionProblem {
    /// The key.
    pub key: String,
    /// The owner that it concerns; none if the form of the key names no module.
    pub owner: Option<Owner>,
    /// The mistake, with line and column if known.
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

/// The `ConfigMap`, read. An absent key is a statement; a broken one is a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigDocument {
    /// The global section.
    pub global: Entry<Value>,
    /// Every module that a key mentions, known to us or not.
    pub sections: BTreeMap<ModuleName, Section>,
    /// Which version of the operator is wanted.
    pub channel: ChannelKeys,
    /// The mistakes, by key.
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

    /// Problems of one owner.
    pub fn problems_of<'doc>(&'doc self, owner: &'doc Owner) -> impl Iterator<Item = &'doc SectionProblem> {
        self.problems
            .iter()
            .filter(move |problem| problem.owner.as_ref() == Some(owner))
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
    match yaml::from_str_v2(text).map_err(|error| format!("ConfigMap: bad yaml at key '{GLOBAL_KEY}': {error}"))? {
        Value::Null => Ok(Value::Object(Map::new())),
        map @ Value::Object(_) => Ok(map),
        _ => Err("global config should be map".to_owned()),
    }
}

/// Unlike the global section, an empty text is refused: the original does, and it may as well be a slip.
fn values(key: &str, text: &str) -> Result<Value, String> {
    match yaml::from_str_v3(text).map_err(|error| format!("bad yaml at key '{key}': {error}"))? {
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

/// The text of a whole section as we write it into the `ConfigMap`.
pub fn to_text(section: &Value) -> String {
    yaml::to_string(section)
}

#[cfg(test)]
mod tests;
