//! Finds the secrets in values: values that a schema marks as secret, and, without a mark, values whose key has a secret name.
//!
//! If two schemas disagree, the value is secret. Must never change any other part of a document.

use std::collections::BTreeSet;

use masking::secret::{self, MASK, known};
use serde_json::{Map, Value};

use super::Schemas;
use super::node::{Dependency, Items, Node, Others};

/// Whether the keywords of a node mark a secret. `x-secret` decides; without it the format `password` or `writeOnly`
/// marks a secret.
pub(super) fn said_by(node: &Map<String, Value>) -> Option<bool> {
    let said = |(name, value): (&String, &Value)| name.eq_ignore_ascii_case("x-secret").then(|| value.as_bool())?;
    let is = |key: &str, value: Value| node.get(key) == Some(&value);
    let implied = is("format", "password".into()) || is("writeOnly", true.into());
    node.iter().find_map(said).or(implied.then_some(true))
}

/// A place of a document with all schema nodes for it.
struct DocumentPlace<'a> {
    nodes: Vec<&'a Node>,
    /// The key of the place; `None` for the root and for items.
    key: Option<&'a str>,
}

impl<'a> DocumentPlace<'a> {
    fn new(nodes: impl IntoIterator<Item = &'a Node>, key: Option<&'a str>) -> Self {
        let mut all = Vec::new();
        for node in nodes {
            gather(node, &mut all);
        }
        Self { nodes: all, key }
    }

    fn at_key<'b>(&self, key: &'b str) -> DocumentPlace<'b>
    where
        'a: 'b,
    {
        let nodes = self.nodes.iter().flat_map(|node| below_key(node, key));
        DocumentPlace::new(nodes, Some(key))
    }

    fn at_item(&self, index: usize) -> Self {
        let nodes = self.nodes.iter().filter_map(|node| below_index(node, index));
        Self::new(nodes, None)
    }

    /// The place that a part of a JSON pointer leads to. The part may be a key or an index.
    fn at<'b>(&self, step: &'b str) -> DocumentPlace<'b>
    where
        'a: 'b,
    {
        let mut place = self.at_key(step);
        // The place behind the last item is secret if all items are secret.
        let index = step.parse().ok().or((step == "-").then_some(usize::MAX));
        place
            .nodes
            .extend(index.into_iter().flat_map(|index| self.at_item(index).nodes));
        place
    }

    /// Whether the schemas mark the place as a secret; `None` if they do not say.
    fn said(&self) -> Option<bool> {
        self.nodes.iter().filter_map(|node| node.secret).max()
    }

    fn hides(&self, value: &Value) -> bool {
        self.said().unwrap_or_else(|| {
            let by_name = self.key.is_some_and(|key| secret::is_hidden_under(key, value));
            by_name || value.as_str().is_some_and(secret::is_private_key)
        })
    }

    fn masked(&self, value: &Value) -> Value {
        if self.hides(value) {
            return MASK.into();
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(index, item)| self.at_item(index).masked(item)).collect()
            }
            Value::Object(map) => {
                let shown = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.at_key(key).masked(value)));
                Value::Object(shown.collect())
            }
        }
    }

    fn collect(&self, value: &Value, secrets: &mut BTreeSet<String>) {
        if self.hides(value) {
            return leaves(value, secrets);
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.at_item(index).collect(item, secrets);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    self.at_key(key).collect(value, secrets);
                }
            }
        }
    }
}

/// Collects a node and all other nodes for the same place.
fn gather<'schema>(node: &'schema Node, all: &mut Vec<&'schema Node>) {
    all.push(node);
    let combined = node.all_of.iter().chain(&node.any_of).chain(&node.one_of);
    let depending = node.dependencies.values().filter_map(|dependency| match dependency {
        Dependency::Schema(node) => Some(&**node),
        Dependency::Keys(_) => None,
    });
    for node in combined.chain(depending) {
        gather(node, all);
    }
}

fn like(others: Option<&Others>) -> Option<&Node> {
    match others {
        Some(Others::Like(node)) => Some(node),
        Some(Others::Allowed | Others::Forbidden) | None => None,
    }
}

fn below_key<'schema>(node: &'schema Node, key: &str) -> Vec<&'schema Node> {
    let patterns = node
        .pattern_properties
        .iter()
        .filter(|(pattern, _)| pattern.matches(key));
    let mut found: Vec<&Node> = patterns.map(|(_, node)| node).collect();
    found.extend(node.properties.get(key));
    if found.is_empty() {
        found.extend(like(node.additional_properties.as_ref()));
    }
    found
}

fn below_index(node: &Node, index: usize) -> Option<&Node> {
    match &node.items {
        Items::Any => like(node.additional_items.as_ref()),
        Items::Each(node) => Some(node),
        Items::Places(places) => places.get(index).or_else(|| like(node.additional_items.as_ref())),
    }
}

/// Collects the texts and numbers of a value that are long enough to be searched for.
fn leaves(value: &Value, found: &mut BTreeSet<String>) {
    let mut take = |text: String| {
        if text.len() >= known::SHORTEST {
            found.insert(text);
        }
    };
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => take(number.to_string()),
        Value::String(text) => take(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(map) => map.values().for_each(|value| leaves(value, found)),
    }
}

