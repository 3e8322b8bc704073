//! The changes of an owner's schemas after reading: by each other, and by our own rules.
//!
//! Must never loosen a schema.

use super::node::{Items, Node, Others};

/// Forbids keys that the schema does not name: at the root, and below it in objects without `additionalProperties`.
pub(super) fn forbid_others(node: &mut Node) {
    node.additional_properties.get_or_insert(Others::Forbidden);
    for property in node.properties.values_mut() {
        // A property with its own `additionalProperties` is left alone, with all properties below it.
        if property.additional_properties.is_none() {
            forbid_others(property);
        }
    }
    match &mut node.items {
        Items::Any => {}
        Items::Each(item) => forbid_others(item),
        Items::Places(places) => places.iter_mut().for_each(forbid_others),
    }
}

/// Takes over keywords of the schema of config values that this schema lacks.
pub(super) fn extend(node: &mut Node, parent: &Node) {
    let own = std::mem::take(&mut node.required);
    node.required = merged(parent.required.clone(), own);
    for (name, property) in &parent.properties {
        node.properties.entry(name.clone()).or_insert_with(|| property.clone());
    }
    for (pattern, property) in &parent.pattern_properties {
        if !node.pattern_properties.iter().any(|(own, _)| own == pattern) {
            node.pattern_properties.push((pattern.clone(), property.clone()));
        }
    }
    if node.rules.is_none() {
        node.rules.clone_from(&parent.rules);
    }
    if node.required_for_helm.is_none() {
        node.required_for_helm.clone_from(&parent.required_for_helm);
    }
}

/// Requires the keys in `x-required-for-helm`.
pub(super) fn require_for_helm(node: &mut Node) {
    if let Some(more) = &node.required_for_helm {
        node.required = merged(std::mem::take(&mut node.required), more.clone());
    }
    node.properties.values_mut().for_each(require_for_helm);
}

fn merged(mut first: Vec<String>, second: Vec<String>) -> Vec<String> {
    for name in second {
        if !first.contains(&name) {
            first.push(name);
        }
    }
    first
}
