//! Durations as Go prints them: `1h30m`, `1.5s`, `-300ms`.

use jiff::SignedDuration;

/// Reads a duration; `None` if the text is no duration or too long a one.
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let number_len = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, tail) = rest.split_at(number_len);
        let unit_len = tail.bytes().take_while(|b| !b.is_ascii_digit() && *b != b'.').count();
        let (unit, tail) = tail.split_at(unit_len);
        nanos = nanos.checked_add(amount(number, unit)?)?;
        rest = tail;
    }
    let nanos = i64::try_from(if negative { -nanos } else { nanos }).ok()?;
    Some(SignedDuration::from_nanos(nanos))
}

fn amount(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() + fraction.len() > 20 {
        return None;
    }
    let digits = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<i128>().ok()
        }
    };
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits(whole)? * unit + digits(fraction)? * unit / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_go_durations() {
        let rows = [
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("-300ms", Some(-300)),
            ("0", Some(0)),
            ("1000us", Some(1)),
            ("", None),
            ("5", None),
            ("1d", None),
            ("1h 30m", None),
            ("1..5s", None),
            (".s", None),
            ("99999999999h", None),
        ];
        for (text, millis) in rows {
            assert_eq!(parse_duration(text).map(|d| d.as_millis()), millis, "{text}");
        }
    }
}
