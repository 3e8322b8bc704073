//! The objects of a release, by kind and namespace. Those that do not work come first.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Label, Tone};
use crate::facts::Object;
use crate::text::{block, row};

/// The largest number of objects that are shown.
const MOST: usize = 300;

/// The objects of a kind in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// The kind, and the namespace if there is one.
    pub title: String,
    /// The number of its objects that do not work.
    pub ailing: usize,
    pub objects: Vec<Thing>,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thing {
    pub name: String,
    pub health: Label,
    /// The sentence about it.
    pub sentence: String,
}

/// The objects by kind and namespace, those that do not work first, and the number of those that are not shown.
pub(super) fn kinds(objects: &[Object]) -> (Vec<Kind>, usize) {
    let mut sorted: Vec<&Object> = objects.iter().collect();
    sorted.sort_by_key(|object| (rank(object), &object.kind, &object.namespace, &object.name));
    let more = sorted.len().saturating_sub(MOST);
    sorted.truncate(MOST);
    let mut by: BTreeMap<(u8, &str, &str), Kind> = BTreeMap::new();
    let worst = |kind: &str, namespace: &str| {
        let same = objects
            .iter()
            .filter(|other| other.kind == kind && other.namespace == namespace);
        same.map(rank).min().unwrap_or(u8::MAX)
    };
    for object in sorted {
        let Object {
            kind,
            namespace,
            name,
            health,
            sentence,
        } = object;
        let place = (worst(kind, namespace), kind.as_str(), namespace.as_str());
        let group = by.entry(place).or_insert_with(|| Kind {
            title: row(&if namespace.is_empty() {
                kind.clone()
            } else {
                format!("{kind} in {namespace}")
            }),
            ailing: 0,
            objects: Vec::new(),
        });
        let tone = match health.as_str() {
            "Healthy" => Tone::Good,
            "RollingOut" => Tone::Busy,
            "Failed" => Tone::Bad,
            _ => Tone::Off,
        };
        group.ailing += usize::from(tone == Tone::Bad);
        group.objects.push(Thing {
            name: row(name),
            health: Label::new(tone, row(health)),
            sentence: block(sentence),
        });
    }
    (by.into_values().collect(), more)
}

fn rank(object: &Object) -> u8 {
    match object.health.as_str() {
        "Failed" => 0,
        "RollingOut" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_do_not_work_come_first() {
        let object = |kind: &str, name: &str, health: &str| Object {
            kind: kind.to_owned(),
            name: name.to_owned(),
            health: health.to_owned(),
            ..Object::default()
        };
        let mut all = vec![
            object("ConfigMap", "a", "Healthy"),
            object("Deployment", "b", "Healthy"),
            object("Deployment", "c", "Failed"),
            object("Service", "d", "RollingOut"),
        ];
        let (shown, more) = kinds(&all);
        let titles: Vec<&str> = shown.iter().map(|kind| kind.title.as_str()).collect();
        assert_eq!(
            (titles.as_slice(), more),
            (["Deployment", "Service", "ConfigMap"].as_slice(), 0)
        );
        let names: Vec<&str> = shown[0].objects.iter().map(|thing| thing.name.as_str()).collect();
        assert_eq!((names.as_slice(), shown[0].ailing), (["c", "b"].as_slice(), 1));
        all.extend((0..MOST).map(|number| object("Secret", &number.to_string(), "Healthy")));
        assert_eq!(kinds(&all).1, 4);
    }
}
