//! Conversion from and to JSON: the input without copying, the outputs, JSON text, and the shortened text for errors.

use serde_json::{Number, Value};

use super::{Res, Text, Val, fault};
use crate::number::Num;

/// From this number on, floats cannot represent every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number of bytes of a value that an error shows.
const SHOWN: usize = 30;

/// A value of the input. Its numbers are floats, as the original reads them.
pub(crate) fn import(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(bool) => Val::Bool(*bool),
        Value::Number(number) => Val::float(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Val::Str(Text::Raw(text)),
        Value::Array(items) => Val::RawArr(items),
        Value::Object(map) => Val::RawObj(map),
    }
}

impl Val<'_> {
    /// The value as JSON. Whole numbers are integers, however they were written.
    pub(crate) fn export(&self) -> Value {
        match self.bare() {
            Val::Bool(bool) => Value::Bool(*bool),
            Val::Num(num) => export_number(num),
            Val::Str(text) => Value::String((**text).to_owned()),
            Val::Arr(array) => Value::Array(array.items.iter().map(Val::export).collect()),
            Val::Obj(object) => Value::Object(
                object
                    .entries
                    .iter()
                    .map(|(key, value)| ((**key).to_owned(), value.export()))
                    .collect(),
            ),
            Val::RawArr(items) => Value::Array(items.iter().map(export_raw).collect()),
            Val::RawObj(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| (key.clone(), export_raw(value)))
                    .collect(),
            ),
            Val::Null | Val::Hole | Val::Traced(_) | Val::Burst(_) => Value::Null,
        }
    }
}

fn export_raw(value: &Value) -> Value {
    match value {
        Value::Number(number) => export_number(&Num::Float(number.as_f64().unwrap_or(f64::NAN))),
        Value::Array(items) => Value::Array(items.iter().map(export_raw).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), export_raw(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn export_number(num: &Num) -> Value {
    match num {
        Num::Int(int) => Value::from(*int),
        Num::Float(float) if float.is_nan() => Value::Null,
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        Num::Float(float)
            if float.fract() == 0.0 && float.abs() <= EXACT && !(*float == 0.0 && float.is_sign_negative()) =>
        {
            Value::from(*float as i64)
        }
        Num::Float(_) | Num::Big(_) => {
            let mut text = String::new();
            num.write(&mut text);
            let whole = text
                .parse::<i64>()
                .map(Number::from)
                .or_else(|_| text.parse::<u64>().map(Number::from));
            let float = || Number::from_f64(num.float().clamp(f64::MIN, f64::MAX));
            let negative_zero = text == "-0";
            whole
                .ok()
                .filter(|_| !negative_zero)
                .or_else(float)
                .map_or(Value::Null, Value::Number)
        }
    }
}

/// The text of a value as JSON, without blanks.
pub(crate) fn to_json(value: &Val<'_>) -> String {
    let mut out = String::new();
    write(value, &mut out, usize::MAX);
    out
}

/// Prints until the text has at least this length.
fn write(value: &Val<'_>, out: &mut String, limit: usize) {
    if out.len() >= limit {
        return;
    }
    if let Some(list) = value.as_list() {
        out.push('[');
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write(&item, out, limit);
            if out.len() >= limit {
                return;
            }
        }
        out.push(']');
    } else if let Some(dict) = value.as_dict() {
        out.push('{');
        for (index, (key, item)) in dict.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_text(&key, out);
            out.push(':');
            write(&item, out, limit);
            if out.len() >= limit {
                return;
            }
        }
        out.push('}');
    } else {
        match value.bare() {
            Val::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
            Val::Num(num) => num.write(out),
            Val::Str(text) => write_text(text, out),
            _ => out.push_str("null"),
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 || control == '\u{7f}' => {
                out.extend(["\\u", &format!("{:04x}", u32::from(control))]);
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// The beginning of a value's JSON, for an error.
pub(crate) fn preview(value: &Val<'_>) -> String {
    let mut out = String::new();
    write(value, &mut out, SHOWN + 2);
    if out.len() <= SHOWN {
        return out;
    }
    let ending = match value.bare() {
        Val::Str(_) => " ...\"",
        Val::Arr(_) | Val::RawArr(_) => " ...]",
        Val::Obj(_) | Val::RawObj(_) => " ...}",
        _ => " ...",
    };
    out.truncate(out.floor_char_boundary(SHOWN - ending.len()));
    out + ending
}

/// Parses JSON.
pub(crate) fn from_json<'a>(text: &str) -> Res<'a> {
    let value: Value = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
    adopt(value)
}

/// An owned JSON value as a value of a filter. Its integers stay integers.
pub(crate) fn adopt<'a>(value: Value) -> Res<'a> {
    Ok(match value {
        Value::Null => Val::Null,
        Value::Bool(bool) => Val::Bool(bool),
        Value::Number(number) => match number.as_i64() {
            Some(int) => Val::int(int),
            None => Val::Num(Num::parse(&number.to_string()).unwrap_or(Num::Float(f64::NAN))),
        },
        Value::String(text) => Val::string(text)?,
        Value::Array(items) => Val::array(items.into_iter().map(adopt).collect::<Res<'a, _>>()?)?,
        Value::Object(map) => {
            let entries = map
                .into_iter()
                .map(|(key, value)| Ok((Text::Own(key.into()), adopt(value)?)));
            Val::object(entries.collect::<Res<'a, _>>()?)?
        }
    })
}
