//! Parses a file of metric operations: a stream of JSON objects. If an object cannot be read, the whole file is
//! refused, and the error names the line. A valid operation that cannot be applied is dropped with a warning.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::failure::{Class, Failure};

use super::name::{Group, LabelName, MetricName, NameError, shown};
use super::{Buckets, Change, Finite, Kind, Labels, NotGrowing, Operation, Sample};

/// The contents of a hook's metrics file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The operations to apply, in order.
    pub operations: Vec<Operation>,
    /// Operations that are dropped with a warning.
    pub dropped: Vec<Dropped>,
}

/// The place of an operation in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationPlace {
    /// The line on which the operation begins, from 1.
    pub line: usize,
    /// The number of the operation in the file, from 1.
    pub number: usize,
    /// The metric's name, if the operation has one.
    pub name: Option<String>,
}

impl fmt::Display for OperationPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: operation {}", self.line, self.number)?;
        match &self.name {
            Some(name) => write!(f, " on '{name}'"),
            None => Ok(()),
        }
    }
}

/// A dropped operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place} is dropped: {why}")]
pub struct Dropped {
    /// The position of the operation in its file.
    pub place: OperationPlace,
    /// The reason for which the operation is dropped.
    pub why: Useless,
}

/// The reason for which an operation is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Useless {
    /// The operation has no action.
    #[error("it has no action: one of add, set, observe and expire is needed")]
    NoAction,
    /// The operation's action is unknown.
    #[error("'{action}' is no action: one of add, set, observe and expire is needed")]
    UnknownAction {
        /// The unknown action, as the hook wrote it.
        action: String,
    },
    /// The operation has two shortcuts for actions.
    #[error("it has both 'add' and 'set'")]
    BothShortcuts,
    /// The operation's `name` is invalid.
    #[error("'name' cannot be used: {0}")]
    Name(NameError),
    /// A key of the operation's `labels` is invalid.
    #[error("'labels' cannot be used: {0}")]
    Label(NameError),
    /// The operation would decrease a counter.
    #[error("a counter cannot grow by {by}")]
    Negative {
        /// The amount.
        by: Finite,
    },
}

/// The error for a file that cannot be used.
#[derive(Debug, Error)]
pub enum BadMetrics {
    /// The file is no stream of JSON documents.
    #[error("got bad metrics")]
    Syntax(#[source] serde_json::Error),
    /// An operation is invalid.
    #[error("got bad metrics: {place}")]
    Operation {
        /// The position of the operation in its file.
        place: OperationPlace,
        /// The operation's mistake.
        #[source]
        problem: Problem,
    },
}

/// The mistake of an invalid operation.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// The document is no object.
    #[error("it is {found}, not an object")]
    NoObject {
        /// The type of the document.
        found: &'static str,
    },
    /// A field has a value of the wrong type.
    #[error("'{field}' is {found}, not {wanted}")]
    Type {
        /// The field.
        field: String,
        /// The type of the field's value.
        found: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
    /// A required field is absent.
    #[error("'{field}' is required for '{action}'")]
    Missing {
        /// The field.
        field: &'static str,
        /// The action that needs the field.
        action: &'static str,
    },
    /// A field has a NUL, which Prometheus takes for the end of the page.
    #[error("'{field}' holds a NUL, which Prometheus cannot read")]
    Nul {
        /// The field.
        field: String,
    },
    /// The label `le` is reserved for the bounds of a histogram.
    #[error("'labels' cannot be used: in a histogram 'le' stands for the bucket")]
    BucketLabel,
    /// The bounds of the histogram do not grow.
    #[error("'buckets' cannot be used")]
    Buckets(#[source] NotGrowing),
}

impl From<BadMetrics> for Failure {
    fn from(bad: BadMetrics) -> Self {
        let hint = match bad {
            BadMetrics::Syntax(_)
            | BadMetrics::Operation {
                problem: Problem::NoObject { .. },
                ..
            } => r#"the file holds JSON objects one after the other, such as {"name": "backups_total", "add": 1}"#,
            BadMetrics::Operation { .. } => "docs/guides/hooks.md lists the fields of a metric operation",
        };
        Self::of(Class::HookFailed, &bad).hint(hint)
    }
}

/// Reads a file of operations.
pub fn parse(text: &str) -> Result<Parsed, BadMetrics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parsed = Parsed::default();
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut lines = Lines { text, line: 1, seen: 0 };
    for number in 1.. {
        let line = lines.of_next(documents.byte_offset());
        let Some(document) = documents.next() else { break };
        let mut place = OperationPlace {
            line,
            number,
            name: None,
        };
        match read(document.map_err(BadMetrics::Syntax)?, &mut place) {
            Ok(Ok(operation)) => parsed.operations.push(operation),
            Ok(Err(why)) => parsed.dropped.push(Dropped { place, why }),
            Err(problem) => return Err(BadMetrics::Operation { place, problem }),
        }
    }
    Ok(parsed)
}

/// Counts the lines while the parser goes through the text.
struct Lines<'text> {
    text: &'text str,
    line: usize,
    seen: usize,
}

