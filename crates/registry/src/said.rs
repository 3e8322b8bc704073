//! The text and the pause in a registry's refusal, made safe for the operator's own messages.
//!
//! Must never take more than one line of text, nor accept an endless pause.

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// The longest text that is shown, in characters.
const LONGEST: usize = 200;

/// The pause after a refusal that names no pause.
const PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The longest pause that a registry can demand. The longest known rate limits count requests in six hours.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(6);

/// A text as one line, without control characters.
pub(super) fn line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut line = words.join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[derive(Deserialize)]
struct Complaint {
    errors: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    code: String,
    #[serde(default)]
    message: String,
}

/// The reason of a refusal, from the body of the answer.
pub(super) fn reason(body: &[u8]) -> String {
    let complaint: Option<Complaint> = serde_json::from_slice(body).ok();
    let first = complaint.and_then(|complaint| complaint.errors.into_iter().next());
    let text = match first {
        Some(Reason { code, message }) if message.is_empty() => code,
        Some(Reason { code, message }) => format!("{code}: {message}"),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    let line = line(&text);
    if line.is_empty() {
        "it gives no reason".to_owned()
    } else {
        line
    }
}

/// The time in the header `Retry-After`, if the answer has one.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => SignedDuration::from_secs(seconds.into()),
        Err(_) => rfc2822::parse(text).ok()?.timestamp().duration_since(now),
    };
    Some(now + pause.clamp(SignedDuration::ZERO, LONGEST_PAUSE))
}

/// The time until which a registry that refused is not asked.
pub(super) fn pause(headers: &HeaderMap, now: Timestamp) -> Timestamp {
    retry_after(headers, now).unwrap_or(now + PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        let json = br#"{"errors":[{"code":"DENIED","message":"not\nfor you"}]}"#;
        assert_eq!(reason(json), "DENIED: not for you");
        assert_eq!(reason(br#"{"errors":[{"code":"DENIED"}]}"#), "DENIED");
        assert_eq!(reason(b"<html>\x1b[31m no </html>"), "<html> [31m no </html>");
        assert_eq!(reason(b""), "it gives no reason");
        assert_eq!(line(&"ä".repeat(500)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_pause_is_a_number_or_a_date_and_has_an_end() {
        let now: Timestamp = "2026-11-06T08:49:37Z".parse().unwrap();
        let after = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            pause(&headers, now).to_string()
        };
        for (value, until) in [
            ("30", "2026-11-06T08:50:07Z"),
            ("Fri, 06 Nov 2026 08:50:07 GMT", "2026-11-06T08:50:07Z"),
            ("Fri, 06 Nov 2020 08:50:07 GMT", "2026-11-06T08:49:37Z"),
            ("4000000000", "2026-11-06T14:49:37Z"),
            ("soon", "2026-11-06T08:50:37Z"),
        ] {
            assert_eq!(after(value), until, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
