//! The difference between a manifest and an existing CRD. Fields that the API server fills in or drops must not count.

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// Keys whose values are compared literally, even if they are empty.
const LITERAL: [&str; 3] = ["default", "enum", "example"];

/// A merge patch from the found object to the wanted one; `None` if they are equal.
pub(super) fn difference(wanted: &Value, found: &DynamicObject) -> Option<Value> {
    let none = Map::new();
    let mut spec = Map::new();
    let of_found = found.data["spec"].as_object().unwrap_or(&none);
    let of_wanted = with_defaults(wanted["spec"].as_object().unwrap_or(&none));
    let keys = of_wanted.keys().chain(of_found.keys());
    for key in keys.filter(|key| *key != "conversion") {
        let (wanted, found) = (of_wanted.get(key), of_found.get(key));
        if !is_same(key, wanted, found) {
            spec.insert(key.clone(), merge(wanted, found));
        }
    }
    let mut metadata = Map::new();
    let there = [
        ("labels", &found.metadata.labels),
        ("annotations", &found.metadata.annotations),
    ];
    for (key, there) in there {
        let wanted = wanted["metadata"][key].as_object().unwrap_or(&none);
        let there = |name: &str| there.as_ref().and_then(|there| there.get(name)).map(String::as_str);
        let differing: Map<_, _> = wanted
            .iter()
            .filter(|(name, value)| there(name) != value.as_str())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !differing.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(differing));
        }
    }
    let mut patch = Map::new();
    for (key, part) in [("spec", spec), ("metadata", metadata)] {
        if !part.is_empty() {
            patch.insert(key.to_owned(), Value::Object(part));
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Adds the names that the API server derives from the kind.
fn with_defaults(spec: &Map<String, Value>) -> Map<String, Value> {
    let mut spec = spec.clone();
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (key, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            if names
                .get(key)
                .is_none_or(|name| name.as_str().is_none_or(str::is_empty))
            {
                names.insert(key.to_owned(), json!(name));
            }
        }
    }
    spec
}

/// Whether the values of a key are equal, or absent on one side and empty on the other.
fn is_same(key: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    let literal = LITERAL.contains(&key);
    match (one, other) {
        (Some(one), Some(other)) => equals(one, other, literal),
        (Some(only), None) | (None, Some(only)) => only.is_null() || (!literal && says_nothing(only)),
        (None, None) => true,
    }
}

/// Whether a value is the same as an absent one. An empty map is not: `status: {}` among the subresources has a
/// meaning.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn equals(one: &Value, other: &Value, literal: bool) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if literal => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| equals(value, other, true)))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut keys = one.keys().chain(other.keys());
            keys.all(|key| is_same(key, one.get(key), other.get(key)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equals(one, other, literal))
        }
        // 1 and 1.0 are the same number for the API server.
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// A merge patch from the found object to the wanted one: lists are replaced, unwanted keys are removed.
fn merge(wanted: Option<&Value>, found: Option<&Value>) -> Value {
    match (wanted, found) {
        (Some(Value::Object(wanted)), Some(Value::Object(found))) => {
            let gone = found.keys().filter(|key| !wanted.contains_key(*key));
            let gone = gone.map(|key| (key.clone(), Value::Null));
            let there = wanted
                .iter()
                .map(|(key, value)| (key.clone(), merge(Some(value), found.get(key))));
            Value::Object(gone.chain(there).collect())
        }
        (Some(wanted), _) => wanted.clone(),
        (None, _) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes the manifest of a test.
    type Edit = fn(&mut Value);

    fn crd(change: impl FnOnce(&mut Value)) -> Value {
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.b.c", "labels": {"l": "1"}},
            "spec": {
                "group": "b.c",
                "names": {"kind": "A", "plural": "as", "singular": "a", "listKind": "AList"},
                "scope": "Namespaced",
                "conversion": {"strategy": "None"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                              "schema": {"openAPIV3Schema": {"type": "object", "default": {"x": false}}}}],
            },
        });
        change(&mut crd);
        crd
    }

    fn found() -> DynamicObject {
        serde_json::from_value(crd(|_| {})).unwrap()
    }

    #[test]
    fn what_the_api_server_fills_in_or_leaves_out_is_no_difference() {
        assert_eq!(difference(&crd(|_| {}), &found()), None);
        let written = crd(|crd| {
            let spec = crd["spec"].as_object_mut().unwrap();
            spec.remove("conversion");
            spec.insert("preserveUnknownFields".to_owned(), json!(false));
            spec["names"] = json!({"kind": "A", "plural": "as", "shortNames": [], "singular": ""});
            spec["versions"][0]["deprecated"] = json!(false);
            spec["versions"][0]["deprecationWarning"] = Value::Null;
            crd["metadata"]["creationTimestamp"] = Value::Null;
            crd["status"] = json!({"storedVersions": []});
        });
        assert_eq!(difference(&written, &found()), None);
        let mut touched = found();
        touched.data["spec"]["conversion"] = json!({"strategy": "Webhook"});
        touched.metadata.annotations = Some([("theirs".to_owned(), "x".to_owned())].into());
        assert_eq!(difference(&crd(|_| {}), &touched), None);
    }

    #[test]
    fn what_the_manifest_says_is_patched_and_nothing_else() {
        let rows: [(Edit, Value); 6] = [
            (
                |crd| crd["metadata"]["labels"] = json!({"l": "2"}),
                json!({"metadata": {"labels": {"l": "2"}}}),
            ),
            (
                |crd| crd["metadata"]["annotations"] = json!({"a": "b"}),
                json!({"metadata": {"annotations": {"a": "b"}}}),
            ),
            (|crd| crd["metadata"]["labels"] = json!({}), Value::Null),
            (
                |crd| crd["spec"]["names"]["shortNames"] = json!(["x"]),
                json!({"spec": {"names": {"kind": "A", "plural": "as", "singular": "a", "listKind": "AList",
                                          "shortNames": ["x"]}}}),
            ),
            (
                |crd| crd["spec"]["versions"][0]["name"] = json!("v2"),
                json!({"spec": {"versions": crd(|crd| crd["spec"]["versions"][0]["name"] = json!("v2"))["spec"]["versions"]}}),
            ),
            (
                |crd| crd["spec"]["preserveUnknownFields"] = json!(true),
                json!({"spec": {"preserveUnknownFields": true}}),
            ),
        ];
        for (change, patch) in rows {
            let wanted = crd(change);
            assert_eq!(difference(&wanted, &found()).unwrap_or_default(), patch, "{wanted}");
        }
    }

    #[test]
    fn small_things_that_matter_are_differences() {
        let rows: [Edit; 4] = [
            |version| version["subresources"] = json!({}),
            |version| version["schema"]["openAPIV3Schema"]["default"] = json!({}),
            |version| version["schema"]["openAPIV3Schema"]["default"] = json!({"x": false, "y": false}),
            |version| version["storage"] = json!(false),
        ];
        for change in rows {
            let wanted = crd(|crd| change(&mut crd["spec"]["versions"][0]));
            assert!(difference(&wanted, &found()).is_some(), "{wanted}");
        }
        let mut more = found();
        more.data["spec"]["names"]["shortNames"] = json!(["old"]);
        let patch = difference(&crd(|_| {}), &more).unwrap();
        assert_eq!(patch["spec"]["names"]["shortNames"], Value::Null);
    }
}