impl Schemas {
    fn root(&self) -> DocumentPlace<'_> {
        let nodes = [self.config.as_deref(), self.values.as_deref()];
        DocumentPlace::new(nodes.into_iter().flatten(), None)
    }

    /// The section with its secrets masked.
    pub fn masked(&self, section: &Value) -> Value {
        self.root().masked(section)
    }

    /// A value at the place that these keys name in the section, with its secrets masked. The value need not be in the section.
    pub fn masked_at(&self, keys: &[String], value: &Value) -> Value {
        let mut place = self.root();
        for (depth, key) in keys.iter().enumerate() {
            // A value below a secret is a part of the secret, whatever its key is.
            if depth > 0 && place.hides(&Value::from("")) {
                return MASK.into();
            }
            place = place.at(key);
        }
        place.masked(value)
    }

    /// The texts of the section that are secret.
    pub fn secrets(&self, section: &Value) -> BTreeSet<String> {
        let mut secrets = BTreeSet::new();
        self.root().collect(section, &mut secrets);
        secrets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Files;
    use super::*;

    fn schemas(values: &str) -> Schemas {
        let mut files = Files::default();
        files.insert("values.yaml", values);
        Schemas::load(&files, None, Some("values.yaml")).unwrap()
    }

    const SCHEMA: &str = "
type: object
properties:
  login: {type: string, format: password}
  code: {type: string, x-secret: true}
  pin: {writeOnly: true}
  tokenOfThanks: {type: string, x-secret: false}
  flags: {x-secret: true}
  users:
    type: array
    items:
      type: object
      properties: {key: {type: string, x-secret: true}}
  either:
    oneOf:
      - {type: string}
      - {type: string, format: password}
patternProperties:
  ^hidden: {x-secret: true}
additionalProperties: true
";

    #[test]
    fn the_schema_decides_and_where_it_is_silent_the_name() {
        let section = json!({
            "login": "a", "code": "b", "pin": 1234, "tokenOfThanks": "shown", "flags": false,
            "users": [{"key": "c", "name": "ada"}], "either": "d", "hidden-thing": {"a": 1},
            "password": "e", "open": {"passwords": ["f"], "size": 1},
        });
        let expected = json!({
            "login": MASK, "code": MASK, "pin": MASK, "tokenOfThanks": "shown", "flags": MASK,
            "users": [{"key": MASK, "name": "ada"}], "either": MASK, "hidden-thing": MASK,
            "password": MASK, "open": {"passwords": MASK, "size": 1},
        });
        assert_eq!(schemas(SCHEMA).masked(&section), expected);
    }

    #[test]
    fn a_patch_is_masked_by_its_path() {
        let schemas = schemas(SCHEMA);
        let rows = [
            ("login", json!("a"), json!(MASK)),
            ("users/0/key", json!("a"), json!(MASK)),
            ("users/-", json!({"key": "a", "x": 1}), json!({"key": MASK, "x": 1})),
            ("open/password/deep", json!("a"), json!(MASK)),
            ("open", json!({"token": "a", "b": 1}), json!({"token": MASK, "b": 1})),
            ("tokenOfThanks", json!("a"), json!("a")),
            ("open/serviceAccountToken", json!(false), json!(false)),
        ];
        for (path, value, expected) in rows {
            let keys: Vec<String> = path.split('/').map(str::to_owned).collect();
            assert_eq!(schemas.masked_at(&keys, &value), expected, "{path}");
        }
    }

    #[test]
    fn secrets_are_gathered_with_all_that_is_in_them() {
        let section = json!({"password": {"a": "longer-a", "b": [1_234_567, "short"]}, "size": "unhidden"});
        let expected: BTreeSet<String> = ["longer-a", "1234567"].map(str::to_owned).into();
        assert_eq!(Schemas::default().secrets(&section), expected);
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z]{0,12}".prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "a",
            "password",
            "apiKey",
            "login",
            "code",
            "users",
            "tokenOfThanks",
        ]);
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..4)
                    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    /// Whether the shown value equals the original one except for masked parts.
    fn is_covered(shown: &Value, value: &Value) -> bool {
        match (shown, value) {
            (Value::String(text), _) if text == MASK => true,
            (Value::Array(shown), Value::Array(items)) => {
                shown.len() == items.len() && shown.iter().zip(items).all(|(shown, item)| is_covered(shown, item))
            }
            (Value::Object(shown), Value::Object(map)) => {
                shown.len() == map.len()
                    && map
                        .iter()
                        .all(|(key, value)| shown.get(key).is_some_and(|shown| is_covered(shown, value)))
            }
            (shown, value) => shown == value,
        }
    }

    proptest! {
        #[test]
        fn a_masked_document_is_the_document_with_holes(document in documents()) {
            let schemas = schemas(SCHEMA);
            let shown = schemas.masked(&document);
            prop_assert!(is_covered(&shown, &document), "{shown}");
            prop_assert_eq!(&schemas.masked(&shown), &shown);
            prop_assert!(schemas.secrets(&shown).iter().all(|text| text == MASK));
        }

        #[test]
        fn what_a_secret_key_holds_is_nowhere(document in documents(), marker in "zz[0-9]{8}") {
            for key in ["password", "login", "code", "apiKey"] {
                let holder = json!({ key: {"deep": [document, marker]} });
                let shown = schemas(SCHEMA).masked(&json!({"a": holder, "list": [holder]}));
                if key == "password" || key == "apiKey" {
                    prop_assert!(!shown.to_string().contains(&marker), "{shown}");
                }
                prop_assert!(!schemas(SCHEMA).masked(&holder).to_string().contains(&marker));
            }
        }
    }
}