impl Lines<'_> {
    /// The line on which the next document after this place begins.
    fn of_next(&mut self, from: usize) -> usize {
        let rest = &self.text[from..];
        let start = from + (rest.len() - rest.trim_start().len());
        self.line += self.text[self.seen..start].matches('\n').count();
        self.seen = start;
        self.line
    }
}

/// Reads one operation, or the reason for which it is dropped.
fn read(document: Value, place: &mut OperationPlace) -> Result<Result<Operation, Useless>, Problem> {
    let written = match document {
        Value::Object(fields) => {
            let name = field(&fields, "name").and_then(Value::as_str);
            place.name = name.map(shown);
            Written::read(&fields)?
        }
        // The original reads `null` as an object without fields.
        Value::Null => Written::default(),
        other => return Err(Problem::NoObject { found: kind_of(&other) }),
    };
    match written.action() {
        Ok(action) => written.operation(&action),
        Err(useless) => Ok(Err(useless)),
    }
}

/// The known fields of an operation, with checked types.
#[derive(Default)]
struct Written {
    name: Option<String>,
    group: Option<Group>,
    action: Option<String>,
    value: Option<Finite>,
    add: Option<Finite>,
    set: Option<Finite>,
    buckets: Option<Vec<Finite>>,
    labels: Vec<(String, String)>,
}

/// The action of an operation, with its value.
enum Action {
    Expire,
    /// A sample for a metric of this kind. The value is present if this form of the action has one.
    Write(Kind, Option<Finite>),
}

impl Written {
    fn read(fields: &Map<String, Value>) -> Result<Self, Problem> {
        let group = text(fields, "group")?;
        Ok(Self {
            name: text(fields, "name")?.filter(|name| !name.is_empty()),
            group: group.as_deref().and_then(Group::named),
            action: text(fields, "action")?,
            value: number(fields, "value")?,
            add: number(fields, "add")?,
            set: number(fields, "set")?,
            buckets: list(fields, "buckets")?,
            labels: texts(fields, "labels")?,
        })
    }

    /// The action of the operation. A shortcut takes precedence over `action` and `value`.
    fn action(&self) -> Result<Action, Useless> {
        let (kind, value) = match (self.add, self.set, self.action.as_deref()) {
            (Some(_), Some(_), _) => return Err(Useless::BothShortcuts),
            (Some(by), None, _) => (Kind::Counter, Some(by)),
            (None, Some(to), _) => (Kind::Gauge, Some(to)),
            (None, None, Some("add")) => (Kind::Counter, self.value),
            (None, None, Some("set")) => (Kind::Gauge, self.value),
            (None, None, Some("observe")) => (Kind::Histogram, self.value),
            (None, None, Some("expire")) => return Ok(Action::Expire),
            (None, None, None | Some("")) => return Err(Useless::NoAction),
            (None, None, Some(unknown)) => {
                let action = shown(unknown);
                return Err(Useless::UnknownAction { action });
            }
        };
        match value {
            Some(by) if kind == Kind::Counter && by.get() < 0.0 => Err(Useless::Negative { by }),
            value => Ok(Action::Write(kind, value)),
        }
    }

