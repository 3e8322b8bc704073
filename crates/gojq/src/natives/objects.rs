//! Natives for objects, and for values of any type: length, keys, containment, JSON.

use std::collections::BTreeMap;

use super::{Row, binary, crossing, unary, values};
use crate::number::Num;
use crate::value::wording as say;
use crate::value::{Dict, List, Res, Text, Val, compare, from_json, to_json};

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("length", values(0), |cv| unary(cv, |input| length(input))),
        ("abs", values(0), |cv| {
            unary(cv, |input| match input {
                Val::Num(num) => Ok(Val::Num(num.absolute())),
                _ => Err(say::plain("abs", input)),
            })
        }),
        ("type", values(0), |cv| unary(cv, |input| Ok(Val::text(input.kind())))),
        ("keys", values(0), |cv| unary(cv, |input| keys(input))),
        ("has", values(1), |cv| binary(cv, |input, key| has(input, key))),
        ("contains", values(1), |cv| {
            crossing(cv, |input, part| contains(input, part).map(Val::Bool))
        }),
        ("to_entries", values(0), |cv| unary(cv, |input| to_entries(input))),
        ("from_entries", values(0), |cv| unary(cv, |input| from_entries(input))),
        ("tostring", values(0), |cv| {
            unary(cv, |input| match input {
                Val::Str(_) => Ok(input.clone()),
                other => Val::string(to_json(other)),
            })
        }),
        ("tojson", values(0), |cv| unary(cv, |input| Val::string(to_json(input)))),
        ("fromjson", values(0), |cv| {
            unary(cv, |input| {
                let text = input.as_str().ok_or_else(|| say::plain("fromjson", input))?;
                from_json(text).map_err(|why| say::because("fromjson", input, &why.to_string()))
            })
        }),
        ("tonumber", values(0), |cv| unary(cv, tonumber)),
        ("!capture", values(0), |cv| unary(cv, |input| capture(input))),
    ]
}

fn length<'a>(input: &Val<'a>) -> Res<'a> {
    match input {
        Val::Null => return Ok(Val::int(0)),
        Val::Num(num) => return Ok(Val::Num(num.absolute())),
        Val::Str(text) => return Ok(Val::count(text.chars().count())),
        _ => {}
    }
    let list = input.as_list().map(List::len);
    let count = list.or_else(|| input.as_dict().map(Dict::len));
    count.map(Val::count).ok_or_else(|| say::plain("length", input))
}

fn keys<'a>(input: &Val<'a>) -> Res<'a> {
    if let Some(list) = input.as_list() {
        return Val::array((0..list.len()).map(Val::count).collect());
    }
    let dict = input.as_dict().ok_or_else(|| say::plain("keys", input))?;
    Val::array(dict.iter().map(|(key, _)| Val::Str(key)).collect())
}

fn has<'a>(input: &Val<'a>, key: &Val<'a>) -> Res<'a> {
    let answer = if let (Some(list), Some(index)) = (input.as_list(), key.as_num()) {
        usize::try_from(index.int()).is_ok_and(|index| index < list.len())
    } else if let (Some(dict), Some(key)) = (input.as_dict(), key.as_str()) {
        dict.get(key).is_some()
    } else if matches!(input, Val::Null) {
        false
    } else {
        return Err(say::with("has", input, key));
    };
    Ok(Val::Bool(answer))
}

