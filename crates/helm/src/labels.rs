//! Adds labels to every rendered object, in the operator's own binary when helm calls it as post-renderer. Must never
//! change a manifest in any other way than its caller asks for.

use std::collections::BTreeMap;
use std::mem;

use addon_core::release::brake::ADOPTED;
use helm_yaml::yaml::{self, YamlError};
use serde_json::{Map, Value};
use thiserror::Error;

use super::shape::{self, Misshapen};

/// Why labels could not be added.
#[derive(Debug, Error)]
pub enum LabelError {
    #[error("the manifest that begins at line {line} is not YAML that helm reads")]
    Yaml { line: usize, source: YamlError },
    #[error("{object} has {field} that is not a map")]
    NoMap { object: String, field: &'static str },
    #[error("{template} renders a document that helm cannot install")]
    Misshapen { template: String, source: Misshapen },
}

/// The output for no objects. Helm 4 takes an empty output for an error of the post-renderer.
const NOTHING: &str = "# no objects\n";
/// The annotation that tells helm to keep an object when its release is removed.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// The value that makes helm keep the object.
pub const KEEP: &str = "keep";
/// The annotation that makes an object a helm hook. Helm 3 does not pass hooks to a post-renderer, helm 4 does. Helm
/// hooks belong to no release and stay as they are.
pub const HELM_HOOK: &str = "helm.sh/hook";

/// Sets the labels on every object of the manifests; an existing label is replaced. A document that is no map stays,
/// and helm reports it. The comments before an object stay too: they name its template.
pub fn add_labels(manifests: &str, labels: &BTreeMap<String, String>) -> Result<String, LabelError> {
    add_labels_noting(manifests, labels, &mut |_| {})
}

/// Whether an object stays in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    Stays,
    Goes,
}

/// Like [`add_labels`], with a callback for every object that can belong to a release.
pub fn add_labels_noting(
    manifests: &str,
    labels: &BTreeMap<String, String>,
    note: &mut impl FnMut(&mut Value),
) -> Result<String, LabelError> {
    add_labels_choosing(manifests, labels, &mut |object| {
        note(object);
        Noted::Stays
    })
}

/// Like [`add_labels_noting`], with a callback that may leave objects out.
pub fn add_labels_choosing(
    manifests: &str,
    labels: &BTreeMap<String, String>,
    note: &mut impl FnMut(&mut Value) -> Noted,
) -> Result<String, LabelError> {
    let mut output = String::with_capacity(manifests.len() * 5 / 4);
    for Piece { line, text } in pieces(manifests) {
        let documents = yaml::documents_v2(text).map_err(|source| LabelError::Yaml { line, source })?;
        if !documents.iter().any(Value::is_object) {
            if !text.trim().is_empty() {
                output.push_str("---\n");
                output.push_str(text.trim_end());
                output.push('\n');
            }
            continue;
        }
        let mut comments = text
            .lines()
            .take_while(|line| line.starts_with('#') || line.trim().is_empty());
        for mut document in documents {
            shape::check(&document).map_err(|source| LabelError::Misshapen {
                template: template_of(text).unwrap_or_else(|| format!("the manifest that begins at line {line}")),
                source,
            })?;
            if label_document(&mut document, labels, note)? == Noted::Goes {
                continue;
            }
            output.push_str("---\n");
            for comment in comments.by_ref().filter(|line| line.starts_with('#')) {
                output.push_str(comment);
                output.push('\n');
            }
            output.push_str(yaml::to_string(&document).trim_end());
            output.push('\n');
        }
    }
    if output.is_empty() {
        output.push_str(NOTHING);
    }
    Ok(output)
}

/// The comment in which helm names the template of a manifest.
fn template_of(manifest: &str) -> Option<String> {
    let told = manifest.lines().find_map(|line| line.strip_prefix("# Source: "));
    told.map(|template| template.trim().to_owned())
}

