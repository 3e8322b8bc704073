//! Masks objects of the cluster and manifests: of a Secret only the names are shown.
//!
//! Must never pass on a document that cannot be read and might be a Secret.

use helm_yaml::yaml;
use serde_json::Value;

use super::MASK;

/// The annotation in which kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const MARK: &str = "---";

/// Whether an object is a Secret.
pub fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

/// The objects of a `List`; `None` if this is no list.
fn items_of(object: &mut Value) -> Option<&mut Vec<Value>> {
    let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    object.get_mut("items").filter(|_| is_list)?.as_array_mut()
}

/// The object with its secrets masked: the data of a Secret, or, in any other object, the values with secret names.
pub fn masked(object: &Value) -> Value {
    let mut shown = object.clone();
    if hide(&mut shown) { shown } else { super::masked(object) }
}

/// Masks the data of a Secret, or of the Secrets in a list. False if there is none.
fn hide(object: &mut Value) -> bool {
    if let Some(items) = items_of(object) {
        let hidden: Vec<bool> = items.iter_mut().map(hide).collect();
        return hidden.contains(&true);
    }
    let found = is_secret(object);
    if found {
        empty(object);
    }
    found
}

/// Masks the data of an object that is known to be a Secret, whatever its `kind` is.
pub fn masked_secret(object: &Value) -> Value {
    let mut shown = object.clone();
    empty(&mut shown);
    shown
}

fn empty(secret: &mut Value) {
    for key in ["data", "stringData"] {
        match secret.get_mut(key) {
            Some(Value::Object(map)) => map.values_mut().for_each(|value| *value = MASK.into()),
            Some(other) if !other.is_null() => *other = MASK.into(),
            Some(_) | None => {}
        }
    }
    let annotations = secret.pointer_mut("/metadata/annotations");
    if let Some(copy) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
        *copy = MASK.into();
    }
}

/// A manifest with the data of its Secrets masked. Other objects stay as they are, with their comments.
pub fn masked_manifest(manifest: &str) -> String {
    let mut shown = String::with_capacity(manifest.len());
    let mut document = String::new();
    for line in manifest.split_inclusive('\n') {
        match after_mark(line) {
            // Text behind `---` on the same line belongs to the document.
            Some(rest) => {
                shown.push_str(&masked_document(&document));
                shown.push_str(MARK);
                rest.clone_into(&mut document);
            }
            None => document.push_str(line),
        }
    }
    shown + &masked_document(&document)
}

/// The text behind `---`, if the line begins with it.
fn after_mark(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(MARK)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

fn masked_document(text: &str) -> String {
    let shown = match yaml::from_str_v2(text) {
        Ok(mut document) => hide(&mut document).then(|| yaml::to_string(&document)),
        Err(_) => text.contains("Secret").then(|| format!("{MASK}\n")),
    };
    let Some(shown) = shown else {
        return text.to_owned();
    };
    let lines = text.split_inclusive('\n');
    let remarks = lines.take_while(|line| line.trim_start().starts_with('#') || line.trim().is_empty());
    let remarks: String = remarks.collect();
    // Text from the line of `---` gets a line of its own.
    let gap = if remarks.is_empty() && text.starts_with([' ', '\t']) {
        "\n"
    } else {
        ""
    };
    remarks + gap + &shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_secret_the_names_are_shown() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: "hidden", "b": "c"}},
            "data": {"x": "aGlkZGVu"}, "stringData": {"y": "hidden"},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: MASK, "b": "c"}},
            "data": {"x": MASK}, "stringData": {"y": MASK},
        });
        assert_eq!(masked(&secret), expected);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [secret]});
        assert_eq!(masked(&list)["items"][0], expected);
    }

    #[test]
    fn of_other_objects_what_their_names_call_a_secret_is_hidden() {
        let object = json!({"kind": "Database", "spec": {"password": "hidden", "size": 1}});
        assert_eq!(
            masked(&object),
            json!({"kind": "Database", "spec": {"password": MASK, "size": 1}})
        );
    }

    #[test]
    fn a_manifest_stays_as_it_was_but_for_its_secrets() {
        let manifest = "\
---
# Source: one/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}   # kept
---
# Source: one/templates/b.yaml
apiVersion: v1
kind: Secret
metadata:
  name: b
stringData:
  password: hidden
--- # broken
kind: Secret
 password: hidden
--- {apiVersion: v1, kind: Secret, metadata: {name: flow}, data: {x: hidden}}
---
kind: Other
 broken: yes
";
        let shown = masked_manifest(manifest);
        assert!(!shown.contains("hidden"), "{shown}");
        for kept in [
            "metadata: {name: a}   # kept\n",
            "# Source: one/templates/b.yaml\n",
            "name: b\n",
            "  password: <masked>\n",
            "--- # broken\n<masked>\n---",
            "  x: <masked>\n",
            "---\nkind: Other\n broken: yes\n",
        ] {
            assert!(shown.contains(kept), "{kept:?} is not in {shown}");
        }
        assert_eq!(masked_manifest("a: 1\n"), "a: 1\n");
    }
}
