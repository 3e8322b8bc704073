//! Strings.

use super::{Row, binary, unary, values};
use crate::value::wording as say;
use crate::value::{MAX_WEIGHT, Res, Val, fault};

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("utf8bytelength", values(0), |cv| {
            unary(cv, |input| Ok(Val::count(text("utf8bytelength", input)?.len())))
        }),
        ("startswith", values(1), |cv| {
            binary(cv, |input, part| {
                two("startswith", input, part).map(|(text, part)| Val::Bool(text.starts_with(part)))
            })
        }),
        ("endswith", values(1), |cv| {
            binary(cv, |input, part| {
                two("endswith", input, part).map(|(text, part)| Val::Bool(text.ends_with(part)))
            })
        }),
        ("ltrimstr", values(1), |cv| {
            binary(cv, |input, part| {
                two("ltrimstr", input, part).map(|(text, part)| Val::text(text.strip_prefix(part).unwrap_or(text)))
            })
        }),
        ("rtrimstr", values(1), |cv| {
            binary(cv, |input, part| {
                two("rtrimstr", input, part).map(|(text, part)| Val::text(text.strip_suffix(part).unwrap_or(text)))
            })
        }),
        ("trim", values(0), |cv| {
            unary(cv, |input| Ok(Val::text(text("trim", input)?.trim())))
        }),
        ("ltrim", values(0), |cv| {
            unary(cv, |input| Ok(Val::text(text("ltrim", input)?.trim_start())))
        }),
        ("rtrim", values(0), |cv| {
            unary(cv, |input| Ok(Val::text(text("rtrim", input)?.trim_end())))
        }),
        ("ascii_downcase", values(0), |cv| {
            unary(cv, |input| {
                Ok(Val::from(text("ascii_downcase", input)?.to_ascii_lowercase()))
            })
        }),
        ("ascii_upcase", values(0), |cv| {
            unary(cv, |input| {
                Ok(Val::from(text("ascii_upcase", input)?.to_ascii_uppercase()))
            })
        }),
    ]
}

/// Natives between texts and arrays.
pub(super) fn conversions() -> Vec<Row> {
    vec![
        ("explode", values(0), |cv| {
            unary(cv, |input| {
                let codes = text("explode", input)?
                    .chars()
                    .map(|char| Val::int(i64::from(u32::from(char))));
                Val::array(codes.collect())
            })
        }),
        ("implode", values(0), |cv| unary(cv, |input| implode(input))),
        ("split", values(1), |cv| {
            binary(cv, |input, separator| {
                split(text("split", input)?, text("split", separator)?)
            })
        }),
        ("join", values(1), |cv| {
            binary(cv, |input, separator| join(input, separator))
        }),
    ]
}

pub(super) fn text<'v, 'a>(name: &str, value: &'v Val<'a>) -> Res<'a, &'v str> {
    value.as_str().ok_or_else(|| say::plain(name, value))
}

fn two<'v, 'a>(name: &str, input: &'v Val<'a>, part: &'v Val<'a>) -> Res<'a, (&'v str, &'v str)> {
    match (input.as_str(), part.as_str()) {
        (Some(text), Some(part)) => Ok((text, part)),
        _ => Err(say::with(name, input, part)),
    }
}

fn implode<'a>(input: &Val<'a>) -> Res<'a> {
    let list = input.as_list().ok_or_else(|| say::plain("implode", input))?;
    let mut text = String::new();
    for code in list.iter() {
        let code = code.as_num().ok_or_else(|| say::plain("implode", input))?.int();
        let char = u32::try_from(code).ok().and_then(char::from_u32);
        text.push(char.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Val::string(text)
}

/// The parts between separators; with an empty separator, the characters.
pub(super) fn split<'a>(text: &str, separator: &str) -> Res<'a> {
    let parts = if separator.is_empty() {
        text.chars().map(|char| Val::from(char.to_string())).collect()
    } else {
        text.split(separator).map(Val::text).collect()
    };
    Val::array(parts)
}

fn join<'a>(input: &Val<'a>, separator: &Val<'a>) -> Res<'a> {
    let children = input.children().ok_or_else(|| say::with("join", input, separator))?;
    let between = separator.as_str();
    if children.len() > 1 && between.is_none() {
        return Err(say::with("join", input, separator));
    }
    let mut parts = Vec::with_capacity(children.len());
    for child in &children {
        parts.push(match child {
            Val::Null => String::new(),
            Val::Str(_) | Val::Bool(_) | Val::Num(_) => child.to_string(),
            other => {
                return Err(fault(format!(
                    "join cannot be applied to an array including: {}",
                    say::typed(other)
                )));
            }
        });
    }
    let between = between.unwrap_or_default();
    let length = parts.iter().map(String::len).sum::<usize>() + between.len().saturating_mul(parts.len());
    if length as u64 / 16 > MAX_WEIGHT {
        return Err(fault("join: too long a text"));
    }
    Val::string(parts.join(between))
}
