//! Defaults: values that a schema gives to absent keys.
//!
//! Must never change an existing value.

use serde_json::Value;

use super::node::{Items, Node};

/// Adds the defaults of properties, at all depths and in the items of lists.
pub(super) fn fill(value: &mut Value, node: &Node) {
    match (value, &node.items) {
        (Value::Object(map), _) => {
            for (name, property) in &node.properties {
                if !map.contains_key(name)
                    && let Some(default) = &property.default
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill(value, property);
                }
            }
        }
        (Value::Array(items), Items::Each(node)) => items.iter_mut().for_each(|item| fill(item, node)),
        _ => {}
    }
}
