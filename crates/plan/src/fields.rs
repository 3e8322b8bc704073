//! The difference of two documents, field by field. Items of lists are told apart by their names, as people do.
//!
//! Must never show a value that the names of its keys mark as a secret.

use masking::secret::{MASK, is_hidden_under, is_private_key};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The keys by which items of a list are told apart, in this order.
const NAMES: [&str; 4] = ["name", "key", "mountPath", "containerPort"];
/// The longest value that is shown, in characters.
const LONGEST: usize = 200;

/// A field that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The path, as in `spec.containers[web].image`.
    pub path: String,
    /// The value before; none if the field is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after; none if the field goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The fields in which two documents differ, in the order of the second.
pub fn changed(before: &Value, after: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    compare(String::new(), false, Some(before), Some(after), &mut fields);
    fields
}

fn compare(path: String, is_hidden: bool, before: Option<&Value>, after: Option<&Value>, fields: &mut Vec<Field>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for key in keys(before, after) {
                let (was, is) = (before.get(key), after.get(key));
                let is_hidden = is_hidden || [was, is].into_iter().flatten().any(|value| is_hidden_under(key, value));
                compare(joined(&path, key), is_hidden, was, is, fields);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if let Some(name) = name_of(before, after) => {
            let find = |items: &[Value], wanted: &Value| items.iter().position(|item| item[name] == *wanted);
            let mut seen = Vec::new();
            for item in after.iter().chain(before) {
                let own = &item[name];
                if seen.contains(&own) {
                    continue;
                }
                seen.push(own);
                let at = |items: &[Value]| find(items, own);
                let (was, is) = (at(before).map(|at| &before[at]), at(after).map(|at| &after[at]));
                // The value of a variable is as secret as its name says.
                let is_hidden = is_hidden || own.as_str().is_some_and(|own| is_hidden_under(own, &MASK.into()));
                compare(format!("{path}[{}]", plain(own)), is_hidden, was, is, fields);
            }
        }
        (before, after) if before == after => {}
        (before, after) => fields.push(Field {
            path,
            before: before.map(|value| shown(value, is_hidden)),
            after: after.map(|value| shown(value, is_hidden)),
        }),
    }
}

/// All keys, those of the second first.
fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    after.keys().chain(gone)
}

/// The key that tells apart all items of both lists.
fn name_of(before: &[Value], after: &[Value]) -> Option<&'static str> {
    let tells = |name: &&&str| {
        [before, after].into_iter().all(|items| {
            let names: Vec<_> = items.iter().map(|item| item.get(**name)).collect();
            let is_plain = |value: &&Value| value.is_string() || value.is_number();
            names.iter().all(|own| own.as_ref().is_some_and(is_plain))
                && names.iter().enumerate().all(|(at, own)| !names[..at].contains(own))
        })
    };
    NAMES.iter().find(tells).copied()
}

fn joined(path: &str, key: &str) -> String {
    let is_word = |key: &str| {
        !key.is_empty()
            && key
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '-' || letter == '_')
    };
    match (path, is_word(key)) {
        ("", true) => key.to_owned(),
        (path, true) => format!("{path}.{key}"),
        (path, false) => format!("{path}[{key:?}]"),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn shown(value: &Value, is_hidden: bool) -> Value {
    if is_hidden {
        return MASK.into();
    }
    match masking::secret::masked(value) {
        Value::String(text) if is_private_key(&text) => MASK.into(),
        Value::String(text) if text.chars().count() > LONGEST => {
            let length = text.len();
            let begin: String = text.chars().take(LONGEST).collect();
            format!("{begin}… ({length} bytes)").into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(before: &Value, after: &Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let tell = |field: Field| format!("{} {} {}", field.path, text(field.before), text(field.after));
        changed(before, after).into_iter().map(tell).collect()
    }

    #[test]
    fn fields_are_compared_one_by_one_and_items_of_lists_by_their_names() {
        let before =
            json!({"a": {"b": 1, "gone": true}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "plain": [1]});
        let after =
            json!({"a": {"b": 2, "new": "n"}, "list": [{"name": "y", "v": 3}, {"name": "x", "v": 1}], "plain": [1, 2]});
        let expected = [
            "a.b 1 2",
            "a.new - \"n\"",
            "a.gone true -",
            "list[y].v 2 3",
            "plain [1] [1,2]",
        ];
        assert_eq!(told(&before, &after), expected);
    }

    #[test]
    fn a_key_that_is_no_word_stands_in_quotes() {
        let at = |value: u8| json!({"annotations": {"a.b/c": value}});
        assert_eq!(told(&at(1), &at(2)), ["annotations[\"a.b/c\"] 1 2"]);
    }

    #[test]
    fn of_a_secret_only_the_change_is_shown() {
        let at = |word: &str| json!({"password": word, "env": [{"name": "API_TOKEN", "value": word}], "x": {"password": {"deep": word}}});
        let mut shown = told(&at("one"), &at("two"));
        shown.sort();
        let masked = format!("\"{MASK}\" \"{MASK}\"");
        let expected = ["env[API_TOKEN].value", "password", "x.password.deep"].map(|path| format!("{path} {masked}"));
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_text_is_cut() {
        let field = &changed(&json!({"a": ""}), &json!({"a": "ä".repeat(1000)}))[0];
        let text = field.after.as_ref().and_then(Value::as_str).unwrap_or_default();
        assert!(text.ends_with("… (2000 bytes)") && text.chars().count() < 250, "{text}");
    }
}
