//! The two dialects of a v1 configuration. People write the first one, for hooks that answer `--config`. The library
//! that builds several hooks into one executable writes the second one.
//!
//! Must never hold more than the differences of the two dialects. The library's dialect is not written by people, so it
//! gives no warnings: empty fields count as absent, and unknown fields of a newer library are accepted, except fields
//! that would select fewer objects.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::binding::WatchEvent;
use super::fields::Fields;
use super::reader::Reader;
use super::settings::{self, Settings};
use super::v1::EVENTS;
use super::{HookKind, RateLimit, Stage, stages};

/// The group that all bindings of a hook in a batch are in.
const GROUP: &str = "main";

/// The writer of a configuration: a person or the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A person, for a hook with a file of its own.
    Single,
    /// A library, for one hook of a batch.
    Batch,
}

impl Dialect {
    /// Begins to read the root. A person must give at least one binding. A hook of a batch may have none.
    pub(super) fn begin(self, root: &mut Fields<'_>) {
        match self {
            Self::Single => root.require_count(2),
            Self::Batch => {
                // These fields have no effect. The name is read where the hook gets its name.
                root.flag("allowFailure", false);
                root.text("logLevel");
                if let Some(mut metadata) = root.object("metadata") {
                    metadata.text("name");
                    metadata.text("path");
                }
            }
        }
    }

    pub(super) fn stages(self, root: &mut Fields<'_>, kind: HookKind) -> BTreeMap<Stage, i64> {
        match self {
            Self::Single => stages(root, kind),
            Self::Batch => {
                let read = |&(key, stage): &(&'static str, Stage)| Some((stage, root.integer(key, 0..=i64::MAX)?));
                batch_stages(kind).iter().filter_map(read).collect()
            }
        }
    }

    pub(super) fn settings(self, root: &mut Fields<'_>, reader: &mut Reader) -> Settings {
        match self {
            Self::Single => settings::read(root, reader),
            Self::Batch => Settings {
                rate_limit: root.object("settings").and_then(batch_rate_limit),
                timeout: None,
            },
        }
    }

    /// The changes that make the hook run; `None` for all.
    pub(super) fn events(self, fields: &mut Fields<'_>) -> Option<Vec<WatchEvent>> {
        const KEY: &str = "executeHookOnEvent";
        match self {
            Self::Single => {
                // The deprecated list is always checked, and used only if the new one is absent.
                let deprecated = fields.words("watchEvent", 0, &EVENTS);
                fields.words(KEY, 0, &EVENTS).or(deprecated)
            }
            Self::Batch => (!fields.flag(KEY, true)).then(Vec::new),
        }
    }

    /// Whether contexts contain whole objects if the binding does not say so.
    pub(super) fn keeps_full_objects(self) -> bool {
        self == Self::Single
    }

    pub(super) fn group(self, fields: &mut Fields<'_>) -> Option<String> {
        match self {
            Self::Single => super::v1::group(fields),
            Self::Batch => Some(GROUP.to_owned()),
        }
    }

    /// The value to compare a field with. The library leaves an empty text out.
    pub(super) fn compared<'v>(self, fields: &mut Fields<'v>) -> &'v str {
        match self {
            Self::Single => fields.required_text("value"),
            Self::Batch => fields.text("value").unwrap_or_default(),
        }
    }

    pub(super) fn finish(self, fields: Fields<'_>) {
        match self {
            Self::Single => fields.finish(),
            Self::Batch => {}
        }
    }
}

/// The stages in the library's dialect. The library knows only modules. For a global hook, the library's stages around
/// a release mean the stages around all modules.
fn batch_stages(kind: HookKind) -> &'static [(&'static str, Stage)] {
    match kind {
        HookKind::Global => &[
            ("onStartup", Stage::OnStartup),
            ("beforeHelm", Stage::BeforeAll),
            ("afterHelm", Stage::AfterAll),
        ],
        HookKind::Module => &[
            ("onStartup", Stage::OnStartup),
            ("beforeHelm", Stage::BeforeHelm),
            ("afterHelm", Stage::AfterHelm),
            ("beforeDeleteHelm", Stage::BeforeDeleteHelm),
            ("afterDeleteHelm", Stage::AfterDeleteHelm),
        ],
        HookKind::Standalone => &[("onStartup", Stage::OnStartup)],
    }
}

/// The interval is a number of nanoseconds. An absent field means no limit.
fn batch_rate_limit(mut fields: Fields<'_>) -> Option<RateLimit> {
    let nanoseconds = fields.integer("executionMinInterval", 0..=i64::MAX);
    let burst = fields.integer("executionBurst", 0..=i64::from(u32::MAX));
    // The original reads this field, but it has no effect there.
    fields.flag("enableSchedulesOnStartup", false);
    let nanoseconds = u64::try_from(nanoseconds?).ok()?;
    Some(RateLimit {
        min_interval: Duration::from_nanos(nanoseconds),
        burst: u32::try_from(burst.unwrap_or_default()).ok()?,
    })
}

/// The document without empty fields: the library writes `null`, or an empty map or list, for a field that is not set.
/// Items of lists stay, because errors count them.
pub(super) fn without_nothing(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(without_nothing).collect()),
        Value::Object(fields) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), without_nothing(value)));
            Value::Object(kept.filter(|(_, value)| says_something(value)).collect())
        }
        other => other.clone(),
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
