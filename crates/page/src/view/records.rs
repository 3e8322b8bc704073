//! The views of what is read from the cluster on demand: the Events about a module, and the difference of two revisions.

use serde::Serialize;

use super::{Head, Label, Place, Tone};
use crate::facts::{Change, Comparison, Event, Operator};
use crate::text::{Moment, block, encoded, row};

/// The largest number of Events, and of changed objects, that are shown.
const MOST: usize = 200;
/// The largest number of fields that are shown of an object.
const MOST_FIELDS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventsView {
    pub head: Head,
    pub name: String,
    /// The path of the module, from the root.
    pub link: String,
    /// The newest first.
    pub events: Vec<EventRow>,
    /// The number of Events that are not shown.
    pub more: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventRow {
    /// The time of its last occurrence.
    pub last: Option<Moment>,
    /// The word of the cluster for it.
    pub reason: Label,
    pub object: String,
    pub message: String,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparisonView {
    pub head: Head,
    pub name: String,
    /// The path of the module, from the root.
    pub link: String,
    /// The number of the first revision.
    pub from: u32,
    /// The number of the second revision.
    pub to: u32,
    pub changes: Vec<ChangePart>,
    /// The number of objects that are not shown.
    pub more: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangePart {
    pub act: Label,
    pub object: String,
    pub fields: Vec<FieldRow>,
    /// The number of fields that are not shown.
    pub more: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldRow {
    pub path: String,
    /// The value before as JSON; empty if the field is new.
    pub before: String,
    /// The value after as JSON; empty if the field is gone.
    pub after: String,
}

impl EventsView {
    /// The view of a module's Events, the newest first.
    pub fn of(operator: &Operator, module: &str, events: &[Event]) -> Self {
        let shown = events.iter().take(MOST).map(|event| {
            let tone = if event.is_warning { Tone::Bad } else { Tone::Off };
            EventRow {
                last: Moment::at(event.last),
                reason: Label::new(tone, row(&event.reason)),
                object: row(&event.object),
                message: block(&event.message),
                count: event.count,
            }
        });
        Self {
            head: Head::of(operator, Place::Events, &format!("Events of {module}")),
            name: row(module),
            link: format!("modules/{}", encoded(module)),
            events: shown.collect(),
            more: events.len().saturating_sub(MOST),
        }
    }
}

impl ComparisonView {
    /// The view of the difference of two revisions of a module's release.
    pub fn of(operator: &Operator, module: &str, comparison: &Comparison) -> Self {
        let Comparison { from, to, changes } = comparison;
        let title = format!("{module}: revision {from} and revision {to}");
        Self {
            head: Head::of(operator, Place::Comparison, &title),
            name: row(module),
            link: format!("modules/{}", encoded(module)),
            from: *from,
            to: *to,
            changes: changes.iter().take(MOST).map(change).collect(),
            more: changes.len().saturating_sub(MOST),
        }
    }
}

fn change(change: &Change) -> ChangePart {
    let tone = match change.act.as_str() {
        "new" => Tone::Good,
        "gone" => Tone::Bad,
        _ => Tone::Busy,
    };
    let fields = change.fields.iter().take(MOST_FIELDS).map(|field| FieldRow {
        path: row(&field.path),
        before: row(&field.before),
        after: row(&field.after),
    });
    ChangePart {
        act: Label::new(tone, row(&change.act)),
        object: row(&change.object),
        fields: fields.collect(),
        more: change.fields.len().saturating_sub(MOST_FIELDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FieldChange;

    #[test]
    fn many_events_and_changes_are_counted() {
        let operator = Operator::default();
        let view = EventsView::of(&operator, "a/b", &vec![Event::default(); 250]);
        assert_eq!(
            (view.events.len(), view.more, view.link.as_str()),
            (200, 50, "modules/a%2Fb")
        );
        let wide = Change {
            fields: vec![FieldChange::default(); 50],
            ..Change::default()
        };
        let comparison = Comparison {
            changes: vec![wide; 201],
            ..Comparison::default()
        };
        let view = ComparisonView::of(&operator, "web", &comparison);
        let part = &view.changes[0];
        assert_eq!(
            (view.changes.len(), view.more, part.fields.len(), part.more),
            (200, 1, 40, 10)
        );
    }
}
