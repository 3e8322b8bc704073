//! Formats of texts, as the original checks them.
//!
//! An unknown format accepts every text. Must never be stricter than the original: values that it accepts must pass.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::civil::Date;
use regex::Regex;

type Holds = fn(&str) -> bool;

/// The checks by the format's name without hyphens.
const KNOWN: [(&str, Holds); 26] = [
    ("bsonobjectid", |text| text.len() == 24 && is_hexadecimal(text)),
    ("byte", |text| text.is_empty() || BASE64_STANDARD.decode(text).is_ok()),
    ("cidr", is_cidr),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", |text| EMAIL.is_match(text)),
    ("hexcolor", |text| {
        let digits = text.strip_prefix('#').unwrap_or(text);
        matches!(digits.len(), 3 | 6) && is_hexadecimal(digits)
    }),
    ("hostname", is_hostname),
    ("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("mac", |text| MAC.is_match(text)),
    ("objectid", |text| text.len() == 24 && is_hexadecimal(text)),
    ("password", |_| true),
    ("rgbcolor", |text| RGB.is_match(text)),
    ("ssn", |text| SSN.is_match(text)),
    ("uri", |text| URI.is_match(text) || text.starts_with('/')),
    ("ulid", |text| ULID.is_match(text)),
    ("uuid", |text| is_uuid(text, None)),
    ("uuid3", |text| is_uuid(text, Some('3'))),
    ("uuid4", |text| is_uuid(text, Some('4'))),
    ("uuid5", |text| is_uuid(text, Some('5'))),
];

/// Whether a text has a format; `None` for an unknown format.
pub(super) fn holds(format: &str, text: &str) -> Option<bool> {
    if format.is_empty() {
        return None;
    }
    let format = format.replace('-', "");
    let (_, holds) = KNOWN.iter().find(|(name, _)| *name == format)?;
    Some(holds(text))
}

fn expression(text: &str) -> Regex {
    Regex::new(text).expect("this expression was written here")
}

/// A mail address, with or without a person's name before it.
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    let word = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\x{80}-\x{10FFFF}]+";
    let quoted = r#""(?:[^"\\\r\n]|\\.)*""#;
    let address = format!(r"(?:{word}(?:\.{word})*|{quoted})@(?:{word}(?:\.{word})*|\[[^\[\]\\]*\])");
    expression(&format!(
        r"^\s*(?:{address}|(?:(?:{word}|{quoted})[ \t]*(?:[ \t](?:{word}|{quoted}))*)?[ \t]*<{address}>)\s*$"
    ))
});
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    let byte = "[0-9a-fA-F]{2}";
    let word = "[0-9a-fA-F]{4}";
    let lengths = |unit: &str, sign: &str, more: [u8; 3]| {
        let one = |more: u8| format!("{unit}(?:{sign}{unit}){{{more}}}");
        more.map(one).join("|")
    };
    let rows = [
        lengths(byte, ":", [5, 7, 19]),
        lengths(byte, "-", [5, 7, 19]),
        lengths(word, r"\.", [2, 3, 9]),
    ];
    expression(&format!("^(?:{})$", rows.join("|")))
});
static RGB: LazyLock<Regex> = LazyLock::new(|| {
    let byte = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    expression(&format!(r"^rgb\({byte},{byte},{byte}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| expression("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static ULID: LazyLock<Regex> = LazyLock::new(|| expression("^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$"));
/// A scheme and a text behind it, without the characters that Go's URL parser refuses.
static URI: LazyLock<Regex> =
    LazyLock::new(|| expression(r"^[A-Za-z][A-Za-z0-9+.\-]*:(?:%[0-9A-Fa-f]{2}|[^%\x00-\x20\x7f])*$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let sign = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    expression(&format!(
        r"^(?:{sign}(?:-?{sign}{{0,62}})?|(?:{sign}(?:{inner}{{0,61}}{sign})?\.)+[a-zA-Z0-9\-\p{{L}}]{{2,63}})$"
    ))
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| expression(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:[zZ]|[+-][0-9]{2}:[0-9]{2})$"));
static PART_OF_DURATION: LazyLock<Regex> = LazyLock::new(|| expression(r"([0-9]+)\s*([A-Za-zµ]+)"));

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    let plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    plain && (length == "0" || !length.starts_with('0')) && length.parse::<u8>().is_ok_and(|length| length <= most)
}

/// Whether the text is year, month and day with all their digits.
fn is_date(text: &str) -> bool {
    let form = |(index, byte): (usize, u8)| {
        if matches!(index, 4 | 7) {
            byte == b'-'
        } else {
            byte.is_ascii_digit()
        }
    };
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<i16>().ok());
    let day = |day: i16| i8::try_from(day).ok();
    text.len() == 10
        && text.bytes().enumerate().all(form)
        && matches!(
            (part(0..4), part(5..7).and_then(day), part(8..10).and_then(day)),
            (Some(year), Some(month), Some(day)) if Date::new(year, month, day).is_ok()
        )
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['t', 'T']) else {
        return false;
    };
    let fits = |limits: [&str; 3]| {
        let parts = TIME.captures(time)?;
        let parts = (1..=3).map(|group| parts.get(group).map_or("", |part| part.as_str()));
        Some(parts.zip(limits).all(|(part, limit)| part <= limit))
    };
    is_date(date) && fits(["23", "59", "59"]).unwrap_or(false)
}

/// Whether the text is a duration like `1h30m` as Go reads it, or contains a number with a unit.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 16] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "d", "w", "wk",
    ];
    const LONG: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let known = |unit: &str| UNITS.contains(&unit) || LONG.iter().any(|long| unit.starts_with(long));
    text == "0"
        || PART_OF_DURATION
            .captures_iter(text)
            .any(|part| part.get(2).is_some_and(|unit| known(&unit.as_str().to_lowercase())))
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = match text.len() {
        32 => text.to_owned(),
        36 => {
            let hyphens = [8, 13, 18, 23];
            if hyphens.iter().any(|place| text.as_bytes().get(*place) != Some(&b'-')) {
                return false;
            }
            text.replace('-', "")
        }
        _ => return false,
    };
    let variant = digits.chars().nth(16).map(|char| char.to_ascii_lowercase());
    digits.len() == 32
        && is_hexadecimal(&digits)
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version))
        && (matches!(version, None | Some('3')) || matches!(variant, Some('8' | '9' | 'a' | 'b')))
}

