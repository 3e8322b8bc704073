//! Values of a release: laid over each other, set by paths as on helm's command line, and divided into those that may be
//! written to a file and those that are secret.
//!
//! Must never write a secret into the first part.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// The number of elements that a path may add to a list.
const LIST_LIMIT: usize = 1000;

/// The key of a value beside its name.
const VALUE: &str = "value";

/// The keys that lead to a value in maps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValuePath(pub Vec<String>);

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Lays values over others, as helm does: maps key by key, and each other value replaces the earlier one.
pub fn lay_over(below: &mut Value, over: Value) {
    match (below, over) {
        (Value::Object(below), Value::Object(over)) => {
            for (key, value) in over {
                match below.get_mut(&key) {
                    Some(earlier) => lay_over(earlier, value),
                    None => drop(below.insert(key, value)),
                }
            }
        }
        (below, over) => *below = over,
    }
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Sets the value at a path of helm's command line, such as `a.b[0].c`. `None` for a path that is not understood.
pub fn set(values: &mut Value, path: &str, value: Value) -> Option<()> {
    let mut place = values;
    for step in steps(path)? {
        match step {
            Step::Key(key) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = place.as_object_mut()?.entry(key).or_insert(Value::Null);
            }
            Step::Index(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let list = place.as_array_mut()?;
                if index >= list.len() {
                    list.resize(index + 1, Value::Null);
                }
                place = list.get_mut(index)?;
            }
        }
    }
    *place = value;
    Some(())
}

/// The type that helm gives a text of `--set`.
pub fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::from(0),
        text if text.starts_with('0') || text.starts_with('+') => Value::from(text),
        text => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let (mut steps, mut key, mut letters) = (Vec::new(), String::new(), path.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => key.push(letters.next()?),
            '.' if key.is_empty() && !matches!(steps.last(), Some(Step::Index(_))) => return None,
            '.' if key.is_empty() => {}
            '.' => steps.push(Step::Key(std::mem::take(&mut key))),
            '[' => {
                if !key.is_empty() {
                    steps.push(Step::Key(std::mem::take(&mut key)));
                }
                let mut digits = String::new();
                while let Some(digit) = letters.next_if(|&c| c != ']') {
                    digits.push(digit);
                }
                letters.next()?;
                let index: usize = digits.parse().ok()?;
                steps.push(Step::Index(Some(index).filter(|index| *index < LIST_LIMIT)?));
            }
            ',' | '=' | '{' | '}' | ']' => return None,
            letter => key.push(letter),
        }
    }
    if !key.is_empty() {
        steps.push(Step::Key(key));
    }
    matches!(steps.first(), Some(Step::Key(_))).then_some(steps)
}

/// The paths of all values of a document; a list is one value.
pub fn leaves(values: &Value) -> BTreeSet<ValuePath> {
    let mut found = BTreeSet::new();
    each_leaf(values, &mut Vec::new(), &mut |path, _| {
        found.insert(ValuePath(path.to_vec()));
    });
    found
}

/// The paths of the values whose names say that they are secret. A list with a secret is secret as a whole.
pub fn named_secret(values: &Value) -> BTreeSet<ValuePath> {
    let mut found = BTreeSet::new();
    secret_in(values, &mut Vec::new(), &mut found);
    found
}

fn secret_in(values: &Value, path: &mut Vec<String>, found: &mut BTreeSet<ValuePath>) {
    let Value::Object(map) = values else {
        if holds_secret(values) {
            found.insert(ValuePath(path.clone()));
        }
        return;
    };
    let is_variable = is_secret_variable(map);
    for (key, value) in map {
        path.push(key.clone());
        if is_secret(key, value) || is_variable && key == VALUE {
            found.insert(ValuePath(path.clone()));
        } else {
            secret_in(value, path, found);
        }
        path.pop();
    }
}

/// Whether a value that is no map holds a secret.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => masking::secret::is_private_key(text) || has_password(text),
        Value::Array(items) => items.iter().any(holds_secret),
        Value::Object(map) => {
            is_secret_variable(map)
                || map
                    .iter()
                    .any(|(key, value)| is_secret(key, value) || holds_secret(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the map gives a value to a name that is secret, as variables of containers do.
fn is_secret_variable(map: &Map<String, Value>) -> bool {
    let value = map.get(VALUE).unwrap_or(&Value::Null);
    let mut names = ["name", "key"].iter().filter_map(|key| map.get(*key)?.as_str());
    names.any(|name| is_secret(name, value))
}

/// Whether the text has a URL with a password, as in `postgres://ada:open-sesame@db`.
fn has_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let host = rest.split(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).next();
        let user = host.and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
        user.and_then(|user| user.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Whether the value is secret by its name. Maps are looked into, and what is empty tells nothing.
fn is_secret(key: &str, value: &Value) -> bool {
    let is_empty = match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    !is_empty && masking::secret::is_hidden_under(key, value)
}

fn each_leaf(value: &Value, path: &mut Vec<String>, take: &mut impl FnMut(&[String], &Value)) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                path.push(key.clone());
                each_leaf(value, path, take);
                path.pop();
            }
        }
        value if !path.is_empty() => take(path, value),
        _ => {}
    }
}

