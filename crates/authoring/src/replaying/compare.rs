//! Compares the results of a repeated run with the recorded ones.
//!
//! A masked text in the record equals any text. Must never compare the form of a file if its meaning can be compared.

use addon_core::metric;
use addon_core::object::patch;
use addon_core::values::patch::{Patch, PatchFile};
use hooks::records::record::{MASK, Record, RunFile};
use hooks::replay::Replayed;
use serde_json::Value;

use crate::cases::compare::{documents, metric as shown_metric, operations};

/// The differences, a paragraph each; none if the runs gave the same.
pub(super) fn differences(record: &Record, replayed: &Replayed) -> Vec<String> {
    let mut told = Vec::new();
    if record.end != replayed.end {
        told.push(format!("end: recorded {}, now {}", record.end, replayed.end));
    }
    for (file, now) in &replayed.wrote {
        let Some(recorded) = record.file(*file).map(|named| &named.content) else {
            continue;
        };
        let title = title(*file);
        match now {
            Err(error) => told.push(format!("{title}: cannot be read now: {error}")),
            Ok(_) if recorded.left_out.is_some() => {}
            Ok(now) => told.extend(of_file(*file, title, &recorded.text, now)),
        }
    }
    told
}

fn title(file: RunFile) -> &'static str {
    match file {
        RunFile::Contexts => "contexts",
        RunFile::Values => "values",
        RunFile::ConfigValues => "configValues",
        RunFile::ValuesPatch => "valuesPatch",
        RunFile::ConfigPatch => "configPatch",
        RunFile::ObjectPatches => "objectPatches",
        RunFile::Metrics => "metrics",
        RunFile::Admission => "admissionResponse",
        RunFile::Conversion => "conversionResponse",
    }
}

fn of_file(file: RunFile, title: &str, recorded: &str, now: &str) -> Vec<String> {
    let mut told = Vec::new();
    match (items(file, recorded), items(file, now)) {
        (Some(recorded), Some(now)) if recorded.len() == now.len() => {
            for (place, (recorded, now)) in recorded.iter().zip(&now).enumerate() {
                walk(&format!("{title}[{place}]"), Some(recorded), Some(now), &mut told);
            }
        }
        (Some(recorded), Some(now)) => told.push(format!(
            "{title}:\n  recorded{}\n  now{}",
            listed(&recorded),
            listed(&now)
        )),
        (_, now_items) if !fits(recorded, now) => {
            let invalid = if now_items.is_none() && items(file, recorded).is_some() {
                ", which is not valid"
            } else {
                ""
            };
            told.push(format!(
                "{title}:\n  recorded {recorded:?}\n  now      {now:?}{invalid}"
            ));
        }
        _ => {}
    }
    told
}

/// The operations or documents in a file; none if they cannot be read.
fn items(file: RunFile, text: &str) -> Option<Vec<Value>> {
    let of_patch = |file| Patch::parse(text, file).ok().map(|patch| operations(&patch));
    match file {
        RunFile::ValuesPatch => of_patch(PatchFile::Values),
        RunFile::ConfigPatch => of_patch(PatchFile::Config),
        RunFile::ObjectPatches => patch::parse(text).ok().map(|operations| documents(&operations)),
        RunFile::Metrics => {
            let parsed = metric::parse(text).ok()?;
            Some(parsed.operations.iter().map(shown_metric).collect())
        }
        RunFile::Contexts | RunFile::Values | RunFile::ConfigValues | RunFile::Admission | RunFile::Conversion => {
            let documents: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
            documents.ok()
        }
    }
}

fn listed(items: &[Value]) -> String {
    if items.is_empty() {
        return " nothing".to_owned();
    }
    let lines = items.iter().map(|item| format!("\n    {item}"));
    lines.collect()
}