/// The digits of a number that may have blanks and hyphens between groups.
fn digits(text: &str) -> Option<Vec<u32>> {
    let signs = text.chars().filter(|char| !char.is_whitespace() && *char != '-');
    signs.map(|char| char.to_digit(10)).collect()
}

fn is_isbn10(text: &str) -> bool {
    let signs: Vec<char> = text
        .chars()
        .filter(|char| !char.is_whitespace() && *char != '-')
        .collect();
    let value = |(index, char): (usize, &char)| match char {
        'X' if index == 9 => Some(10),
        char => char.to_digit(10),
    };
    let values: Option<Vec<u32>> = signs.iter().enumerate().map(value).collect();
    values.is_some_and(|values| {
        values.len() == 10
            && values
                .iter()
                .zip(1..)
                .map(|(value, weight)| value * weight)
                .sum::<u32>()
                % 11
                == 0
    })
}

fn is_isbn13(text: &str) -> bool {
    digits(text).is_some_and(|digits| {
        let weighted = digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(digit, weight)| digit * weight);
        digits.len() == 13 && weighted.sum::<u32>() % 10 == 0
    })
}

/// Checks the check digit only, because the numbers of issuers change too often.
fn is_credit_card(text: &str) -> bool {
    digits(text).is_some_and(|digits| {
        let doubled = |(index, digit): (usize, &u32)| match (index % 2, digit * 2) {
            (0, _) => *digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        };
        (13..=19).contains(&digits.len()) && digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
    })
}
