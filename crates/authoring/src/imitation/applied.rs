//! Server-side apply: fields with owners, as far as it can be imitated without schemas.
//!
//! Only fields that were applied have owners. How a list is merged depends on a schema. So an apply is refused if the
//! existing list differs from the new one, and the manager has not set it itself. Must never merge lists by guessing.

use serde_json::{Map, Value, json};

use super::answers::{Answer, Path, failure};
use super::stored::{Owner, Stored};

/// A field: the keys that lead to it, and its value. A list is one field.
type Field = (Vec<String>, Value);

impl Stored {
    /// Sets the fields of the body, and removes those that the manager has applied before and leaves out now.
    pub(super) fn apply(&mut self, path: &Path, manager: &str, force: bool, body: &Value) -> Answer {
        let name = &path.place.name;
        let found = self.objects.get(&path.place).map(|object| path.shown(object));
        let is_new = found.is_none();
        if is_new {
            if path.subresource.is_some() {
                return path.missing();
            }
            self.applied.remove(&path.place);
        }
        let mut object = found.unwrap_or_else(|| json!({"kind": body["kind"], "metadata": {}}));
        let wanted = wanted(body, path.subresource.is_some());
        let fields = fields(&wanted);
        let owners = self.applied.entry(path.place.clone()).or_default();
        let owner = (manager.to_owned(), path.subresource.is_some());
        let own = owners.remove(&owner).unwrap_or_default();
        let conflicts: Vec<(Owner, Vec<String>)> = owners
            .iter()
            .flat_map(|(other, theirs)| {
                let differs = |(keys, value): &&Field| at(theirs, keys).is_some_and(|their| their != value);
                fields
                    .iter()
                    .filter(differs)
                    .map(|(keys, _)| (other.clone(), keys.clone()))
            })
            .collect();
        let list = fields.iter().find(|(keys, value)| {
            let existing = at(&object, keys).filter(|existing| existing.is_array());
            value.is_array() && existing.is_some_and(|existing| existing != value && at(&own, keys) != Some(existing))
        });
        if !conflicts.is_empty() && !force {
            owners.insert(owner, own);
            return conflict(name, &conflicts);
        }
        if let Some((keys, _)) = list {
            let message = format!(
                "a cluster of tests does not merge the list {} with the existing one",
                shown(keys)
            );
            owners.insert(owner, own);
            return failure(422, "Invalid", &message, name);
        }
        for (other, keys) in &conflicts {
            if let Some(theirs) = owners.get_mut(other) {
                remove(theirs, keys);
            }
        }
        let is_owned = |keys: &[String]| owners.values().any(|theirs| at(theirs, keys).is_some());
        for (keys, _) in self::fields(&own) {
            if at(&wanted, &keys).is_none() && !is_owned(&keys) {
                remove(&mut object, &keys);
            }
        }
        for (keys, value) in fields {
            set(&mut object, &keys, value);
        }
        owners.insert(owner, wanted);
        (if is_new { 201 } else { 200 }, self.store(path, object))
    }
}

/// The fields of a body that have an owner: all but those that name the object. With `of_status` only the status.
fn wanted(body: &Value, of_status: bool) -> Value {
    let mut wanted = body.clone();
    for keys in [
        &["apiVersion"][..],
        &["kind"],
        &["metadata", "name"],
        &["metadata", "namespace"],
    ] {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        remove(&mut wanted, &keys);
    }
    if let Some(map) = wanted.as_object_mut() {
        map.retain(|key, value| (key == "status") == of_status && !(key == "metadata" && *value == json!({})));
    }
    wanted
}

fn fields(value: &Value) -> Vec<Field> {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let below = |(key, value): (&String, &Value)| {
                let mut below = fields(value);
                for (keys, _) in &mut below {
                    keys.insert(0, key.clone());
                }
                below
            };
            map.iter().flat_map(below).collect()
        }
        // Nothing at all.
        Value::Null => Vec::new(),
        other => vec![(Vec::new(), other.clone())],
    }
}

fn at<'a>(value: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

fn remove(value: &mut Value, keys: &[String]) {
    let Some((last, before)) = keys.split_last() else {
        return;
    };
    let parent = before.iter().try_fold(value, |value, key| value.get_mut(key));
    if let Some(map) = parent.and_then(Value::as_object_mut) {
        map.remove(last);
    }
}

fn set(value: &mut Value, keys: &[String], new: Value) {
    let mut place = value;
    for key in keys {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[key.as_str()];
    }
    *place = new;
}

fn shown(keys: &[String]) -> String {
    keys.iter().map(|key| format!(".{key}")).collect::<Vec<_>>().concat()
}

/// The answer of the API server to an application that other managers' fields forbid.
fn conflict(name: &str, conflicts: &[(Owner, Vec<String>)]) -> Answer {
    let each = conflicts
        .iter()
        .map(|((manager, _), keys)| format!("conflict with \"{manager}\": {}", shown(keys)));
    let plural = if conflicts.len() == 1 { "conflict" } else { "conflicts" };
    let each: Vec<String> = each.collect();
    let message = format!("Apply failed with {} {plural}: {}", conflicts.len(), each.join(", "));
    let (code, mut status) = failure(409, "Conflict", &message, name);
    let causes = conflicts.iter().map(|((manager, _), keys)| {
        json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with \"{manager}\""),
            "field": shown(keys),
        })
    });
    status["details"]["causes"] = causes.collect();
    (code, status)
}