/// A document, or other text between separators.
struct Piece<'a> {
    line: usize,
    text: &'a str,
}

/// Splits the manifests at the separators of documents, which YAML does not allow inside of a document.
fn pieces(manifests: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut first, mut at) = (0, 1, 0);
    for (number, line) in manifests.split_inclusive('\n').enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        {
            pieces.push(Piece {
                line: first,
                text: &manifests[start..at],
            });
            // Text after the separator on the same line belongs to the document.
            start = at + "---".len();
            first = number + 1;
        }
        at += line.len();
    }
    pieces.push(Piece {
        line: first,
        text: &manifests[start..],
    });
    for piece in &mut pieces {
        if let Some(rest) = piece
            .text
            .strip_prefix("\r\n")
            .or_else(|| piece.text.strip_prefix('\n'))
        {
            piece.text = rest;
        }
    }
    pieces
}

fn label_document(
    document: &mut Value,
    labels: &BTreeMap<String, String>,
    note: &mut impl FnMut(&mut Value) -> Noted,
) -> Result<Noted, LabelError> {
    let is_list = document
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(items) = document.get_mut("items").and_then(Value::as_array_mut) {
        let (count, mut stay) = (items.len(), Vec::new());
        for mut item in mem::take(items) {
            if label_object(&mut item, labels, note)? == Noted::Stays {
                stay.push(item);
            }
        }
        *items = stay;
        // A list that was empty before stays.
        let is_emptied = items.is_empty() && count > 0;
        return Ok(if is_emptied { Noted::Goes } else { Noted::Stays });
    }
    label_object(document, labels, note)
}

fn label_object(
    object: &mut Value,
    labels: &BTreeMap<String, String>,
    note: &mut impl FnMut(&mut Value) -> Noted,
) -> Result<Noted, LabelError> {
    if object["metadata"]["annotations"].get(HELM_HOOK).is_some() {
        return Ok(Noted::Stays);
    }
    if note(object) == Noted::Goes {
        return Ok(Noted::Goes);
    }
    let name = name_of(object);
    let Some(fields) = object.as_object_mut().filter(|_| !labels.is_empty()) else {
        return Ok(Noted::Stays);
    };
    let no_map = |field| LabelError::NoMap {
        object: name.clone(),
        field,
    };
    let metadata = map_at(fields, "metadata").ok_or_else(|| no_map("metadata"))?;
    let existing = map_at(metadata, "labels").ok_or_else(|| no_map("metadata.labels"))?;
    for (key, value) in labels {
        existing.insert(key.clone(), Value::String(value.clone()));
    }
    Ok(Noted::Stays)
}

/// Marks an object so that helm keeps it when the release is removed, and so that it is not counted as helm's own work.
pub fn keep(object: &mut Value) {
    let Some(metadata) = object.as_object_mut().and_then(|fields| map_at(fields, "metadata")) else {
        return;
    };
    if let Some(annotations) = map_at(metadata, "annotations") {
        annotations.insert(RESOURCE_POLICY.to_owned(), Value::String(KEEP.to_owned()));
        annotations.insert(ADOPTED.to_owned(), Value::String(true.to_string()));
    }
}

/// The map at a key; created if it is absent.
fn map_at<'a>(fields: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let value = fields.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels() -> BTreeMap<String, String> {
        [("heritage", "addon-operator"), ("on", "yes")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// Manifests with unusual forms of YAML; everything except the labels must stay the same.
    const AWKWARD: &str = r#"---
# Source: one/templates/a.yaml
# a second line
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {heritage: Helm, keep: "true"}}
data:
  script: |
    #!/bin/sh
    --- not a mark
    echo "x"

  kept: |+
    two ends


  folded: >-
    one
    line
  quoted: "tab\t, unicode \u00fc, \x07"
  yes: "no"
  number: "0123"
  float: "1e3"
  date: "2001-01-01"
  empty: ""
  tilde: "~"
  colon: "a: b"
  hash: "a #b"
  long: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccccccccccccccccccccccccccccccccc"
