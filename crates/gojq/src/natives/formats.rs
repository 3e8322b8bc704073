//! The formats: `@html`, `@csv` and their like.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

use super::{Row, binary, unary, values};
use crate::value::wording as say;
use crate::value::{Res, Val, fault, to_json};

/// The decoder of the original: padding is optional, and stray bits at the end are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("!html", values(0), |cv| unary(cv, html)),
        ("!uri", values(0), |cv| unary(cv, uri)),
        ("!urid", values(0), |cv| unary(cv, urid)),
        ("!csv", values(0), |cv| unary(cv, csv)),
        ("!tsv", values(0), |cv| unary(cv, tsv)),
        ("!sh", values(0), |cv| unary(cv, sh)),
        ("!base64", values(0), |cv| unary(cv, base64)),
        ("!base64d", values(0), |cv| unary(cv, base64d)),
        ("format", values(1), |cv| {
            binary(cv, |input, name| match name.as_str() {
                Some(name) => format(input, name),
                None => Err(say::plain("format", name)),
            })
        }),
    ]
}

fn format<'a>(input: &Val<'a>, name: &str) -> Res<'a> {
    match name {
        "text" => Val::string(string(input)),
        "json" => Val::string(to_json(input)),
        "html" => html(input),
        "uri" => uri(input),
        "urid" => urid(input),
        "csv" => csv(input),
        "tsv" => tsv(input),
        "sh" => sh(input),
        "base64" => base64(input),
        "base64d" => base64d(input),
        unknown => Err(fault(format!("format not defined: @{unknown}"))),
    }
}

fn string(value: &Val<'_>) -> String {
    value.to_string()
}

fn html<'a>(input: &Val<'a>) -> Res<'a> {
    let mut out = String::new();
    for char in string(input).chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            plain => out.push(plain),
        }
    }
    Val::string(out)
}

fn uri<'a>(input: &Val<'a>) -> Res<'a> {
    let mut out = String::new();
    for byte in string(input).bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(["%", &format!("{byte:02X}")]);
        }
    }
    Val::string(out)
}

fn urid<'a>(input: &Val<'a>) -> Res<'a> {
    let text = string(input);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let Some(code) = code else {
            let shown = String::from_utf8_lossy(&after[..after.len().min(2)]).into_owned();
            return Err(say::because(
                "@urid",
                input,
                &format!("invalid URL escape \"%{shown}\""),
            ));
        };
        bytes.push(code);
        rest = &after[2..];
    }
    Val::string(String::from_utf8_lossy(&bytes).into_owned())
}

/// A row of scalars.
fn row<'a>(name: &str, input: &Val<'a>, separator: &str, quote: impl Fn(&str) -> String) -> Res<'a> {
    let list = input.as_list().ok_or_else(|| say::plain(&format!("@{name}"), input))?;
    let mut cells = Vec::with_capacity(list.len());
    for cell in list.iter() {
        cells.push(match &cell {
            Val::Str(text) => quote(text),
            Val::Null | Val::Bool(_) | Val::Num(_) => {
                let text = to_json(&cell);
                if text == "null" && name != "sh" {
                    String::new()
                } else {
                    text
                }
            }
            other => {
                return Err(fault(format!(
                    "@{name} cannot format an array including: {}",
                    say::typed(other)
                )));
            }
        });
    }
    Val::string(cells.join(separator))
}

fn csv<'a>(input: &Val<'a>) -> Res<'a> {
    row("csv", input, ",", |text| {
        format!("\"{}\"", text.replace('"', "\"\"").replace('\0', "\\0"))
    })
}

fn tsv<'a>(input: &Val<'a>) -> Res<'a> {
    row("tsv", input, "\t", |text| {
        let escape = |char| match char {
            '\t' => "\\t".to_owned(),
            '\r' => "\\r".to_owned(),
            '\n' => "\\n".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\0' => "\\0".to_owned(),
            plain => String::from(plain),
        };
        text.chars().map(escape).collect()
    })
}

fn sh<'a>(input: &Val<'a>) -> Res<'a> {
    let input = if input.as_list().is_some() {
        input.clone()
    } else {
        Val::array(vec![input.clone()])?
    };
    row("sh", &input, " ", |text| {
        format!("'{}'", text.replace('\'', "'\\''").replace('\0', "\\0"))
    })
}

fn base64<'a>(input: &Val<'a>) -> Res<'a> {
    Val::string(base64::engine::general_purpose::STANDARD.encode(string(input)))
}

fn base64d<'a>(input: &Val<'a>) -> Res<'a> {
    let text = string(input);
    let digits: String = text.split('=').next().unwrap_or_default().replace(['\n', '\r'], "");
    match LENIENT.decode(digits) {
        Ok(bytes) => Val::string(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(say::because("@base64d", input, &error.to_string())),
    }
}
