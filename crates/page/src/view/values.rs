//! The values of a module, a row for each key with the source of its value.
//!
//! A source is found by comparison: a key that a hook's patch names is the hook's, a key with the same value in the section of
//! the ConfigMap is the ConfigMap's, and any other comes with the module. A key that does not has its default beside it.

use serde::Serialize;
use serde_json::Value;

use crate::facts::Detail;
use crate::text::plain;

/// The largest number of keys that are shown.
const MOST: usize = 500;
/// The longest value in a row, in characters.
const LONGEST: usize = 200;

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The names from the top, with dots between them.
    pub key: String,
    /// The value as JSON.
    pub value: String,
    /// `ConfigMap`, `hook` or `module`.
    pub source: &'static str,
    /// Whether it does not come with the module.
    pub is_changed: bool,
    /// The value that would come with the module, as JSON, if another one is in its place; empty if there is none.
    pub default: String,
}

/// The keys of a module's values, and the number of those that are not shown.
pub(super) fn entries(detail: &Detail) -> (Vec<Entry>, usize) {
    let Detail {
        values,
        section,
        patches,
        defaults,
        ..
    } = detail;
    let patched = paths(patches);
    let mut all = Vec::new();
    collect(values, "", "", &mut |pointer, key, value| {
        let source = if patched.iter().any(|path| is_within(pointer, path)) {
            "hook"
        } else if section.pointer(pointer).is_some_and(|own| own == value) {
            "ConfigMap"
        } else {
            "module"
        };
        let default = defaults.pointer(pointer).filter(|default| *default != value);
        all.push(Entry {
            key: plain(key, LONGEST),
            value: plain(&value.to_string(), LONGEST),
            source,
            is_changed: source != "module",
            default: default
                .map(|default| plain(&default.to_string(), LONGEST))
                .unwrap_or_default(),
        });
    });
    let rest = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    (all, rest)
}

/// The paths of operations, without their first segment, which is the key of the module.
fn paths(patches: &Value) -> Vec<String> {
    let operations = patches.as_array().into_iter().flatten();
    let whole = operations.filter_map(|operation| operation.get("path")?.as_str());
    let inner = whole.filter_map(|path| path.strip_prefix('/')?.split_once('/'));
    inner.map(|(_, rest)| format!("/{rest}")).collect()
}

/// Whether a pointer leads to the place of a path, or to a place within it.
fn is_within(pointer: &str, path: &str) -> bool {
    pointer
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Calls `tell` with the pointer, the key and the value of each leaf. A list is a leaf.
fn collect<'a>(value: &'a Value, pointer: &str, key: &str, tell: &mut impl FnMut(&str, &str, &'a Value)) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                collect(inner, &pointer, &key, tell);
            }
        }
        Value::Null if key.is_empty() => {}
        leaf => tell(pointer, key, leaf),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_key_tells_the_source_of_its_value() {
        let (entries, rest) = entries(&Detail {
            values: json!({"size": "large", "count": 1, "deep": {"a/b": [1, 2], "other": {}}}),
            section: json!({"size": "large", "count": 2}),
            patches: json!([{"op": "add", "path": "/shop/deep/a~1b", "value": [1, 2]}]),
            defaults: json!({"size": "small", "count": 1, "deep": {"other": {}}}),
            ..Detail::default()
        });
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (&*entry.key, &*entry.value, entry.source, &*entry.default))
            .collect();
        let expected = [
            ("count", "1", "module", ""),
            ("deep.a/b", "[1,2]", "hook", ""),
            ("deep.other", "{}", "module", ""),
            ("size", "\"large\"", "ConfigMap", "\"small\""),
        ];
        assert_eq!((told.as_slice(), rest), (expected.as_slice(), 0));
    }

    #[test]
    fn many_keys_are_counted() {
        let values: Value = (0..600)
            .map(|number| (format!("k{number}"), json!(1)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let (entries, rest) = entries(&Detail {
            values,
            ..Detail::default()
        });
        assert_eq!((entries.len(), rest), (500, 100));
    }
}
