//! Read access to arrays and objects, those of the input and those of filters.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Text, Val, import};

/// An array of the input or of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum List<'v, 'a> {
    Own(&'v [Val<'a>]),
    Raw(&'a [Value]),
}

impl<'v, 'a> List<'v, 'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Own(items) => items.len(),
            Self::Raw(items) => items.len(),
        }
    }

    pub(crate) fn get(self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Own(items) => items.get(index).cloned(),
            Self::Raw(items) => items.get(index).map(import),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Val<'a>> + use<'v, 'a> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

/// An object of the input or of a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dict<'v, 'a> {
    Own(&'v BTreeMap<Text<'a>, Val<'a>>),
    Raw(&'a Map<String, Value>),
}

impl<'v, 'a> Dict<'v, 'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Own(entries) => entries.len(),
            Self::Raw(map) => map.len(),
        }
    }

    pub(crate) fn get(self, key: &str) -> Option<Val<'a>> {
        match self {
            Self::Own(entries) => entries.get(key).cloned(),
            Self::Raw(map) => map.get(key).map(import),
        }
    }

    /// The entries in the order of the keys.
    pub(crate) fn iter(self) -> Box<dyn Iterator<Item = (Text<'a>, Val<'a>)> + 'v> {
        match self {
            Self::Own(entries) => Box::new(entries.iter().map(|(key, value)| (key.clone(), value.clone()))),
            Self::Raw(map) => Box::new(map.iter().map(|(key, value)| (Text::Raw(key), import(value)))),
        }
    }
}