/// All texts of the values at these paths.
pub fn texts_at(values: &Value, paths: &BTreeSet<ValuePath>) -> Vec<String> {
    let mut texts = Vec::new();
    for ValuePath(path) in paths {
        let found = path.iter().try_fold(values, |value, key| value.get(key));
        if let Some(found) = found {
            collect(found, &mut texts);
        }
    }
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The values without those at the paths, and without the maps that only held these.
pub fn without(values: &Value, paths: &BTreeSet<ValuePath>) -> Value {
    let mut left = values.clone();
    for ValuePath(path) in paths {
        remove(&mut left, path);
    }
    left
}

fn remove(value: &mut Value, path: &[String]) {
    let (Some(map), Some((first, rest))) = (value.as_object_mut(), path.split_first()) else {
        return;
    };
    if rest.is_empty() {
        map.remove(first);
        return;
    }
    if let Some(inner) = map.get_mut(first) {
        remove(inner, rest);
        if inner.as_object().is_some_and(Map::is_empty) {
            map.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_those_of_helm() {
        let rows = [
            ("a", Some(json!({"a": 1}))),
            ("a.b", Some(json!({"a": {"b": 1}}))),
            ("a[1].b", Some(json!({"a": [null, {"b": 1}]}))),
            (r"a\.b/c.d", Some(json!({"a.b/c": {"d": 1}}))),
            ("a[9999999]", None),
            ("a..b", None),
            ("", None),
            ("[0]", None),
            ("a[", None),
            ("a,b", None),
        ];
        for (path, expected) in rows {
            let mut values = json!({});
            let set = set(&mut values, path, json!(1));
            assert_eq!(set.map(|()| values), expected, "{path}");
        }
    }

    #[test]
    fn texts_get_the_types_of_helm() {
        let rows = [
            ("true", json!(true)),
            ("null", json!(null)),
            ("12", json!(12)),
            ("0", json!(0)),
            ("012", json!("012")),
            ("1.5", json!("1.5")),
            ("", json!("")),
        ];
        for (text, expected) in rows {
            assert_eq!(typed(text), expected, "{text}");
        }
    }

    #[test]
    fn maps_are_merged_and_all_else_is_replaced() {
        let mut below = json!({"a": {"b": 1, "c": [1]}, "d": 1});
        lay_over(&mut below, json!({"a": {"c": [2]}, "d": null, "e": {}}));
        assert_eq!(below, json!({"a": {"b": 1, "c": [2]}, "d": null, "e": {}}));
    }

    #[test]
    fn variables_and_addresses_are_secret_by_their_contents() {
        let values = json!({
            "env": [{"name": "LEVEL", "value": "info"}, {"name": "API_TOKEN", "value": "x"}],
            "from": [{"name": "API_TOKEN", "valueFrom": {"ref": "x"}}, {"name": "DB_PASSWORD", "value": ""}],
            "deep": [[{"extra": [{"key": "db-password", "value": 1}]}]],
            "one": {"name": "API_TOKEN", "value": "x"},
            "url": "postgres://ada:open-sesame@db:5432/shop", "list": ["see http://a:b@c"],
            "plain": ["https://db:5432/a@b", "https://ada@db", "a:b@c", "https://db/?x=a:b@c"],
        });
        let named: Vec<String> = named_secret(&values).iter().map(ToString::to_string).collect();
        assert_eq!(named, ["deep", "env", "list", "one.value", "url"]);
    }

    #[test]
    fn secrets_leave_without_a_trace() {
        let values = json!({
            "auth": {"password": "open-sesame", "user": "ada"},
            "only": {"token": "t"},
            "extra": [{"name": "a"}, {"apiKey": "k"}],
            "password": "", "automountServiceAccountToken": true,
        });
        let secret = named_secret(&values);
        let named: Vec<String> = secret.iter().map(ToString::to_string).collect();
        assert_eq!(named, ["auth.password", "extra", "only.token"]);
        let left = without(&values, &secret);
        assert_eq!(
            left,
            json!({"auth": {"user": "ada"}, "password": "", "automountServiceAccountToken": true})
        );
        assert_eq!(leaves(&left).len(), 3);
    }
}
