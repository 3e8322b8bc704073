//! The objects in a text: JSON or YAML, single ones, lists, several documents one after the other.
//!
//! Must never take a text that is no object for one, nor leave an object out.

use std::io;
use std::path::{Path, PathBuf};

use helm_yaml::yaml::{self, YamlError};
use serde_json::{Map, Value};
use thiserror::Error;

/// The name of standard input.
pub(super) const STANDARD: &str = "-";

/// Why objects could not be read.
#[derive(Debug, Error)]
pub(super) enum InputError {
    #[error("cannot read objects")]
    Unread(#[source] io::Error),
    #[error("{place} is neither valid JSON nor valid YAML")]
    Garbled { place: String, source: YamlError },
    #[error("{place}: document {number} is no object: it has no apiVersion or no kind")]
    NoObject { place: String, number: usize },
}

/// The objects in all files, in their order.
pub(super) fn objects(files: &[PathBuf]) -> Result<Vec<Value>, InputError> {
    let mut objects = Vec::new();
    for file in files {
        let (place, text) = if file == Path::new(STANDARD) {
            ("standard input".to_owned(), io::read_to_string(io::stdin()))
        } else {
            (file.display().to_string(), fs_err::read_to_string(file))
        };
        read(&place, &text.map_err(InputError::Unread)?, &mut objects)?;
    }
    Ok(objects)
}

fn read(place: &str, text: &str, objects: &mut Vec<Value>) -> Result<(), InputError> {
    let garbled = |source| InputError::Garbled {
        place: place.to_owned(),
        source,
    };
    // JSON first: the answers of kubectl are long, and two documents of JSON in a row are no YAML.
    let json: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let documents = json.or_else(|_| yaml::documents_v2(text)).map_err(garbled)?;
    for (document, number) in documents.into_iter().zip(1..) {
        if !take(document, objects) {
            return Err(InputError::NoObject {
                place: place.to_owned(),
                number,
            });
        }
    }
    Ok(())
}

/// Adds the objects of a document. False if it holds something else.
fn take(document: Value, objects: &mut Vec<Value>) -> bool {
    match document {
        Value::Null => true,
        Value::Array(items) => items.into_iter().all(|item| take(item, objects)),
        Value::Object(mut fields) => match (fields.remove("items"), kind(&fields).strip_suffix("List")) {
            (Some(Value::Array(items)), Some(of_items)) => {
                let api_version = fields.get("apiVersion");
                items
                    .into_iter()
                    .all(|item| take(of_list(item, of_items, api_version), objects))
            }
            (Some(_), _) => false,
            (None, _) => {
                let is_object = !kind(&fields).is_empty() && fields.get("apiVersion").is_some_and(Value::is_string);
                if is_object {
                    objects.push(Value::Object(fields));
                }
                is_object
            }
        },
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn kind(fields: &Map<String, Value>) -> &str {
    fields.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// The item of a list with the kind and the version of the list, which the API server does not repeat.
fn of_list(mut item: Value, kind: &str, api_version: Option<&Value>) -> Value {
    if let Some(fields) = item.as_object_mut().filter(|_| !kind.is_empty()) {
        fields.entry("kind").or_insert_with(|| kind.into());
        fields
            .entry("apiVersion")
            .or_insert_with(|| api_version.cloned().unwrap_or_default());
    }
    item
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        let mut objects = Vec::new();
        read("here", text, &mut objects).map_err(|error| error.to_string())?;
        let name = |object: &Value| {
            let text = |at: &str| {
                object
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            format!("{} {} {}", text("/apiVersion"), text("/kind"), text("/metadata/name"))
        };
        Ok(objects.iter().map(name).collect())
    }

    #[test]
    fn objects_come_in_many_forms() {
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}"#;
        let bare = r#"{"metadata": {"name": "a"}}"#;
        for (text, found) in [
            (String::new(), vec![]),
            ("---\n# nothing\n---\n".to_owned(), vec![]),
            (pod.to_owned(), vec!["v1 Pod a"]),
            (format!("{pod}{pod}\n{pod}"), vec!["v1 Pod a"; 3]),
            (format!("[{pod}, {pod}]"), vec!["v1 Pod a"; 2]),
            (
                format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{pod}, null]}}"#),
                vec!["v1 Pod a"],
            ),
            (
                format!(r#"{{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{bare}]}}"#),
                vec!["apps/v1 Deployment a"],
            ),
            (
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n"
                    .to_owned(),
                vec!["v1 Pod a", "v1 Pod b"],
            ),
        ] {
            assert_eq!(names(&text), Ok(found.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_object_is_named() {
        for (text, expected) in [
            ("no", "here: document 1 is no object: it has no apiVersion or no kind"),
            (
                "{kind: Pod}",
                "here: document 1 is no object: it has no apiVersion or no kind",
            ),
            (
                "{apiVersion: v1, kind: Pod}\n---\n{apiVersion: v1, kind: Bag, items: []}",
                "here: document 2 is no object: it has no apiVersion or no kind",
            ),
            ("{\"kind\": ", "here is neither valid JSON nor valid YAML"),
        ] {
            assert_eq!(names(text), Err(expected.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_list_of_objects_is_its_objects(kinds in proptest::collection::vec("[A-Z][a-z]{0,8}", 0..6)) {
            let objects: Vec<Value> = kinds.iter().map(|kind| json!({"apiVersion": "v1", "kind": kind})).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
            let apart: String = objects.iter().map(Value::to_string).collect();
            prop_assert_eq!(names(&list), names(&apart));
            prop_assert_eq!(names(&list).map(|names| names.len()), Ok(kinds.len()));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            drop(names(&text));
        }
    }
}
