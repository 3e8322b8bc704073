//! Whether two manifests have the same objects. The original operator and other versions of helm write the same objects
//! as other texts, and a different text is no reason for a new revision.
//!
//! Must never treat two objects as equal that the API server stores differently.

use serde_json::{Map, Value};

/// The comparison of a rendering with the newest revision of its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// Both manifests have the same objects.
    Same,
    /// The objects differ.
    Other,
}

impl Likeness {
    /// Compares the objects of two manifests, in any order.
    pub fn of(rendered: Vec<Value>, deployed: Vec<Value>) -> Self {
        if objects(rendered) == objects(deployed) {
            Self::Same
        } else {
            Self::Other
        }
    }
}

/// The texts of all objects, sorted. A template that renders nothing leaves a document without contents, which is dropped.
fn objects(documents: Vec<Value>) -> Vec<String> {
    let objects = documents.into_iter().filter(|document| !document.is_null());
    let mut texts: Vec<String> = objects.flat_map(members).map(text).collect();
    texts.sort();
    texts
}

/// The objects of a document. A `List` has several.
fn members(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items,
        Some(Value::Null) if is_list => Vec::new(),
        Some(other) => {
            document["items"] = other;
            vec![document]
        }
        None => vec![document],
    }
}

/// The text of an object, in which equal labels and annotations have equal texts: for the API server an absent map equals
/// an empty one, and a `null` value equals an empty text. The original's library writes them so.
fn text(mut object: Value) -> String {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations"] {
            settle(metadata, field);
        }
    }
    object.to_string()
}

fn settle(metadata: &mut Map<String, Value>, field: &str) {
    match metadata.get_mut(field) {
        Some(Value::Object(texts)) if !texts.is_empty() => {
            for text in texts.values_mut().filter(|text| text.is_null()) {
                *text = Value::from("");
            }
        }
        Some(Value::Object(_) | Value::Null) => {
            metadata.remove(field);
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(one: &Value, other: &Value, likeness: Likeness) {
        let documents = |value: &Value| value.as_array().expect("a test writes a list").clone();
        for (one, other) in [(one, other), (other, one)] {
            let found = Likeness::of(documents(one), documents(other));
            assert_eq!(found, likeness, "{one} {other}");
        }
    }

    #[test]
    fn manifests_are_the_same_if_their_objects_are() {
        let a = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}});
        let b = json!({"kind": "Secret", "metadata": {"name": "b"}});
        let both = json!([a, b]);
        for same in [
            json!([null, b, null, a, null]),
            json!([{"kind": "List", "items": [b, a]}, {"kind": "List", "items": []}, {"kind": "List", "items": null}]),
        ] {
            check(&both, &same, Likeness::Same);
        }
        let other = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": 2}});
        for different in [json!([a]), json!([]), json!([other, b]), json!([a, b, b])] {
            check(&both, &different, Likeness::Other);
        }
        check(&json!([]), &json!([null]), Likeness::Same);
    }

    #[test]
    fn labels_and_annotations_are_compared_as_the_api_server_stores_them() {
        let with = |field: &str, value: Value| json!([{"kind": "ConfigMap", "metadata": {"name": "a", field: value}}]);
        let without = json!([{"kind": "ConfigMap", "metadata": {"name": "a"}}]);
        for field in ["labels", "annotations"] {
            for nothing in [json!(null), json!({})] {
                check(&without, &with(field, nothing), Likeness::Same);
            }
            let empty = with(field, json!({"a": ""}));
            check(&empty, &with(field, json!({"a": null})), Likeness::Same);
            check(&empty, &without, Likeness::Other);
        }
        // In other fields `null` may have a meaning.
        check(&without, &with("finalizers", json!(null)), Likeness::Other);
        check(
            &json!([{"kind": "A", "spec": {"a": null}}]),
            &json!([{"kind": "A", "spec": {}}]),
            Likeness::Other,
        );
        check(
            &json!([{"kind": "A", "items": [1]}]),
            &json!([{"kind": "A", "items": []}]),
            Likeness::Other,
        );
    }
}
