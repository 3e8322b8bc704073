//! Values in error texts, printed as in the original.
//!
//! Must never decide which values are shown: the callers do.

use serde_json::Value;

/// A number as `%v` prints it.
pub(super) fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // Go prints an exponent from 21 digits on. In its shortest form, which is used here, it does so from 7 on.
    if (-4..6).contains(&exponent) || number == 0.0 {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A value as `%v` prints it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => float(number.as_f64().unwrap_or_default()),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items),
        Value::Object(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// A list as `%v` prints it.
pub(super) fn list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(plain).collect();
    format!("[{}]", items.join(" "))
}

/// A text as `%q` prints it.
pub(super) fn quoted(text: &str) -> String {
    let inner: String = text.chars().map(escaped).collect();
    format!("\"{inner}\"")
}

fn escaped(char: char) -> String {
    let code = u32::from(char);
    match char {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        ' '..='~' => char.to_string(),
        '\0'..='\u{7f}' => format!("\\x{code:02x}"),
        // Rust escapes exactly the characters that cannot be printed.
        _ if char.escape_debug().count() == 1 => char.to_string(),
        _ if code < 0x1_0000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_printed_as_recorded() {
        let rows = [
            (1_000_000.0, "1e+06"),
            (100_000.0, "100000"),
            (123_456_789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e21, "1e+21"),
            (9_007_199_254_740_993.0, "9.007199254740992e+15"),
            (0.0, "0"),
            (-2.5, "-2.5"),
        ];
        for (number, text) in rows {
            assert_eq!(float(number), text);
        }
        assert_eq!(
            plain(&json!(["a", 1, null, {"x": 1.5, "b": [true]}])),
            "[a 1 <nil> map[b:[true] x:1.5]]"
        );
        assert_eq!(
            quoted("a\"b\\\n\u{7}é\u{200b}😀\u{7f}\u{ad}"),
            r#""a\"b\\\n\aé\u200b😀\x7f\u00ad""#
        );
    }
}