/// Describes each place at which two values differ.
fn walk(path: &str, recorded: Option<&Value>, now: Option<&Value>, told: &mut Vec<String>) {
    match (recorded, now) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                walk(&format!("{path}.{key}"), one.get(key), other.get(key), told);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (place, (one, other)) in one.iter().zip(other).enumerate() {
                walk(&format!("{path}[{place}]"), Some(one), Some(other), told);
            }
        }
        (Some(Value::String(mask)), Some(_)) if mask == MASK => {}
        (Some(Value::String(one)), Some(Value::String(other))) if fits(one, other) => {}
        (one, other) if one == other => {}
        (one, other) => {
            let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            let (one, other) = (shown(one), shown(other));
            told.push(if one.len() + other.len() < 80 {
                format!("{path}: recorded {one}, now {other}")
            } else {
                format!("{path}:\n  recorded {one}\n  now      {other}")
            });
        }
    }
}

/// Whether a text is the recorded one, with any text in the place of each mask.
fn fits(recorded: &str, now: &str) -> bool {
    let mut parts = recorded.split(MASK);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = now.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mask_in_the_record_equals_any_text() {
        let rows = [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "ab", false),
            (MASK, "", true),
            ("x <masked> y", "x 1 y", true),
            ("x <masked> y", "x 1 z", false),
            ("<masked>-<masked>!", "a-b!", true),
            ("<masked>-<masked>!", "a!b!", false),
            ("a<masked>a", "a", false),
        ];
        for (recorded, now, expected) in rows {
            assert_eq!(fits(recorded, now), expected, "{recorded} {now}");
        }
    }

    fn told(file: RunFile, recorded: &str, now: &str) -> Vec<String> {
        of_file(file, title(file), recorded, now)
    }

    #[test]
    fn meanings_are_compared_and_not_forms() {
        let patch = r#"[{"op": "add", "path": "/web/a", "value": 1}]"#;
        let same = [
            (
                RunFile::ValuesPatch,
                patch,
                "{\"op\":\"add\",\"path\":\"/web/a\",\"value\":1}\n",
            ),
            (
                RunFile::ObjectPatches,
                "{operation: Delete, kind: Pod, name: a}",
                "{\"operation\":\"Delete\",\"kind\":\"Pod\",\"name\":\"a\"}\n",
            ),
            (
                RunFile::Metrics,
                "{\"name\":\"a\",\"set\":1}",
                "{\"name\":\"a\",\"action\":\"set\",\"value\":1}",
            ),
            (RunFile::Admission, "{\"allowed\": true}", "{\"allowed\":true}"),
            (RunFile::ObjectPatches, "", "\n"),
        ];
        for (file, recorded, now) in same {
            assert_eq!(told(file, recorded, now), [""; 0], "{file:?}");
        }
    }

    #[test]
    fn each_difference_has_its_place() {
        let operation = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]).to_string();
        let rows = [
            (
                RunFile::ValuesPatch,
                operation("/web/a", json!({"b": 1, "c": MASK})),
                operation("/web/a", json!({"b": 2, "c": [7]})),
                "valuesPatch[0].value.b: recorded 1, now 2",
            ),
            (
                RunFile::ValuesPatch,
                operation("/web/a", json!(1)),
                String::new(),
                "valuesPatch:\n  recorded\n    {\"op\":\"add\",\"path\":\"/web/a\",\"value\":1}\n  now nothing",
            ),
            (
                RunFile::ObjectPatches,
                "{operation: Delete, kind: Pod, name: a}".to_owned(),
                "{operation: Delete, kind: Pod}".to_owned(),
                "objectPatches:\n  recorded \"{operation: Delete, kind: Pod, name: a}\"\n  now      \"{operation: Delete, kind: Pod}\", which is not valid",
            ),
            (
                RunFile::Conversion,
                "{\"convertedObjects\":[1]}".to_owned(),
                "{\"failedMessage\":\"no\"}".to_owned(),
                "conversionResponse[0].convertedObjects: recorded [1], now nothing",
            ),
        ];
        for (file, recorded, now, expected) in rows {
            let told = told(file, &recorded, &now);
            assert_eq!(told.first().map(String::as_str), Some(expected), "{told:?}");
        }
    }
}
