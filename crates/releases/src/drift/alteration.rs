//! The fields of an object that another writer has changed, and the patch that restores them.
//!
//! A live object always differs from its manifest: the API server adds and rewrites fields, webhooks add some, and
//! controllers set some. `managedFields` name the writer of each field, and only fields that another writer has
//! overwritten count. A field that an autoscaler or a controller has set must never count.

use std::fmt::Write as _;

use addon_core::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

mod hand;

use hand::{Hand, Owner};

/// The keys of `metadata` that are compared.
const METADATA: [&str; 2] = ["labels", "annotations"];
/// The top-level fields that are not compared as a whole.
const PASSED_OVER: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// A field that differs from the manifest because another writer has set or removed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Alteration {
    place: Vec<Part>,
    wanted: Value,
    /// The name of the writer's field manager, if the object has one.
    pub by: Option<String>,
}

/// A key or an index in the path of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Key(String),
    Item(usize),
    /// An item that the list of the object lacks.
    New,
}

impl Alteration {
    /// The path of the field for people.
    pub fn field(&self) -> String {
        let mut text = String::new();
        for part in &self.place {
            match part {
                Part::Key(key) if text.is_empty() => text.push_str(key),
                Part::Key(key) => {
                    text.push('.');
                    text.push_str(key);
                }
                Part::Item(at) => {
                    let _ = write!(text, "[{at}]");
                }
                Part::New => text.push_str("[]"),
            }
        }
        text
    }
}

/// A digest of the object's managed fields. It changes with every write, even one of the same values. Writes of the
/// status or the scale do not count.
pub(super) fn fingerprint(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let counting = entries.into_iter().flatten().filter(|entry| !hand::is_aside(entry));
    json!(Digest::of(&counting.cloned().collect()).to_string())
}

/// All fields of the manifest that other writers have altered, in the order of the manifest.
pub fn alterations_of(manifest: &Value, live: &Value) -> Vec<Alteration> {
    let owners = hand::owners(live);
    let mut search = Search::default();
    let manifest = with_data(manifest);
    for (key, wanted) in manifest.as_object().into_iter().flatten() {
        if !PASSED_OVER.contains(&key.as_str()) {
            search.enter(key, wanted, live.get(key), &hand::inside(&owners, key));
        }
    }
    let of_metadata = hand::inside(&owners, "metadata");
    search.place.push(Part::Key("metadata".to_owned()));
    for key in METADATA {
        let (wanted, live) = (&manifest["metadata"][key], live["metadata"].get(key));
        search.enter(key, wanted, live, &hand::inside(&of_metadata, key));
    }
    search.found
}

/// A merge patch that restores these fields, for the object as it was read.
pub fn remedy(live: &Value, alterations: &[Alteration]) -> Value {
    let mut restored = live.clone();
    for Alteration { place, wanted, .. } in alterations {
        set(&mut restored, place, wanted);
    }
    let mut patch = difference(live, &restored);
    patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    patch
}

/// The manifest of a Secret with `stringData` moved to `data`, where the API server keeps it.
fn with_data(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    let is_secret = manifest["kind"] == "Secret" && manifest["apiVersion"] == "v1";
    let Some(object) = manifest.as_object_mut().filter(|_| is_secret) else {
        return manifest;
    };
    if let Some(Value::Object(texts)) = object.remove("stringData") {
        let data = object.entry("data").or_insert_with(|| json!({}));
        for (key, text) in texts {
            if let (Some(text), Some(data)) = (text.as_str(), data.as_object_mut()) {
                data.insert(key, json!(STANDARD.encode(text)));
            }
        }
    }
    manifest
}

#[derive(Default)]
struct Search {
    place: Vec<Part>,
    found: Vec<Alteration>,
}