---
# only a comment
---

--- # on the line of the mark
apiVersion: apps/v1
kind: Deployment
metadata:
  name: b
spec: &spec
  replicas: 3
  big: 9007199254740993
  ratio: 0.1
  octal: 0644
  on: yes
  nothing: null
  list:
  - - 1
    - [2, {a: b}]
  - {}
  - []
again: *spec
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: c, labels: null}
  data: {x: eA==}
- apiVersion: v1
  kind: Secret
"#;

    fn without_labels(mut value: Value) -> Value {
        if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
            for item in items {
                *item = without_labels(item.take());
            }
        } else if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("labels");
        } else if let Some(object) = value.as_object_mut() {
            object.insert("metadata".to_owned(), json!({}));
        }
        value
    }

    #[test]
    fn nothing_but_labels_changes_in_awkward_manifests() {
        let output = add_labels(AWKWARD, &labels()).unwrap();
        let objects = |text: &str| -> Vec<Value> {
            yaml::documents_v2(text)
                .unwrap()
                .into_iter()
                .filter(Value::is_object)
                .collect()
        };
        let (before, after) = (objects(AWKWARD), objects(&output));
        assert_eq!(after.len(), 3);
        assert_eq!(
            before.into_iter().map(without_labels).collect::<Vec<_>>(),
            after.iter().cloned().map(without_labels).collect::<Vec<_>>(),
        );
        assert_eq!(
            after[0]["metadata"]["labels"],
            json!({"heritage": "addon-operator", "keep": "true", "on": "yes"})
        );
        assert_eq!(
            after[1]["metadata"]["labels"],
            json!({"heritage": "addon-operator", "on": "yes"})
        );
        for item in after[2]["items"].as_array().unwrap() {
            assert_eq!(item["metadata"]["labels"]["heritage"], "addon-operator");
        }
        assert!(after[2].get("metadata").is_none(), "a list is no object of the cluster");
    }

    #[test]
    fn comments_before_an_object_stay_and_a_second_pass_changes_nothing() {
        let output = add_labels(AWKWARD, &labels()).unwrap();
        assert!(
            output.starts_with("---\n# Source: one/templates/a.yaml\n# a second line\napiVersion: v1\n"),
            "{output}"
        );
        assert!(output.contains("---\n# only a comment\n---\n"), "{output}");
        assert_eq!(add_labels(&output, &labels()).unwrap(), output);
    }

    #[test]
    fn mistakes_are_named() {
        let error = add_labels("---\n# a comment\n---\na: [\n", &labels()).unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
        let error = add_labels(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: [a]}\n",
            &labels(),
        )
        .unwrap_err();
        assert_eq!(error.to_string(), "ConfigMap/x has metadata.labels that is not a map");
        let error = add_labels("---\n# Source: one/templates/a.yaml\nsize: 1\n", &labels()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "one/templates/a.yaml renders a document that helm cannot install"
        );
    }

    #[test]
    fn nothing_stays_nothing_but_says_so() {
        for nothing in ["", "---\n---\n\n"] {
            let output = add_labels(nothing, &labels()).unwrap();
            assert_eq!(
                yaml::documents_v2(&output)
                    .unwrap()
                    .iter()
                    .find(|document| document.is_object()),
                None
            );
            assert!(!output.trim().is_empty());
        }
    }

    #[test]
    fn helm_hooks_are_no_objects_of_the_release() {
        let hook =
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\n  annotations: {helm.sh/hook: pre-install}\n";
        let output = add_labels(hook, &labels()).unwrap();
        assert!(!output.contains("heritage"), "{output}");
        let other = hook.replace("helm.sh/hook:", "helm.sh/resource-policy:");
        assert!(add_labels(&other, &labels()).unwrap().contains("heritage"));
    }
}
