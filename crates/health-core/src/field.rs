//! Fields of an object, read by their path.
//!
//! Two ways, as the original has them: a strict one, where a value of the wrong type is an error, and a lenient one,
//! where it counts as absent. Must never take a null on the way for an error: a field below it is absent.

use serde_json::Value;
use thiserror::Error;

/// A value whose type is not the one that the rules need.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0} has the wrong type")]
pub(crate) struct Malformed(pub(crate) String);

impl Malformed {
    pub(crate) fn at(path: &str) -> Self {
        Self(path.to_owned())
    }
}

/// The value at a path of names with dots between them. A null at the end is a value.
pub(crate) fn strict<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, Malformed> {
    let mut value = object;
    for name in path.split('.') {
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(name) {
                Some(below) => below,
                None => return Ok(None),
            },
            _ => return Err(Malformed::at(path)),
        };
    }
    Ok(Some(value))
}

pub(crate) fn strict_text<'a>(object: &'a Value, path: &str) -> Result<Option<&'a str>, Malformed> {
    let value = strict(object, path)?;
    value
        .map(|value| value.as_str().ok_or_else(|| Malformed::at(path)))
        .transpose()
}

pub(crate) fn strict_whole(object: &Value, path: &str) -> Result<Option<i64>, Malformed> {
    let value = strict(object, path)?;
    value
        .map(|value| value.as_i64().ok_or_else(|| Malformed::at(path)))
        .transpose()
}

/// The value at a path, if everything on the way is an object.
pub(crate) fn value<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, name| value.get(name))
}

/// The text at a path; empty if it is absent or no text.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    value(object, path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn whole(object: &Value, path: &str, default: i64) -> i64 {
    value(object, path).and_then(Value::as_i64).unwrap_or(default)
}

/// The items of the list at a path; none if it is absent or no list.
pub(crate) fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    value(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One condition of a status. Absent texts are empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) name: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl Condition<'_> {
    pub(crate) fn is(&self, name: &str, status: &str) -> bool {
        self.name == name && self.status == status
    }

    /// Its reason and its message, or the other text if it has neither.
    pub(crate) fn told(&self, otherwise: &str) -> String {
        use crate::text::{MESSAGE, NAME, harmless};
        let (reason, message) = (harmless(self.reason, NAME), harmless(self.message, MESSAGE));
        match (reason.as_str(), message.as_str()) {
            ("", "") => otherwise.to_owned(),
            (text, "") | ("", text) => text.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// The conditions of a status, in their order.
pub(crate) fn conditions(object: &Value) -> Result<Vec<Condition<'_>>, Malformed> {
    const PATH: &str = "status.conditions";
    let malformed = || Malformed::at(PATH);
    match value(object, "status") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(_) => return Err(Malformed::at("status")),
    }
    let list = match value(object, PATH) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(list) => list.as_array().ok_or_else(malformed)?,
    };
    let read = |item| {
        Ok(Condition {
            name: text_or_null(item, "type")?,
            status: text_or_null(item, "status")?,
            reason: text_or_null(item, "reason")?,
            message: text_or_null(item, "message")?,
        })
    };
    list.iter()
        .map(|item| match item {
            Value::Object(_) | Value::Null => read(item).map_err(|()| malformed()),
            _ => Err(malformed()),
        })
        .collect()
}

fn text_or_null<'a>(item: &'a Value, key: &str) -> Result<&'a str, ()> {
    match item.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(value) => value.as_str().ok_or(()),
    }
}

/// The group and the kind of an object, as in `apps/Deployment`; the kind alone in the core group. Empty if its version
/// cannot be read.
pub(crate) fn group_kind(object: &Value) -> String {
    group_kind_of(text(object, "apiVersion"), text(object, "kind"))
}

pub(crate) fn group_kind_of(api_version: &str, kind: &str) -> String {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [_] | ["", _] => kind.to_owned(),
        [group, _] => format!("{group}/{kind}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_on_the_way_is_an_absence() {
        let object = json!({"a": null, "b": {"c": null}, "d": 1});
        assert_eq!(strict(&object, "a.b"), Ok(None));
        assert_eq!(strict(&object, "b.c"), Ok(Some(&Value::Null)));
        assert_eq!(strict(&object, "d.e"), Err(Malformed::at("d.e")));
        assert_eq!(strict_text(&object, "b.c"), Err(Malformed::at("b.c")));
        assert_eq!(text(&object, "d.e"), "");
    }

    #[test]
    fn groups_are_told_from_versions() {
        assert_eq!(
            group_kind(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})),
            "apps/Deployment"
        );
        assert_eq!(group_kind(&json!({"apiVersion": "v1", "kind": "Pod"})), "Pod");
        assert_eq!(group_kind(&json!({"apiVersion": "a/b/c", "kind": "Pod"})), "");
        assert_eq!(group_kind(&json!({"kind": "Pod"})), "Pod");
    }
}