impl Search {
    fn enter(&mut self, key: &str, wanted: &Value, live: Option<&Value>, owners: &[Owner<'_>]) {
        self.place.push(Part::Key(key.to_owned()));
        self.compare(wanted, live, owners);
        self.place.pop();
    }

    fn compare(&mut self, wanted: &Value, live: Option<&Value>, owners: &[Owner<'_>]) {
        match (wanted, live) {
            (Value::Null, _) => {}
            (Value::Object(wanted), Some(Value::Object(live))) => {
                for (key, wanted) in wanted {
                    self.enter(key, wanted, live.get(key), &hand::inside(owners, key));
                }
            }
            (Value::Array(wanted), Some(Value::Array(live))) => self.compare_lists(wanted, live, owners),
            (wanted, None | Some(Value::Null)) if says_nothing(wanted) => {}
            (wanted, live) if live.is_some_and(|live| is_same(wanted, live)) => {}
            (wanted, live) => self.differs(wanted, live, owners),
        }
    }

    fn compare_lists(&mut self, wanted: &[Value], live: &[Value], owners: &[Owner<'_>]) {
        let keys = hand::keys_of_items(owners);
        if keys.is_empty() && !hand::is_set(owners) {
            let is_same =
                wanted.len() == live.len() && wanted.iter().zip(live).all(|(one, other)| is_within(one, other));
            if !is_same {
                self.differs(&json!(wanted), Some(&json!(live)), owners);
            }
            return;
        }
        let is_meant = |wanted: &Value, live: &Value| {
            if keys.is_empty() {
                return wanted == live;
            }
            keys.iter()
                .all(|key| wanted.get(key).is_none_or(|wanted| live.get(key) == Some(wanted)))
        };
        for wanted in wanted {
            if let Some(at) = live.iter().position(|live| is_meant(wanted, live)) {
                self.place.push(Part::Item(at));
                self.compare(wanted, live.get(at), &hand::of_item(owners, &live[at]));
            } else {
                self.place.push(Part::New);
                self.differs(wanted, None, &[]);
            }
            self.place.pop();
        }
    }

    /// Whether another writer has set or removed a field. A removed field has no manager.
    fn differs(&mut self, wanted: &Value, live: Option<&Value>, owners: &[Owner<'_>]) {
        let hands = || owners.iter().map(|owner| owner.hand);
        let stays = hands().any(|hand| hand == Hand::Controller);
        let somebody = hands().find_map(|hand| match hand {
            Hand::Somebody(name) => Some(name.to_owned()),
            Hand::Ours | Hand::Controller => None,
        });
        let is_taken_away = owners.is_empty() && live.is_none_or(Value::is_null);
        if !stays && (somebody.is_some() || is_taken_away) {
            self.found.push(Alteration {
                place: self.place.clone(),
                wanted: wanted.clone(),
                by: somebody,
            });
        }
    }
}

/// Whether a value is empty, so that the API server may leave it out.
fn says_nothing(wanted: &Value) -> bool {
    match wanted {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_same(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Number(wanted), Value::Number(live)) => wanted == live || wanted.as_f64() == live.as_f64(),
        _ => wanted == live,
    }
}

/// Whether the live value contains everything that is wanted. It may have additional defaults.
fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, wanted)| {
            live.get(key)
                .map_or_else(|| says_nothing(wanted), |live| is_within(wanted, live))
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(one, other)| is_within(one, other))
        }
        _ => is_same(wanted, live),
    }
}

fn set(object: &mut Value, place: &[Part], wanted: &Value) {
    let Some((part, rest)) = place.split_first() else {
        *object = wanted.clone();
        return;
    };
    let inner = match part {
        Part::Key(key) => {
            if !object.is_object() {
                *object = json!({});
            }
            Some(&mut object[key])
        }
        Part::Item(at) => object.get_mut(*at),
        Part::New => object.as_array_mut().and_then(|items| {
            items.push(Value::Null);
            items.last_mut()
        }),
    };
    if let Some(inner) = inner {
        set(inner, rest, wanted);
    }
}

/// The merge patch between two objects; `to` has only additional or changed keys.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let differing = to.iter().filter(|(key, to)| from.get(*key) != Some(to));
    let patch: Map<String, Value> = differing
        .map(|(key, to)| (key.clone(), difference(from.get(key).unwrap_or(&Value::Null), to)))
        .collect();
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
