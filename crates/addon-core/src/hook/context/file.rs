//! Writes the file in which a hook reads its contexts.
//!
//! Documents are copied into the file in the form in which they are kept. Must never hold the whole file in memory: a
//! first run may have tens of thousands of objects.

use std::collections::BTreeMap;
use std::io;

use names::BindingName;
use serde::{Serialize, Serializer};
use serde_json::ser::{Formatter, Serializer as JsonSerializer};

use super::{Ask, BindingContext, Snapshots, Told};
use crate::hook::config::{ConfigVersion, Stage, WatchEvent};
use crate::object::ObjectView;
use crate::object::json::Json;

/// Writes the contexts as a list on one line, with sorted keys.
///
/// Characters with a meaning in HTML are escaped. They occur only inside of strings.
pub fn write_file(
    out: &mut impl io::Write,
    contexts: &[BindingContext],
    version: ConfigVersion,
    snapshots: &Snapshots,
) -> io::Result<()> {
    let mut serializer = JsonSerializer::with_formatter(&mut *out, HtmlSafe);
    serializer.collect_seq(contexts.iter().map(|context| fields(context, version, snapshots)))?;
    out.write_all(b"\n")
}

/// One field of a context.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Text(&'a str),
    Document(&'a Json),
    Event(WatchEvent),
    Objects(&'a [ObjectView]),
    Snapshots(BTreeMap<&'a BindingName, &'a [ObjectView]>),
}

type Fields<'a> = BTreeMap<&'static str, Field<'a>>;

fn fields<'a>(context: &'a BindingContext, version: ConfigVersion, snapshots: &'a Snapshots) -> Fields<'a> {
    let mut fields = Fields::from([("binding", Field::Text(context.binding()))]);
    match version {
        ConfigVersion::V0 => fields.extend(names(context)),
        ConfigVersion::V1 => add(&mut fields, context, snapshots),
    }
    fields
}

fn add<'a>(fields: &mut Fields<'a>, context: &'a BindingContext, snapshots: &'a Snapshots) {
    let told = match context {
        BindingContext::Stage {
            stage: Stage::OnStartup,
            ..
        } => return,
        BindingContext::Stage { snapshots: names, .. } => {
            fields.insert("snapshots", views(names, snapshots));
            return;
        }
        BindingContext::Schedule(told)
        | BindingContext::Synchronization(told)
        | BindingContext::Event { told, .. }
        | BindingContext::Review { told, .. } => told,
    };
    if !told.snapshots.is_empty() {
        fields.insert("snapshots", views(&told.snapshots, snapshots));
    }
    if let Some(group) = context.group() {
        fields.insert("type", Field::Text("Group"));
        fields.insert("groupName", Field::Text(group));
        return;
    }
    add_own(fields, context, told, snapshots);
}

/// Adds the fields that only a context without a group has.
fn add_own<'a>(fields: &mut Fields<'a>, context: &'a BindingContext, told: &Told, snapshots: &'a Snapshots) {
    let kind = match context {
        BindingContext::Stage { .. } => return,
        BindingContext::Schedule(_) => "Schedule",
        BindingContext::Synchronization(_) => {
            fields.insert("objects", Field::Objects(view_list(&told.binding, snapshots)));
            "Synchronization"
        }
        BindingContext::Event { event, object, .. } => {
            fields.insert("watchEvent", Field::Event(*event));
            let object_field = object.object.iter().map(|object| ("object", Field::Document(object)));
            let result = object.filter_result.iter();
            fields.extend(object_field.chain(result.map(|result| ("filterResult", Field::Document(result)))));
            "Event"
        }
        BindingContext::Review { ask, review, .. } => {
            fields.insert("review", Field::Document(review));
            match ask {
                Ask::Validating => "Validating",
                Ask::Mutating => "Mutating",
                Ask::Conversion { from, to } => {
                    fields.insert("fromVersion", Field::Text(from));
                    fields.insert("toVersion", Field::Text(to));
                    "Conversion"
                }
            }
        }
    };
    fields.insert("type", Field::Text(kind));
}

/// The named snapshots, empty ones included.
fn views<'a>(names: &'a [BindingName], snapshots: &'a Snapshots) -> Field<'a> {
    let views = names.iter().map(|name| (name, view_list(name, snapshots)));
    Field::Snapshots(views.collect())
}

fn view_list<'a>(name: &BindingName, snapshots: &'a Snapshots) -> &'a [ObjectView] {
    snapshots.get(name).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of a context in the v0 format, which has only the names of the object.
fn names(context: &BindingContext) -> Fields<'_> {
    let BindingContext::Event { event, name, .. } = context else {
        return Fields::new();
    };
    let event = match event {
        WatchEvent::Added => "add",
        WatchEvent::Modified => "update",
        WatchEvent::Deleted => "delete",
    };
    Fields::from([
        ("resourceEvent", Field::Text(event)),
        ("resourceNamespace", Field::Text(&name.namespace)),
        ("resourceKind", Field::Text(&name.kind)),
        ("resourceName", Field::Text(&name.name)),
    ])
}

/// Writes compact JSON, in which characters with a meaning in HTML are escaped.
struct HtmlSafe;

impl HtmlSafe {
    fn write<W: ?Sized + io::Write>(writer: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, after) = rest.split_at(at);
            let mut chars = after.chars();
            let found = chars.next().map_or(0, u32::from);
            write!(writer, "{before}\\u{found:04x}")?;
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        Self::write(writer, fragment)
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        Self::write(writer, fragment)
    }
}
