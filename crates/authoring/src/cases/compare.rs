//! Compares expected results with those of a run, and describes differences line by line.
//!
//! A map is expected in part; a list as a whole, each item in part; `null` stands for an absent field.

use addon_core::object::patch::Operation;
use addon_core::values::patch::Patch;
use serde_json::{Map, Value, json};
use similar::TextDiff;

/// The differences between an expected part and the whole. `path` leads to both.
pub(super) fn part(path: &str, expected: &Value, got: Option<&Value>) -> Vec<String> {
    match (expected, got) {
        (Value::Null, None | Some(Value::Null)) => Vec::new(),
        (Value::Object(expected), Some(Value::Object(got))) => {
            let of_key = |(key, value): (&String, &Value)| part(&below(path, key), value, got.get(key));
            expected.iter().flat_map(of_key).collect()
        }
        (Value::Array(wanted), Some(Value::Array(items))) if wanted.len() == items.len() => {
            let pairs = wanted.iter().zip(items).enumerate();
            let of_item = |(place, (wanted, item))| part(&format!("{path}[{place}]"), wanted, Some(item));
            pairs.flat_map(of_item).collect()
        }
        (expected, Some(got)) if is_equal(expected, got) => Vec::new(),
        (Value::String(expected), Some(Value::String(got))) if expected.contains('\n') || got.contains('\n') => {
            vec![format!("{path}: - expected, + got\n{}", lines(expected, got))]
        }
        (expected, got) => vec![difference(
            path,
            &expected.to_string(),
            &got.map_or("nothing".to_owned(), Value::to_string),
        )],
    }
}

/// The lines that differ, and the lines around them. A missing line break at the end is shown, too.
fn lines(expected: &str, got: &str) -> String {
    let diff = TextDiff::from_lines(expected, got);
    let mut shown = diff.unified_diff();
    let text = shown.context_radius(1).missing_newline_hint(true).to_string();
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("@@")).collect();
    format!("  {}", text.join("\n  "))
}

/// Equality of scalars; `1` equals `1.0`.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    }
}

fn below(path: &str, key: &str) -> String {
    if key.contains(['.', '/', '[']) {
        format!("{path}[{key:?}]")
    } else {
        format!("{path}.{key}")
    }
}

fn difference(path: &str, expected: &str, got: &str) -> String {
    if expected.len() + got.len() < 80 {
        format!("{path}: expected {expected}, got {got}")
    } else {
        format!("{path}:\n  expected {expected}\n  got      {got}")
    }
}

/// The differences between expected and existing objects. Each expected object has to be part of an existing one.
pub(super) fn objects(field: &str, expected: &[Value], got: &[Value]) -> Vec<String> {
    let missing = expected.iter().enumerate().flat_map(|(place, wanted)| {
        let path = format!("{field}[{place}]");
        if got.iter().any(|object| part(&path, wanted, Some(object)).is_empty()) {
            return Vec::new();
        }
        let named: Vec<&Value> = got.iter().filter(|object| is_named_like(wanted, object)).collect();
        match named.as_slice() {
            [one] => part(&format!("{path} {}", title(one)), wanted, Some(one)),
            [] => vec![difference(&path, &wanted.to_string(), &listed(got))],
            several => vec![difference(&path, &wanted.to_string(), &json!(several).to_string())],
        }
    });
    missing.collect()
}

/// The objects that should not exist and do.
pub(super) fn absent(field: &str, unwanted: &[Value], got: &[Value]) -> Vec<String> {
    let found = unwanted.iter().enumerate().filter_map(|(place, unwanted)| {
        let found = got
            .iter()
            .find(|object| part(field, unwanted, Some(object)).is_empty())?;
        Some(format!("{field}[{place}]: expected nothing, got {}", title(found)))
    });
    found.collect()
}

fn is_named_like(wanted: &Value, object: &Value) -> bool {
    let is_same = |pointer: &str| {
        wanted
            .pointer(pointer)
            .is_none_or(|text| object.pointer(pointer) == Some(text))
    };
    ["/kind", "/apiVersion", "/metadata/name", "/metadata/namespace"]
        .into_iter()
        .all(is_same)
}