fn contains<'a>(input: &Val<'a>, part: &Val<'a>) -> Res<'a, bool> {
    if let (Some(one), Some(other)) = (input.as_num(), part.as_num()) {
        return Ok(one.order(other).is_eq());
    }
    if let (Some(text), Some(part)) = (input.as_str(), part.as_str()) {
        return Ok(text.contains(part));
    }
    if let (Some(list), Some(parts)) = (input.as_list(), part.as_list()) {
        // Inside of a value a mismatch of types is no error, but just not contained.
        let holds = |part: &Val<'a>| list.iter().any(|item| contains(&item, part).unwrap_or(false));
        return Ok(parts.iter().all(|part| holds(&part)));
    }
    if let (Some(dict), Some(parts)) = (input.as_dict(), part.as_dict()) {
        let holds = |key: &str, part: &Val<'a>| {
            dict.get(key)
                .is_some_and(|value| contains(&value, part).unwrap_or(false))
        };
        return Ok(parts.iter().all(|(key, part)| holds(&key, &part)));
    }
    let comparable = matches!((input, part), (Val::Null, Val::Null) | (Val::Bool(_), Val::Bool(_)));
    if comparable && compare(input, part).is_eq() {
        Ok(true)
    } else {
        Err(say::with("contains", input, part))
    }
}

/// An object of a few entries.
pub(super) fn object<'a, const N: usize>(entries: [(&'static str, Val<'a>); N]) -> Res<'a> {
    Val::object(
        entries
            .into_iter()
            .map(|(key, value)| (Text::Raw(key), value))
            .collect(),
    )
}

fn to_entries<'a>(input: &Val<'a>) -> Res<'a> {
    let entry = |(key, value)| object([("key", key), ("value", value)]);
    let entries: Res<'a, Vec<Val<'a>>> = match (input.as_list(), input.as_dict()) {
        (Some(list), _) => list
            .iter()
            .enumerate()
            .map(|(index, value)| entry((Val::count(index), value)))
            .collect(),
        (_, Some(dict)) => dict.iter().map(|(key, value)| entry((Val::Str(key), value))).collect(),
        _ => return Err(say::plain("to_entries", input)),
    };
    Val::array(entries?)
}

fn from_entries<'a>(input: &Val<'a>) -> Res<'a> {
    let list = input.as_list().ok_or_else(|| say::plain("from_entries", input))?;
    let mut entries = BTreeMap::new();
    for item in list.iter() {
        let dict = item.as_dict().ok_or_else(|| say::plain("from_entries", &item))?;
        let key = ["key", "Key", "name", "Name"]
            .iter()
            .find_map(|key| dict.get(key).filter(Val::truth));
        let Some(Val::Str(key)) = key else {
            let why = say::key(&key.unwrap_or(Val::Null)).to_string();
            return Err(say::because("from_entries", input, &why));
        };
        let value = ["value", "Value"].iter().find_map(|key| dict.get(key));
        entries.insert(key, value.unwrap_or(Val::Null));
    }
    Val::object(entries)
}

fn tonumber<'a>(input: &Val<'a>) -> Res<'a> {
    match input {
        Val::Num(_) => Ok(input.clone()),
        Val::Str(text) => {
            let wrong = || say::because("tonumber", input, "invalid number");
            if !is_number(text) {
                return Err(wrong());
            }
            Num::parse(text).map(Val::Num).ok_or_else(wrong)
        }
        _ => Err(say::plain("tonumber", input)),
    }
}

/// Whether the text is a number: digits with a sign, a point and an exponent, as in literals; `5.` and `.5` are numbers, too.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let begins = mantissa
        .strip_prefix('.')
        .unwrap_or(mantissa)
        .starts_with(|char: char| char.is_ascii_digit());
    begins
        && digits(whole)
        && digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// The object with the named captures of a match.
pub(super) fn capture<'a>(input: &Val<'a>) -> Res<'a> {
    let dict = input.as_dict().ok_or_else(|| say::object(input))?;
    let captures = dict.get("captures").unwrap_or(Val::Null);
    let list = captures.as_list().ok_or_else(|| say::array(&captures))?;
    let mut entries = BTreeMap::new();
    for capture in list.iter() {
        let Some(dict) = capture.as_dict() else { continue };
        if let Some(Val::Str(name)) = dict.get("name") {
            entries.insert(name, dict.get("string").unwrap_or(Val::Null));
        }
    }
    Val::object(entries)
}
