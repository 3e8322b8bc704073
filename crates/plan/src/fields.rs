//! The difference of two documents, field by field. Items of lists are told apart by their names, as people do.
//!
//! Must never show a value that the names of its keys mark as a secret.

use masking::secret::{MASK, is_hidden_under, is_private_key};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The keys by which items of a list are told apart, in this order.
const NAMES: [&str; 4] = ["name", "key", "mountPath", "containerPort"];

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

/// A document, and the same with masked secrets.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The document.
    pub whole: &'a Value,
    /// The document in the form for people.
    pub masked: &'a Value,
}

/// The fields in which two documents differ. Only the names of keys tell which values are secrets.
pub fn changed(before: &Value, after: &Value) -> Vec<Field> {
    let alone = |whole| Shown { whole, masked: whole };
    changed_between(alone(before), alone(after))
}

/// The fields in which two documents differ. Values that are masked, or whose keys mark them, are not shown.
pub fn changed_between(before: Shown<'_>, after: Shown<'_>) -> Vec<Field> {
    let mut fields = Vec::new();
    compare(String::new(), false, Some(before), Some(after), &mut fields);
    fields
}

impl<'a> Shown<'a> {
    /// The value at a place that is found in the document.
    fn at(self, find: impl Fn(&'a Value) -> Option<&'a Value>) -> Option<Self> {
        Some(Self {
            whole: find(self.whole)?,
            // A part of a masked value is masked, too.
            masked: find(self.masked).unwrap_or(&HIDDEN),
        })
    }

    fn is_masked(self) -> bool {
        self.masked.as_str() == Some(MASK) || self.masked.is_null() && !self.whole.is_null()
    }
}

/// The masked form of a part of a masked value.
static HIDDEN: Value = Value::Null;

fn compare(
    path: String,
    is_hidden: bool,
    before: Option<Shown<'_>>,
    after: Option<Shown<'_>>,
    fields: &mut Vec<Field>,
) {
    let whole = |side: Option<Shown<'_>>| side.map(|side| side.whole.clone());
    let is_hidden = is_hidden || [before, after].into_iter().flatten().any(Shown::is_masked);
    match (before.map(|side| side.whole), after.map(|side| side.whole)) {
        (Some(Value::Object(was)), Some(Value::Object(is))) => {
            for key in keys(was, is) {
                let is_marked = [was, is]
                    .into_iter()
                    .any(|map| map.get(key).is_some_and(|value| is_hidden_under(key, value)));
                let (before, after) = (
                    before.and_then(|side| side.at(|value| value.get(key))),
                    after.and_then(|side| side.at(|value| value.get(key))),
                );
                compare(joined(&path, key), is_hidden || is_marked, before, after, fields);
            }
        }
        (Some(Value::Array(was)), Some(Value::Array(is))) if let Some(name) = name_of(was, is) => {
            let mut seen = Vec::new();
            for item in is.iter().chain(was) {
                let own = &item[name];
                if seen.contains(&own) {
                    continue;
                }
                seen.push(own);
                let place = |items: &[Value]| items.iter().position(|item| item[name] == *own);
                let (before, after) = (
                    place(was).and_then(|at| before.and_then(|side| side.at(|value| value.get(at)))),
                    place(is).and_then(|at| after.and_then(|side| side.at(|value| value.get(at)))),
                );
                // The value of a variable is as secret as its name says.
                let is_marked = own.as_str().is_some_and(|own| is_hidden_under(own, &MASK.into()));
                compare(
                    format!("{path}[{}]", plain(own)),
                    is_hidden || is_marked,
                    before,
                    after,
                    fields,
                );
            }
        }
        (was, is) if was == is => {}
        _ => fields.push(Field {
            path,
            before: whole(before).map(|value| shown(&value, is_hidden)),
            after: whole(after).map(|value| shown(&value, is_hidden)),
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
    fn a_value_that_is_masked_whole_or_in_parts_is_not_shown() {
        let at = |word: &str| json!({"key": word, "map": {"a": word}, "plain": word});
        let masked = json!({"key": MASK, "map": MASK, "plain": "x"});
        let (before, after) = (at("one"), at("two"));
        let side = |whole| Shown { whole, masked: &masked };
        let fields = changed_between(side(&before), side(&after));
        let shown: Vec<_> = fields
            .iter()
            .map(|field| (field.path.as_str(), field.after.clone()))
            .collect();
        let expected = [
            ("key", Some(MASK.into())),
            ("map.a", Some(MASK.into())),
            ("plain", Some("two".into())),
        ];
        assert_eq!(shown, expected);
    }
}
