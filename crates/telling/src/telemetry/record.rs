//! A record: its fields from the spans and the event, and its form as a line. Knows no output and no clock.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write};

use jiff::Timestamp;
use report::Chain;
use report::secrets::Secrets;
use serde_json::{Map, Value};
use settings::{LogFormat, Timestamps};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

use super::{LOGGER, MEMBERS, OURS};

/// The names of the record's own fields. Another field with one of these names would make the line ambiguous.
const RESERVED: [&str; 5] = ["level", "logger", "msg", "source", "time"];
const RESET: &str = "\u{1b}[0m";

/// Fields by name; a later one replaces an earlier one.
#[derive(Debug, Default)]
pub(super) struct Fields {
    message: String,
    logger: Option<String>,
    values: BTreeMap<String, Value>,
}

impl Fields {
    pub(super) fn extend(&mut self, outer: &Self) {
        self.values
            .extend(outer.values.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    fn insert(&mut self, name: &str, value: Value) {
        let name = if RESERVED.contains(&name) {
            format!("{name}_")
        } else {
            name.to_owned()
        };
        self.values.insert(name, value);
    }

    fn insert_members(&mut self, text: &str) {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(members) => members.into_iter().for_each(|(name, value)| self.insert(&name, value)),
            Err(_) => self.insert(MEMBERS, text.into()),
        }
    }

    /// Masks secrets in all values; names stay.
    pub(super) fn mask(&mut self, secrets: &Secrets) {
        if let Cow::Owned(masked) = secrets.masked(&self.message) {
            self.message = masked;
        }
        self.values.values_mut().for_each(|value| secrets.mask(value));
    }

    /// The whole line with its line break.
    pub(super) fn into_line(self, format: LogFormat, metadata: &Metadata<'_>, time: Timestamp) -> String {
        match format {
            LogFormat::Json => self.into_json(metadata, time),
            LogFormat::Text(times) => self.into_text(metadata, shown(times, time), ""),
            LogFormat::Color(times) => self.into_text(metadata, shown(times, time), color(*metadata.level())),
        }
    }

    fn into_json(self, metadata: &Metadata<'_>, time: Timestamp) -> String {
        let mut line = String::with_capacity(256);
        line.push('{');
        push_member(&mut line, "level", &level_name(*metadata.level()).into());
        let logger = self.logger.unwrap_or_else(|| logger_name(metadata.target()));
        push_member(&mut line, "logger", &logger.into());
        push_member(&mut line, "msg", &self.message.into());
        if *metadata.level() >= Level::DEBUG
            && let (Some(file), Some(at)) = (metadata.file(), metadata.line())
        {
            push_member(&mut line, "source", &format!("{file}:{at}").into());
        }
        for (name, value) in &self.values {
            push_member(&mut line, name, value);
        }
        push_member(&mut line, "time", &rfc3339(time).into());
        line.push_str("}\n");
        line
    }

    fn into_text(self, metadata: &Metadata<'_>, time: Option<Timestamp>, color: &str) -> String {
        let mut line = String::with_capacity(256);
        if let Some(time) = time {
            line.push_str(&rfc3339(time));
            line.push(' ');
        }
        let level = level_name(*metadata.level()).to_ascii_uppercase();
        let reset = if color.is_empty() { "" } else { RESET };
        // Text of a hook must not begin a new line.
        let message = self.message.replace('\n', "\\n").replace('\r', "\\r");
        write!(line, "{color}{level:<5}{reset} {message}").expect("writing to a text cannot fail");
        for (name, value) in &self.values {
            write!(line, " {name}={}", text_of(value)).expect("writing to a text cannot fail");
        }
        line.push('\n');
        line
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            LOGGER => self.logger = Some(value.to_owned()),
            MEMBERS => self.insert_members(value),
            name => self.insert(name, value.into()),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.insert(field.name(), Chain(value).to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn push_member(line: &mut String, name: &str, value: &Value) {
    let first = line.ends_with('{') && line.len() == 1;
    let comma = if first { "" } else { "," };
    write!(line, "{comma}{}:{value}", Value::from(name)).expect("writing to a text cannot fail");
}

fn shown(times: Timestamps, time: Timestamp) -> Option<Timestamp> {
    match times {
        Timestamps::Shown => Some(time),
        Timestamps::Left => None,
    }
}

fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// A value as text that can be read back: quoted only if it has blanks or quotes.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.is_empty()
                && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=') =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn color(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG | Level::TRACE => "\u{1b}[2m",
    }
}

/// The component's path with dots. Each part of the program begins with its name: `addon-operator.child`.
fn logger_name(target: &str) -> String {
    let name = target.replace("::", ".").replace('_', "-");
    let is_part = OURS[1..].contains(&target.split("::").next().unwrap_or(target));
    if is_part {
        format!("addon-operator.{name}")
    } else {
        name
    }
}