/// The kind and the names of an object.
fn title(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("?");
    let name = text("/metadata/name").unwrap_or("?");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn listed(objects: &[Value]) -> String {
    if objects.is_empty() {
        return "no object".to_owned();
    }
    let titles: Vec<String> = objects.iter().map(title).collect();
    format!("only {}", titles.join(", "))
}

/// The difference between two lists that have to be equal, an item a line.
pub(super) fn whole(field: &str, expected: &[Value], got: &[Value]) -> Vec<String> {
    if expected == got {
        return Vec::new();
    }
    let lines = |items: &[Value]| -> String {
        let lines = items.iter().map(|item| format!("\n    {item}"));
        if items.is_empty() {
            " nothing".to_owned()
        } else {
            lines.collect()
        }
    };
    vec![format!("{field}:\n  expected{}\n  got{}", lines(expected), lines(got))]
}

/// The operations of a patch of values. A `remove` has no field `value`.
pub(crate) fn operations(patch: &Patch) -> Vec<Value> {
    let mut operations = match json!(patch) {
        Value::Array(operations) => operations,
        _ => Vec::new(),
    };
    for operation in &mut operations {
        if operation["op"] == "remove"
            && let Some(fields) = operation.as_object_mut()
        {
            fields.remove("value");
        }
    }
    operations
}

/// Object patches as documents.
pub(crate) fn documents(operations: &[Operation]) -> Vec<Value> {
    operations.iter().map(Operation::to_document).collect()
}

/// The differences between expected operations on metrics and those of the hook. An empty list expects none.
pub(super) fn metrics(field: &str, expected: &[Value], got: &[Value]) -> Vec<String> {
    if expected.is_empty() {
        return whole(field, expected, got);
    }
    let is_missing = |(place, wanted): (usize, &Value)| {
        let path = format!("{field}[{place}]");
        if got.iter().any(|one| part(&path, wanted, Some(one)).is_empty()) {
            return Vec::new();
        }
        let named: Vec<&Value> = got.iter().filter(|one| one["name"] == wanted["name"]).collect();
        match named.as_slice() {
            [one] => part(&path, wanted, Some(one)),
            _ => vec![difference(&path, &wanted.to_string(), &json!(got).to_string())],
        }
    };
    expected.iter().enumerate().flat_map(is_missing).collect()
}

/// An operation on a metric, in the words of a hook.
pub(crate) fn metric(operation: &addon_core::metric::Operation) -> Value {
    use addon_core::metric::{Change, Sample};
    let mut shown = Map::new();
    if let Some(group) = &operation.group {
        shown.insert("group".to_owned(), json!(group));
    }
    match &operation.change {
        Change::Expire => {
            shown.insert("action".to_owned(), json!("expire"));
        }
        Change::Write { name, labels, sample } => {
            let (action, value) = match sample {
                Sample::Add(value) => ("add", value),
                Sample::Set(value) => ("set", value),
                Sample::Observe { value, buckets } => {
                    shown.insert("buckets".to_owned(), json!(buckets));
                    ("observe", value)
                }
            };
            let fields = [
                ("name", json!(name)),
                ("action", json!(action)),
                ("value", json!(value)),
                ("labels", json!(labels)),
            ];
            shown.extend(fields.map(|(key, value)| (key.to_owned(), value)));
        }
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_compared_and_each_difference_has_its_path() {
        let got = json!({"a": {"b": 1, "c": [1, {"d": "x", "e": 2}]}, "f": null, "g.h/i": "y"});
        for expected in [
            json!({}),
            json!({"a": {"b": 1.0}}),
            json!({"a": {"c": [1, {"d": "x"}]}}),
            json!({"f": null, "nothing": null}),
            json!({"g.h/i": "y"}),
        ] {
            assert_eq!(part("v", &expected, Some(&got)), [""; 0], "{expected}");
        }
        let rows = [
            (json!({"a": {"b": 2}}), "v.a.b: expected 2, got 1"),
            (json!({"a": {"b": null}}), "v.a.b: expected null, got 1"),
            (json!({"a": {"z": 2}}), "v.a.z: expected 2, got nothing"),
            (
                json!({"a": {"c": [1, {"d": "w"}]}}),
                "v.a.c[1].d: expected \"w\", got \"x\"",
            ),
            (
                json!({"a": {"c": [1]}}),
                "v.a.c: expected [1], got [1,{\"d\":\"x\",\"e\":2}]",
            ),
            (json!({"g.h/i": "z"}), "v[\"g.h/i\"]: expected \"z\", got \"y\""),
            (
                json!({"a": "text"}),
                "v.a: expected \"text\", got {\"b\":1,\"c\":[1,{\"d\":\"x\",\"e\":2}]}",
            ),
        ];
        for (expected, told) in rows {
            assert_eq!(part("v", &expected, Some(&got)), [told]);
        }
    }

    #[test]
    fn of_objects_the_one_with_the_name_is_compared() {
        let map = |name: &str, data: &str| json!({"kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"k": data}});
        let got = [map("a", "1"), map("b", "2")];
        assert_eq!(
            objects("o", &[json!({"kind": "ConfigMap", "data": {"k": "2"}})], &got),
            [""; 0]
        );
        let wanted = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "3"}});
        assert_eq!(
            objects("o", std::slice::from_ref(&wanted), &got),
            ["o[0] ConfigMap n/a.data.k: expected \"3\", got \"1\""]
        );
        let secret = json!({"kind": "Secret", "metadata": {"name": "a"}});
        let told = objects("o", std::slice::from_ref(&secret), &got);
        assert!(told[0].ends_with(", got only ConfigMap n/a, ConfigMap n/b"), "{told:?}");
        assert_eq!(absent("x", &[secret], &got), [""; 0]);
        let named = json!({"kind": "ConfigMap", "metadata": {"name": "b"}});
        assert_eq!(
            absent("x", &[named], &got),
            ["x[0]: expected nothing, got ConfigMap n/b"]
        );
    }

    #[test]
    fn lists_that_have_to_be_equal_are_shown_an_item_a_line() {
        assert_eq!(whole("p", &[json!(1)], &[json!(1)]), [""; 0]);
        let told = whole("p", &[json!(1)], &[]);
        assert_eq!(told, ["p:\n  expected\n    1\n  got nothing"]);
    }
}
