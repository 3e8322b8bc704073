//! The `ConfigMap`, and what its watch has still to tell.

use std::collections::BTreeMap;

use addon_core::operator::event::ConfigRead;

/// The `ConfigMap`, and what its watch has still to tell.
#[derive(Debug, Clone)]
pub struct ConfigMap {
    version: u64,
    /// What it holds; nothing if it does not exist.
    pub data: Option<BTreeMap<String, String>>,
    /// It came into being in this life by a write of ours, so that what it leaves out was said by nobody.
    pub made_by_us: bool,
    /// Every state since the watch began, oldest first.
    pub news: Vec<ConfigRead>,
}

impl ConfigMap {
    pub(super) fn new(data: Option<BTreeMap<String, String>>) -> Self {
        Self {
            version: 100,
            data,
            made_by_us: false,
            news: Vec::new(),
        }
    }

    /// What a read says now.
    pub fn read(&self) -> ConfigRead {
        match &self.data {
            None => ConfigRead::Missing,
            Some(data) => ConfigRead::Present {
                version: self.version,
                data: data.clone(),
            },
        }
    }

    /// What it holds under a key.
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
        self.made_by_us = false;
        self.changed();
    }

    pub(super) fn delete(&mut self) {
        if self.data.take().is_some() {
            self.changed();
        }
    }

    pub(super) fn apply(&mut self, data: BTreeMap<String, String>) {
        if self.data.as_ref() != Some(&data) {
            self.data = Some(data);
            self.made_by_us = false;
            self.changed();
        }
    }

    /// Writes one key if it still holds the base, into a `ConfigMap` that may have to be made; says at which version.
    pub(super) fn write(&mut self, key: &str, text: &str, base: Option<&String>, create: bool) -> Option<u64> {
        if self.text(key) != base || self.data.is_none() && !create {
            return None;
        }
        self.made_by_us |= self.data.is_none();
        self.data
            .get_or_insert_default()
            .insert(key.to_owned(), text.to_owned());
        self.changed();
        Some(self.version)
    }
}
