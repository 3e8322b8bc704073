//! The meaning of scalars, by the tables of Go's two readers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use serde_json::{Number, Value};

use super::Dialect;
use crate::number;

/// A scalar with its type. It is sorted, so that keys of a map are distinguished as in Go: the number 1 is not the text `1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i128),
    /// The bits of the float, which is precise enough to compare keys.
    Float(u64),
    Text(String),
}

impl Scalar {
    pub(super) fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(truth),
            Self::Int(int) => match (i64::try_from(int), u64::try_from(int)) {
                (Ok(int), _) => Value::from(int),
                (_, Ok(int)) => Value::from(int),
                #[expect(clippy::cast_precision_loss, reason = "what does not fit is a float in Go too")]
                _ => float_value(int as f64)?,
            },
            Self::Float(bits) => float_value(f64::from_bits(bits))?,
            Self::Text(text) => Value::String(text),
        })
    }

    /// The text of the scalar as a key of a map.
    pub(super) fn to_key(&self, dialect: Dialect) -> Result<String, String> {
        Ok(match self {
            Self::Null if dialect.is_v3() => "<nil>".to_owned(),
            Self::Null => return Err("null cannot be a key".to_owned()),
            Self::Bool(truth) => truth.to_string(),
            Self::Int(int) => int.to_string(),
            Self::Float(bits) => float_key(f64::from_bits(*bits), dialect),
            Self::Text(text) => text.clone(),
        })
    }
}

fn float_value(float: f64) -> Result<Value, String> {
    let number: Option<Number> = number::from_float(float);
    number
        .map(Value::Number)
        .ok_or_else(|| format!("{float} is no number that JSON knows"))
}

/// Go's shortest form of a float: with an exponent if the number is large or small.
fn float_key(float: f64, dialect: Dialect) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the older reader prints keys in single precision"
    )]
    let single = float as f32;
    let (scientific, plain) = if dialect.is_v3() {
        (format!("{float:e}"), float.to_string())
    } else {
        (format!("{single:e}"), single.to_string())
    };
    // Infinite numbers and NaN have no exponent.
    let Some((digits, Ok(exponent))) = scientific.split_once('e').map(|(d, e)| (d, e.parse::<i32>())) else {
        return plain;
    };
    if (-4..6).contains(&exponent) {
        return plain;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Finds the type of a scalar. The error says why the scalar does not fit its tag.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>, dialect: Dialect) -> Result<Scalar, String> {
    let scalar = match tag {
        None if plain => implicit(text, dialect),
        Some("binary") => Scalar::Text(binary(text)?),
        Some("bool" | "int" | "float" | "null" | "timestamp") => implicit(text, dialect),
        // An unknown tag is ignored.
        None | Some(_) => Scalar::Text(text.to_owned()),
    };
    let suits = match (tag, &scalar) {
        (Some("bool"), scalar) => matches!(scalar, Scalar::Bool(_)),
        (Some("int"), scalar) => matches!(scalar, Scalar::Int(_)),
        (Some("float"), scalar) => matches!(scalar, Scalar::Float(_) | Scalar::Int(_)),
        (Some("null"), scalar) => matches!(scalar, Scalar::Null),
        (Some("timestamp"), scalar) => matches!(scalar, Scalar::Text(_)) && timestamp(text).is_some(),
        _ => true,
    };
    if suits {
        Ok(scalar)
    } else {
        Err(format!("cannot decode the value as a !!{}", tag.unwrap_or_default()))
    }
}

/// The type of a plain scalar without a tag.
fn implicit(text: &str, dialect: Dialect) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN.to_bits()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY.to_bits()),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY.to_bits()),
        _ => {}
    }
    if !dialect.is_v3() {
        match text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Scalar::Bool(true),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Scalar::Bool(false),
            _ => {}
        }
    }
    let found = match text.as_bytes().first() {
        Some(b'.') => float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            // Only the newer reader rewrites dates. The older one leaves their text.
            if let Some(rewritten) = timestamp(text) {
                return Scalar::Text(if dialect.is_v3() { rewritten } else { text.to_owned() });
            }
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits))
        }
        _ => None,
    };
    found.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Parses an integer with Go's prefixes. A leading zero means octal. It must fit into 64 bits.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let signed = digits.len() != text.len();
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(_) if digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let size = i128::from_str_radix(digits, radix).ok()?;
    let int = if negative { -size } else { size };
    let highest = if signed {
        i128::from(i64::MAX)
    } else {
        i128::from(u64::MAX)
    };
    (i128::from(i64::MIN)..=highest)
        .contains(&int)
        .then_some(Scalar::Int(int))
}

/// Parses a decimal float: digits on at least one side of an optional point, and an optional exponent.
fn float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_digits = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    let shaped = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent_digits.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    let float: f64 = shaped.then(|| text.parse().ok()).flatten()?;
    // A number that is too large for a float is a text, such as the commit hash 12e4567.
    float.is_finite().then_some(Scalar::Float(float.to_bits()))
}

fn binary(text: &str) -> Result<String, String> {
    let packed: String = text.split_whitespace().collect();
    let bytes = STANDARD
        .decode(packed)
        .map_err(|error| format!("!!binary value is not base64: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a date, with or without a time, and returns it as Go prints it.
fn timestamp(text: &str) -> Option<String> {
    let (year, rest) = text.split_once('-').filter(|(year, _)| year.len() == 4)?;
    let (month, rest) = rest.split_once('-')?;
    let day_len = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (day, rest) = rest.split_at(day_len);
    let date = Date::new(short(year, 4)?, short(month, 2)?, short(day, 2)?).ok()?;
    let Some(separator) = rest.chars().next() else {
        return Some(format!("{date}T00:00:00Z"));
    };
    let clock = &rest[separator.len_utf8()..];
    let (clock, offset) = match separator {
        'T' | 't' => split_offset(clock)?,
        ' ' => (clock, Offset::UTC),
        _ => return None,
    };
    let moment = DateTime::from_parts(date, time(clock)?);
    let zone = if offset == Offset::UTC {
        "Z".to_owned()
    } else {
        offset_text(offset)
    };
    // A time outside of the calendar is no timestamp.
    moment.to_zoned(TimeZone::fixed(offset)).ok()?;
    Some(format!("{moment}{zone}"))
}

fn short<T: std::str::FromStr>(digits: &str, longest: usize) -> Option<T> {
    let fits = !digits.is_empty() && digits.len() <= longest && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| digits.parse().ok()).flatten()
}

fn split_offset(clock: &str) -> Option<(&str, Offset)> {
    if let Some(clock) = clock.strip_suffix('Z') {
        return Some((clock, Offset::UTC));
    }
    let at = clock.rfind(['+', '-'])?;
    let (clock, offset) = clock.split_at(at);
    let (hours, minutes) = offset[1..]
        .split_once(':')
        .filter(|(h, m)| h.len() == 2 && m.len() == 2)?;
    let minutes = short::<i32>(hours, 2)? * 60 + short::<i32>(minutes, 2)?;
    let seconds = if offset.starts_with('-') {
        -minutes * 60
    } else {
        minutes * 60
    };
    Some((clock, Offset::from_seconds(seconds).ok()?))
}

fn offset_text(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

fn time(clock: &str) -> Option<Time> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let nanos = short::<i32>(&format!("{fraction:0<9}"), 9)?;
    Time::new(short(hour, 2)?, short(minute, 2)?, short(second, 2)?, nanos).ok()
}
