//! The changes that a reading of the ConfigMap makes: the keys whose meaning differs from the applied one.
//!
//! Compares what keys mean, never how they are written.

use std::collections::BTreeSet;

use names::{GLOBAL_KEY, ModuleName};
use serde_json::Value;

use crate::values::section::{Entry, Maintenance, Section};

/// The differences to the applied ConfigMap.
#[derive(Debug, Default)]
pub(in crate::operator) struct News {
    /// Whether a section that had been left for later was applied.
    pub(in crate::operator) late: bool,
    pub(in crate::operator) global: bool,
    pub(in crate::operator) flags: BTreeSet<ModuleName>,
    pub(in crate::operator) sections: BTreeSet<ModuleName>,
    /// Modules that people take into maintenance, or give back to the operator.
    pub(in crate::operator) maintenance: BTreeSet<ModuleName>,
}

impl News {
    /// The keys whose meaning changed, at most one for each module: the key of its section if that changed.
    pub(in crate::operator) fn keys(&self) -> Vec<String> {
        let modules: BTreeSet<&ModuleName> = [&self.flags, &self.sections, &self.maintenance]
            .into_iter()
            .flatten()
            .collect();
        let key = |name: &ModuleName| {
            if self.sections.contains(name) {
                name.values_key()
            } else if self.flags.contains(name) {
                name.enabled_key()
            } else {
                name.maintenance_key()
            }
        };
        let global = self.global.then(|| GLOBAL_KEY.to_owned());
        global.into_iter().chain(modules.into_iter().map(key)).collect()
    }
}

/// The values of an entry. An empty entry equals an absent one.
pub(in crate::operator) fn filled(entry: &Entry<Value>) -> Option<&Value> {
    entry.good().filter(|values| is_filled(values))
}

pub(in crate::operator) fn is_filled(values: &Value) -> bool {
    !values.as_object().is_some_and(serde_json::Map::is_empty)
}

pub(in crate::operator) fn values(section: Option<&Section>) -> Option<&Value> {
    filled(&section?.values)
}

pub(in crate::operator) fn flag(section: Option<&Section>) -> Option<bool> {
    section?.enabled.good().copied()
}

pub(in crate::operator) fn maintenance(section: Option<&Section>) -> Maintenance {
    section
        .and_then(|section| section.maintenance.good().copied())
        .unwrap_or_default()
}
