//! Reads a JSON object field by field, and notes all mistakes with the paths of their fields.
//!
//! A field that was read counts as known. Fields that are left at the end are mistakes, too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::values::kind_of;

/// The mistakes found so far in the configuration.
#[derive(Debug, Default)]
pub(super) struct Problems(RefCell<Vec<String>>);

impl Problems {
    pub(super) fn note(&self, problem: String) {
        self.0.borrow_mut().push(problem);
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// An object that is being read.
pub(super) struct Fields<'v> {
    path: String,
    /// The path with the indexes of items, for lists with more than one item.
    place: String,
    map: Option<&'v Map<String, Value>>,
    known: BTreeSet<&'static str>,
    problems: &'v Problems,
}

impl<'v> Fields<'v> {
    /// Starts with the root, whose path is empty.
    pub(super) fn root(value: &'v Value, problems: &'v Problems) -> Self {
        Self::new((String::new(), String::new()), value, problems)
    }

    fn new((path, place): (String, String), value: &'v Value, problems: &'v Problems) -> Self {
        let map = value.as_object();
        let fields = Self {
            path,
            place,
            map,
            known: BTreeSet::new(),
            problems,
        };
        if map.is_none() {
            fields.tell(wrong_type(&fields.path, "object", value));
        }
        fields
    }

    /// Notes a mistake, with the item of the list in which it is.
    fn tell(&self, problem: String) {
        let problem = if self.place == self.path {
            problem
        } else {
            format!("{problem} (in {})", self.place)
        };
        self.problems.note(problem);
    }

    /// Notes a mistake if there are too few fields, known or not.
    pub(super) fn require_count(&self, at_least: usize) {
        if self.map.is_some_and(|map| map.len() < at_least) {
            self.tell(match self.path.as_str() {
                "" => format!("hook config in body should have at least {at_least} properties: it names no binding"),
                path => format!("{path} in body should have at least {at_least} properties"),
            });
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.is_some_and(|map| map.contains_key(key))
    }

    /// The path of a field, in the form for people.
    pub(super) fn path_of(&self, key: &str) -> String {
        below(&self.path, key)
    }

    pub(super) fn note(&self, key: &str, problem: &str) {
        self.tell(format!("{} in body {problem}", self.path_of(key)));
    }

    fn get(&mut self, key: &'static str) -> Option<&'v Value> {
        self.known.insert(key);
        self.map?.get(key)
    }

    fn typed<T>(&mut self, key: &'static str, kind: &str, read: impl FnOnce(&'v Value) -> Option<T>) -> Option<T> {
        let value = self.get(key)?;
        let read = read(value);
        if read.is_none() {
            self.tell(wrong_type(&self.path_of(key), kind, value));
        }
        read
    }

    pub(super) fn require(&self, key: &str) {
        if !self.has(key) && self.map.is_some() {
            self.note(key, "is required");
        }
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<&'v str> {
        self.typed(key, "string", Value::as_str)
    }

    pub(super) fn required_text(&mut self, key: &'static str) -> &'v str {
        self.require(key);
        self.text(key).unwrap_or_default()
    }

    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.typed(key, "boolean", Value::as_bool).unwrap_or(default)
    }

    pub(super) fn integer(&mut self, key: &'static str, within: RangeInclusive<i64>) -> Option<i64> {
        let number = self.typed(key, "integer", Value::as_i64)?;
        if number < *within.start() {
            self.note(key, &format!("should be greater than or equal to {}", within.start()));
        } else if number > *within.end() {
            self.note(key, &format!("should be less than or equal to {}", within.end()));
        }
        Some(number)
    }

    /// A word out of a closed list.
    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        self.find_word(key, text, words)
    }

    fn find_word<T: Copy>(&self, key: &str, text: &str, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let allowed = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ");
            self.note(key, &format!("should be one of [{allowed}], got '{text}'"));
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn items(&mut self, key: &'static str, at_least: usize) -> Option<&'v [Value]> {
        let items = self.typed(key, "array", |value| value.as_array().map(Vec::as_slice))?;
        if items.len() < at_least {
            self.note(key, &format!("should have at least {at_least} items"));
        }
        Some(items)
    }

    pub(super) fn texts(&mut self, key: &'static str, at_least: usize) -> Option<Vec<String>> {
        let items = self.items(key, at_least)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.tell(wrong_type(&self.path_of(key), "string", item)),
            }
        }
        Some(texts)
    }

    pub(super) fn words<T: Copy>(&mut self, key: &'static str, at_least: usize, words: &[(&str, T)]) -> Option<Vec<T>> {
        let texts = self.texts(key, at_least)?;
        Some(
            texts
                .iter()
                .filter_map(|text| self.find_word(key, text, words))
                .collect(),
        )
    }

    pub(super) fn object(&mut self, key: &'static str) -> Option<Self> {
        let value = self.get(key)?;
        let paths = (self.path_of(key), below(&self.place, key));
        Some(Self::new(paths, value, self.problems))
    }

    /// The objects of a list. Their paths have no index, as in the original; the index is added to the error.
    pub(super) fn objects(&mut self, key: &'static str, at_least: usize) -> Vec<Self> {
        let items = self.items(key, at_least).unwrap_or_default();
        let place = below(&self.place, key);
        let numbered = items.iter().enumerate();
        numbered
            .map(|(index, item)| {
                let place = if items.len() > 1 {
                    format!("{place}[{index}]")
                } else {
                    place.clone()
                };
                Self::new((self.path_of(key), place), item, self.problems)
            })
            .collect()
    }

    pub(super) fn text_map(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        let map = self.typed(key, "object", Value::as_object)?;
        let mut texts = BTreeMap::new();
        for (name, value) in map {
            match value.as_str() {
                Some(text) => drop(texts.insert(name.clone(), text.to_owned())),
                None => self.tell(wrong_type(&below(&self.path_of(key), name), "string", value)),
            }
        }
        Some(texts)
    }

    /// Notes that a field is known, without reading it.
    pub(super) fn skip(&mut self, key: &'static str) {
        self.known.insert(key);
    }

    /// Notes the fields that were not read.
    pub(super) fn finish(self) {
        for key in self.map.into_iter().flat_map(Map::keys) {
            if !self.known.contains(key.as_str()) {
                let path = &self.path;
                self.tell(format!(
                    "{path}.{key} in body is a forbidden property: {}",
                    self.instead_of(key)
                ));
            }
        }
    }

    /// The known field that was probably meant; else the list of known fields.
    fn instead_of(&self, key: &str) -> String {
        let plain = |text: &str| text.replace(['-', '_', ' '], "").to_ascii_lowercase();
        let written = plain(key);
        let near = self.known.iter().find(|known| {
            let known = plain(known);
            known == written || written.len() > 3 && (known.starts_with(&written) || written.starts_with(&known))
        });
        match near {
            Some(near) => format!("is it '{near}'?"),
            None => format!(
                "known here are {}",
                self.known.iter().copied().collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn wrong_type(path: &str, expected: &str, found: &Value) -> String {
    let advice = match (expected, found) {
        ("string", Value::Number(_) | Value::Bool(_)) => "put it in quotes",
        ("string", _) => "write a text",
        ("integer", Value::Number(_)) => "write a whole number of at most 64 bits",
        ("integer", Value::String(_)) => "write a whole number, without quotes",
        ("integer", _) => "write a whole number",
        ("boolean", _) => "write true or false, without quotes",
        ("array", _) => "write a list",
        _ => "write a map",
    };
    format!(
        "{path} in body must be of type {expected}: \"{}\": {advice}",
        kind_of(found)
    )
}
