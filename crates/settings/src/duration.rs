//! Durations as Go writes them: `20m`, `1h30m`, `1.5s`, `100ms`, `0`. Never negative, and never longer than Go's 292
//! years.

use std::time::Duration;

/// The units in nanoseconds.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// The first number of nanoseconds that is too large for Go's 63 bits.
const TOO_MANY: f64 = 9_223_372_036_854_775_808.0;

/// The duration, if the text is one.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|at| *at > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        // The unit ends where the next number begins, so `ms` is never read as `m`.
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, size) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        nanos += number * size;
        rest = &rest[end..];
    }
    let seconds = (nanos < TOO_MANY).then_some(nanos / 1e9)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        let rows = [
            ("20m", Some(1_200_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1500)),
            (".5s", Some(500)),
            ("100ms", Some(100)),
            ("1m30s500ms", Some(90_500)),
            ("2000us", Some(2)),
            ("2000µs", Some(2)),
            ("0", Some(0)),
            ("+1s", Some(1000)),
            ("0s", Some(0)),
            ("2562047h", Some(9_223_369_200_000)),
            ("2562048h", None),
            ("99999999999999h", None),
            ("", None),
            ("20", None),
            ("m", None),
            ("-1s", None),
            ("1d", None),
            ("1 m", None),
            ("1m ", None),
            ("1..5s", None),
            (".s", None),
            ("inf", None),
            ("1e3s", None),
        ];
        for (text, millis) in rows {
            assert_eq!(parse(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
