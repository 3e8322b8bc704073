//! Checks of lists and maps and of their items.

use std::collections::BTreeSet;

use helm_yaml::number;
use serde_json::{Map, Value};

use super::super::node::{Items, Node, Others};
use super::{Findings, Path, check};

fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

pub(super) fn list(node: &Node, items: &[Value], path: Path<'_>, found: &mut Findings) {
    let item = |node: &Node, index: usize| check(node, &items[index], Path::Item(&path, index));
    let mut places = 0;
    match &node.items {
        Items::Any => {}
        Items::Each(node) => (0..items.len()).for_each(|index| found.merge(item(node, index))),
        Items::Places(nodes) => {
            places = nodes.len();
            let both = nodes.iter().zip(0..items.len());
            both.for_each(|(node, index)| found.merge(item(node, index)));
        }
    }
    match &node.additional_items {
        Some(Others::Forbidden) if places > 0 && places < items.len() => {
            found.add("array doesn't allow for additional items".to_owned());
        }
        Some(Others::Like(node)) => (places..items.len()).for_each(|index| found.merge(item(node, index))),
        Some(Others::Forbidden | Others::Allowed) | None => {}
    }
    let size = length(items.len());
    if let Some(least) = node.min_items.filter(|least| size < *least) {
        found.add(format!("{path} in body should have at least {least} items"));
    }
    if let Some(most) = node.max_items.filter(|most| size > *most) {
        found.add(format!("{path} in body should have at most {most} items"));
    }
    if node.unique_items && has_duplicates(items) {
        found.add(format!("{path} in body shouldn't contain duplicates"));
    }
    found.count();
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    items.iter().any(|item| {
        let mut item = item.clone();
        number::settle(&mut item);
        !seen.insert(item.to_string())
    })
}

pub(super) fn map(node: &Node, map: &Map<String, Value>, path: Path<'_>, found: &mut Findings) {
    let size = length(map.len());
    if let Some(least) = node.min_properties.filter(|least| size < *least) {
        return found.add(format!("{path} in body should have at least {least} properties"));
    }
    if let Some(most) = node.max_properties.filter(|most| size > *most) {
        return found.add(format!("{path} in body should have at most {most} properties"));
    }
    for (key, value) in map.iter().filter(|(key, _)| !node.properties.contains_key(*key)) {
        other(node, key, value, path, found);
    }
    for (key, property) in &node.properties {
        if let Some(value) = map.get(key) {
            found.merge(check(property, value, Path::Key(&path, key)));
        }
    }
    for key in &node.required {
        // A missing key with a default counts as present.
        let has_default = node
            .properties
            .get(key)
            .is_some_and(|property| property.default.is_some());
        if !map.contains_key(key) && !has_default {
            found.add(format!("{path}.{key} in body is required"));
        }
    }
    for (key, value) in map.iter().filter(|(key, _)| node.properties.contains_key(*key)) {
        by_patterns(node, key, value, path, found);
    }
}

/// Checks a key that `properties` does not name.
fn other(node: &Node, key: &str, value: &Value, path: Path<'_>, found: &mut Findings) {
    if by_patterns(node, key, value, path, found) {
        return;
    }
    match &node.additional_properties {
        // The original allows these two keywords of JSON Schema everywhere.
        Some(Others::Forbidden) if key != "$schema" && key != "id" => {
            found.add(format!("{path}.{key} in body is a forbidden property"));
        }
        Some(Others::Like(node)) => found.merge(check(node, value, Path::Key(&path, key))),
        Some(Others::Forbidden | Others::Allowed) | None => {}
    }
}

/// Checks a key against all patterns that match it. True if a pattern matches.
fn by_patterns(node: &Node, key: &str, value: &Value, path: Path<'_>, found: &mut Findings) -> bool {
    let mut matched = false;
    for (_, node) in node
        .pattern_properties
        .iter()
        .filter(|(pattern, _)| pattern.matches(key))
    {
        matched = true;
        found.merge(check(node, value, Path::Key(&path, key)));
    }
    matched
}
