//! The fields of `module.yaml` for health: `health`, and `until` in `dependsOn`.
//!
//! Must never ignore a misspelt field: an object that should not count would hold up other modules.

use std::time::Duration;

use crontab::duration::parse_duration;
use health_core::rule::RuleText;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{Description, HEALTH, Mistake};
use crate::module::health::{Ignored, OnFailure};

const RULE: &str = "a rule as {apiVersion: …, kind: …} with one or more of current, inProgress and failed";

/// The state that a needed module must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Its objects are healthy.
    Healthy,
    /// Its run has succeeded.
    Ready,
}

/// The name in an item of `dependsOn`, and the state that the module must reach. `None` if the item is none.
pub(super) fn need(item: &Value) -> Option<(&str, Until)> {
    let fields = match item {
        Value::String(name) => return Some((name, Until::Healthy)),
        Value::Object(fields) => fields,
        _ => return None,
    };
    let until = match fields.get("until").map(Value::as_str) {
        None | Some(Some("healthy")) => Until::Healthy,
        Some(Some("ready")) => Until::Ready,
        Some(_) => return None,
    };
    let has_others = fields.keys().any(|field| field != "name" && field != "until");
    let name = fields.get("name")?.as_str()?;
    (!has_others).then_some((name, until))
}

impl Description {
    pub(super) fn take_health(&mut self, line: usize, value: &Value) {
        let Value::Object(fields) = value else {
            return self.wrong(line, HEALTH.to_owned(), "a map", value);
        };
        for (field, value) in fields {
            let path = format!("{HEALTH}.{field}");
            match field.as_str() {
                "timeout" => match timeout(value) {
                    Some(timeout) => self.health.timeout = timeout,
                    None => self.mistakes.push(Mistake::Duration { line, field: path }),
                },
                "ignore" => self.take_ignored(line, &path, value),
                "onFailure" => match value.as_str().and_then(OnFailure::parse) {
                    Some(on_failure) => self.health.on_failure = on_failure,
                    None => self.wrong(line, path, "keep or return", value),
                },
                "rules" => self.take_rules(line, &path, value),
                _ => self.mistakes.push(Mistake::NoField {
                    line,
                    field: path,
                    fields: "timeout, ignore, rules, onFailure",
                }),
            }
        }
    }

    fn take_ignored(&mut self, line: usize, path: &str, value: &Value) {
        for (field, item) in self.items(path, "a list of objects as {kind: …, name: …}", line, value) {
            match item.as_object().and_then(ignored) {
                Some(ignored) => {
                    self.health.ignore.insert(ignored);
                }
                None => self.wrong(
                    line,
                    field,
                    "an object as {kind: …, name: …}; without a name all of the kind",
                    item,
                ),
            }
        }
    }

    fn take_rules(&mut self, line: usize, path: &str, value: &Value) {
        for (field, item) in self.items(path, "a list of rules", line, value) {
            if !item.is_object() {
                self.wrong(line, field, RULE, item);
                continue;
            }
            let text = RuleText::deserialize(item).map_err(|error| format!("should be {RULE}: {error}"));
            let added = text.and_then(|text| self.health.rules.add(&text).map_err(|error| error.to_string()));
            if let Err(reason) = added {
                self.mistakes.push(Mistake::Rule { line, field, reason });
            }
        }
    }
}

fn ignored(fields: &Map<String, Value>) -> Option<Ignored> {
    let has_others = fields.keys().any(|field| field != "kind" && field != "name");
    let kind = fields.get("kind")?.as_str().filter(|kind| !kind.is_empty())?;
    let name = match fields.get("name") {
        None => None,
        Some(name) => Some(name.as_str()?.to_owned()),
    };
    (!has_others).then(|| Ignored {
        kind: kind.to_owned(),
        name,
    })
}

/// A time as in Go, such as `90s` or `5m`.
fn timeout(value: &Value) -> Option<Duration> {
    let timeout = parse_duration(value.as_str()?)?;
    Duration::try_from(timeout).ok().filter(|timeout| !timeout.is_zero())
}
