//! Events by the object that they are about, the newest first.
//!
//! Must never tell an event of an earlier object of the same name, or one that is older than events live.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::field::{text, value};

/// The time that an API server keeps events by default.
const LIFE: SignedDuration = SignedDuration::from_hours(1);

/// One event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// The path of the container in its pod, as in `spec.containers{web}`.
    field: &'a str,
    uid: &'a str,
    time: Option<Timestamp>,
}

impl<'a> Event<'a> {
    fn read(event: &'a Value, object: &'a Value) -> Self {
        let message = text(event, "message");
        Self {
            reason: text(event, "reason"),
            message: if message.is_empty() {
                text(event, "note")
            } else {
                message
            },
            field: text(object, "fieldPath"),
            uid: text(object, "uid"),
            time: time(event),
        }
    }

    /// The container that the event is about; empty if it names none.
    pub(super) fn container(&self) -> &'a str {
        let name = self.field.split_once('{').and_then(|(_, rest)| rest.strip_suffix('}'));
        name.unwrap_or_default()
    }
}

fn time(event: &Value) -> Option<Timestamp> {
    const PLACES: [&str; 6] = [
        "series.lastObservedTime",
        "lastTimestamp",
        "deprecatedLastTimestamp",
        "eventTime",
        "firstTimestamp",
        "metadata.creationTimestamp",
    ];
    PLACES.iter().find_map(|place| text(event, place).parse().ok())
}

/// All events, by kind and name.
#[derive(Debug)]
pub(super) struct Events<'a>(BTreeMap<&'a str, BTreeMap<&'a str, Vec<Event<'a>>>>);

impl<'a> Events<'a> {
    pub(super) fn new(events: &'a [Value], now: Timestamp) -> Self {
        let mut by_object: BTreeMap<_, BTreeMap<_, Vec<Event<'_>>>> = BTreeMap::new();
        for event in events {
            let Some(object) = value(event, "involvedObject").or_else(|| value(event, "regarding")) else {
                continue;
            };
            let read = Event::read(event, object);
            if read.time.is_some_and(|time| now.duration_since(time) > LIFE) {
                continue;
            }
            let of_kind = by_object.entry(text(object, "kind")).or_default();
            of_kind.entry(text(object, "name")).or_default().push(read);
        }
        for events in by_object.values_mut().flat_map(BTreeMap::values_mut) {
            events.sort_by_key(|event| Reverse(event.time));
        }
        Self(by_object)
    }

    /// The events about an object of the kind, the newest first.
    pub(super) fn of<'o>(&'o self, kind: &str, object: &'o Value) -> impl Iterator<Item = Event<'a>> + use<'a, 'o> {
        let uid = text(object, "metadata.uid");
        let all = self.named(kind, text(object, "metadata.name"));
        all.filter(move |event| uid.is_empty() || event.uid.is_empty() || event.uid == uid)
    }

    /// The events about the object of the kind and the name, the newest first.
    pub(super) fn named<'o>(&'o self, kind: &str, name: &str) -> impl Iterator<Item = Event<'a>> + use<'a, 'o> {
        let of_object = self.0.get(kind).and_then(|of_kind| of_kind.get(name));
        of_object.into_iter().flatten().copied()
    }
}
