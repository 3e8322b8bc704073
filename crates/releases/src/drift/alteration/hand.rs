//! The field manager of each field of an object, as the API server records it.

use serde_json::{Map, Value};

/// The ends of controllers' manager names. Kubebuilder's default is `manager`.
const CONTROLLERS: [&str; 10] = [
    "apiserver",
    "autoscaler",
    "cainjector",
    "controller",
    "injector",
    "kubelet",
    "manager",
    "operator",
    "recommender",
    "scheduler",
];
/// The prefixes of the operator's own manager names: helm's, which restores also use.
const OURS: [&str; 2] = ["helm", "addon-operator"];

/// The kind of manager that owns a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hand<'a> {
    /// Helm or the operator.
    Ours,
    /// A controller, which is meant to set its fields.
    Controller,
    /// A person, by a tool with the given name.
    Somebody(&'a str),
}

/// A manager that owns a field or a part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) hand: Hand<'a>,
    /// The owned parts of the field; none for the whole field.
    fields: Option<&'a Map<String, Value>>,
}

/// All managers of an object.
pub(super) fn owners(object: &Value) -> Vec<Owner<'_>> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter_map(owner).collect()
}

fn owner(entry: &Value) -> Option<Owner<'_>> {
    let fields = entry.get("fieldsV1")?.as_object()?;
    Some(Owner {
        hand: hand(entry),
        fields: Some(fields),
    })
}

/// Whether an entry is about the status or the scale, not the object itself.
pub(super) fn is_aside(entry: &Value) -> bool {
    entry["subresource"].as_str().is_some_and(|part| !part.is_empty())
}

fn hand(entry: &Value) -> Hand<'_> {
    let name = entry["manager"].as_str().unwrap_or_default();
    let last = name.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next();
    let is_controller = last.is_some_and(|last| CONTROLLERS.contains(&last.to_ascii_lowercase().as_str()));
    if is_aside(entry) {
        Hand::Controller
    } else if OURS.iter().any(|ours| name.starts_with(ours)) {
        Hand::Ours
    } else if is_controller {
        Hand::Controller
    } else {
        Hand::Somebody(name)
    }
}

/// The owners of this field or of a part of it.
pub(super) fn inside<'a>(owners: &[Owner<'a>], key: &str) -> Vec<Owner<'a>> {
    let key = format!("f:{key}");
    owners
        .iter()
        .filter_map(|owner| owner.at(|fields| fields.get(&key)))
        .collect()
}

/// The owners of this list item or of a part of it.
pub(super) fn of_item<'a>(owners: &[Owner<'a>], item: &Value) -> Vec<Owner<'a>> {
    let is_meant = |word: &str| match word.split_once(':') {
        Some(("k", keys)) => serde_json::from_str::<Map<String, Value>>(keys)
            .is_ok_and(|keys| keys.iter().all(|(key, value)| item.get(key) == Some(value))),
        Some(("v", value)) => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item),
        _ => false,
    };
    let find = |fields: &'a Map<String, Value>| fields.iter().find(|(word, _)| is_meant(word)).map(|(_, inner)| inner);
    owners.iter().filter_map(|owner| owner.at(find)).collect()
}

/// The keys by which the list's items are identified; empty if there are none.
pub(super) fn keys_of_items(owners: &[Owner<'_>]) -> Vec<String> {
    let mut words = owners.iter().filter_map(|owner| owner.fields).flat_map(Map::keys);
    let keys = words.find_map(|word| serde_json::from_str::<Map<String, Value>>(word.strip_prefix("k:")?).ok());
    keys.into_iter()
        .flat_map(|keys| keys.into_iter().map(|(key, _)| key))
        .collect()
}

/// Whether the list is a set of plain values.
pub(super) fn is_set(owners: &[Owner<'_>]) -> bool {
    let mut words = owners.iter().filter_map(|owner| owner.fields).flat_map(Map::keys);
    words.any(|word| word.starts_with("v:"))
}

impl<'a> Owner<'a> {
    fn at(&self, find: impl Fn(&'a Map<String, Value>) -> Option<&'a Value>) -> Option<Self> {
        let Some(fields) = self.fields else { return Some(*self) };
        // An empty entry means that the field is owned as a whole, or that only its existence is owned. The operator's
        // own entry means the latter after another writer has taken over the rest.
        let fields = match (fields.is_empty(), self.hand) {
            (true, Hand::Ours) => return None,
            (true, Hand::Controller | Hand::Somebody(_)) => None,
            (false, _) => find(fields)?.as_object(),
        };
        Some(Self {
            hand: self.hand,
            fields,
        })
    }
}