    /// The operation. As in the original, an operation whose name no page can show is dropped.
    fn operation(self, action: &Action) -> Result<Result<Operation, Useless>, Problem> {
        let group = self.group.clone();
        let change = match action {
            Action::Expire => Ok(Change::Expire),
            Action::Write(kind, value) => self.write(*kind, *value)?,
        };
        Ok(change.map(|change| Operation { group, change }))
    }

    fn write(self, kind: Kind, value: Option<Finite>) -> Result<Result<Change, Useless>, Problem> {
        let action = match kind {
            Kind::Counter => "add",
            Kind::Gauge => "set",
            Kind::Histogram => "observe",
        };
        let missing = |field| Problem::Missing { field, action };
        let name = self.name.ok_or_else(|| missing("name"))?;
        let value = value.ok_or_else(|| missing("value"))?;
        let sample = match kind {
            Kind::Counter => Sample::Add(value),
            Kind::Gauge => Sample::Set(value),
            Kind::Histogram => Sample::Observe {
                value,
                buckets: buckets(self.buckets.ok_or_else(|| missing("buckets"))?, &self.labels)?,
            },
        };
        let names = MetricName::parse(&name).map_err(Useless::Name);
        Ok(names.and_then(|name| {
            let labels = labels(self.labels)?;
            Ok(Change::Write { name, labels, sample })
        }))
    }
}

fn labels(written: Vec<(String, String)>) -> Result<Labels, Useless> {
    let named = written
        .into_iter()
        .map(|(name, value)| Ok((LabelName::parse(&name).map_err(Useless::Label)?, value)));
    named.collect()
}

fn buckets(bounds: Vec<Finite>, labels: &[(String, String)]) -> Result<Buckets, Problem> {
    if labels.iter().any(|(name, _)| name == "le") {
        return Err(Problem::BucketLabel);
    }
    Buckets::try_from(bounds).map_err(Problem::Buckets)
}

/// The value of a field; `None` if it is absent or `null`. As in the original, the case of keys does not matter.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let spelled = || fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    let value = fields.get(name).or_else(|| spelled().map(|(_, value)| value));
    value.filter(|value| !value.is_null())
}

fn mistyped(field: impl Into<String>, found: &Value, wanted: &'static str) -> Problem {
    Problem::Type {
        field: field.into(),
        found: kind_of(found),
        wanted,
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match field(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mistyped(name, other, "a string")),
    }
}

fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<Finite>, Problem> {
    field(fields, name)
        .map(|value| finite(value).ok_or_else(|| mistyped(name, value, "a number")))
        .transpose()
}

fn finite(value: &Value) -> Option<Finite> {
    Finite::try_from(value.as_f64()?).ok()
}

fn list(fields: &Map<String, Value>, name: &str) -> Result<Option<Vec<Finite>>, Problem> {
    match field(fields, name) {
        None => Ok(None),
        Some(Value::Array(items)) => {
            let numbers = items.iter().enumerate().map(|(index, item)| {
                finite(item).ok_or_else(|| mistyped(format!("{name}[{index}]"), item, "a number"))
            });
            numbers.collect::<Result<_, _>>().map(Some)
        }
        Some(other) => Err(mistyped(name, other, "a list of numbers")),
    }
}

fn texts(fields: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, Problem> {
    match field(fields, name) {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => {
            let pairs = map.iter().map(|(key, value)| match value {
                Value::String(text) if text.contains('\0') => Err(Problem::Nul {
                    field: format!("{name}.{}", shown(key)),
                }),
                Value::String(text) => Ok((key.clone(), text.clone())),
                // The original reads a `null` label as an empty text.
                Value::Null => Ok((key.clone(), String::new())),
                other => Err(mistyped(format!("{name}.{}", shown(key)), other, "a string")),
            });
            pairs.collect()
        }
        Some(other) => Err(mistyped(name, other, "a map of strings")),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
