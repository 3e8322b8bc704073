//! The `ConfigMap`, and the states that its watch has still to report.

use std::collections::BTreeMap;

use addon_core::operator::event::ConfigRead;
use addon_core::operator::provenance::{Provenance, digest};

/// The `ConfigMap`, and the states that its watch has still to report.
#[derive(Debug, Clone)]
pub struct ConfigMap {
    version: u64,
    /// The data; `None` if the `ConfigMap` does not exist.
    pub data: Option<BTreeMap<String, String>>,
    /// The number of deleted ConfigMaps of this name, which is the uid of the present `ConfigMap`.
    number: u64,
    /// The digest of the sections with which a program made the `ConfigMap`.
    made_with: Option<String>,
    /// Every state since the watch began, oldest first.
    pub news: Vec<ConfigRead>,
}

impl ConfigMap {
    pub(super) fn new(data: Option<BTreeMap<String, String>>) -> Self {
        Self {
            version: 100,
            data,
            number: 0,
            made_with: None,
            news: Vec::new(),
        }
    }

    /// The result of a read now.
    pub fn read(&self) -> ConfigRead {
        match &self.data {
            None => ConfigRead::Missing,
            Some(data) => ConfigRead::Present {
                version: self.version,
                data: data.clone(),
                provenance: Provenance {
                    uid: self.number.to_string(),
                    made_with: self.made_with.clone(),
                    confirms: None,
                },
            },
        }
    }

    /// The text under a key.
    pub fn text(&self, key: &str) -> Option<&String> {
        self.data.as_ref()?.get(key)
    }

    fn changed(&mut self) {
        self.version += 3;
        self.news.push(self.read());
    }

    pub(super) fn edit(&mut self, key: &str, text: Option<String>) {
        let Some(data) = &mut self.data else { return };
        if data.get(key) == text.as_ref() {
            return;
        }
        match text {
            Some(text) => data.insert(key.to_owned(), text),
            None => data.remove(key),
        };
        self.changed();
    }

    pub(super) fn delete(&mut self) {
        if self.data.take().is_some() {
            self.number += 1;
            self.made_with = None;
            self.changed();
        }
    }

    pub(super) fn apply(&mut self, data: BTreeMap<String, String>) {
        if self.data.as_ref() != Some(&data) {
            self.data = Some(data);
            self.changed();
        }
    }

    /// Creates the `ConfigMap` of the chart, unless there is one.
    pub(super) fn make(&mut self, data: &BTreeMap<String, String>) {
        if self.data.is_none() {
            self.made_with = Some(digest(data));
            self.data = Some(data.clone());
            self.changed();
        }
    }

    fn is_as_made(&self) -> bool {
        self.data
            .as_ref()
            .is_none_or(|data| self.made_with == Some(digest(data)))
    }

    /// The current version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Sets these keys to these texts. False if nothing had to be written.
    pub(super) fn put_back(&mut self, texts: BTreeMap<String, Option<String>>) -> bool {
        let as_made = self.is_as_made();
        let Some(data) = self.data.as_mut().filter(|_| !texts.is_empty()) else {
            return false;
        };
        for (key, text) in texts {
            match text {
                Some(text) => data.insert(key, text),
                None => data.remove(&key),
            };
        }
        if as_made {
            self.made_with = Some(digest(data));
        }
        self.changed();
        true
    }

    /// Writes one key if it still holds the base, and creates the `ConfigMap` if that is allowed. Returns the new version.
    pub(super) fn write(&mut self, key: &str, text: &str, base: Option<&String>, create: bool) -> Option<u64> {
        if self.text(key) != base || self.data.is_none() && !create {
            return None;
        }
        let as_made = self.is_as_made();
        let data = self.data.get_or_insert_default();
        data.insert(key.to_owned(), text.to_owned());
        if as_made {
            self.made_with = Some(digest(data));
        }
        self.changed();
        Some(self.version)
    }
}
