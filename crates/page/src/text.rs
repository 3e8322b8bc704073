//! Texts from the cluster, made fit for a page: cut, and without characters that reorder or hide other text.
//!
//! The template escapes markup. Must never let a text grow.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

/// The longest text in a row of a list, in characters.
pub const IN_ROW: usize = 240;
/// The longest text of a paragraph, in characters.
pub const IN_BLOCK: usize = 4000;

/// The text with at most this many characters. A longer text ends with a notice.
///
/// Characters that change the direction of text, and control characters except line breaks and tabs, are shown by their number.
pub fn plain(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most));
    for character in text.chars().take(most) {
        match character {
            '\n' | '\t' => shown.push(character),
            _ if character.is_control() || is_reordering(character) => {
                let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    let rest = text.chars().count().saturating_sub(most);
    if rest > 0 {
        let _ = write!(shown, "… ({rest} more characters)");
    }
    shown
}

/// Whether a character changes the direction of the text around it, or is invisible.
fn is_reordering(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The first line of a text, cut for a row.
pub fn row(text: &str) -> String {
    plain(text.lines().next().unwrap_or_default(), IN_ROW)
}

/// A text for a paragraph.
pub fn block(text: &str) -> String {
    plain(text, IN_BLOCK)
}

/// A segment of a path, percent-encoded.
pub fn encoded(segment: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut shown = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if plain(byte) {
            shown.push(char::from(byte));
        } else {
            let _ = write!(shown, "%{byte:02X}");
        }
    }
    shown
}

/// A time for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// In the form of RFC 3339.
    pub exact: String,
    /// As people read it, in UTC.
    pub shown: String,
}

impl Moment {
    /// The time at these seconds since 1970; none outside of the calendar.
    pub fn at(seconds: i64) -> Option<Self> {
        let at = Timestamp::from_second(seconds).ok()?;
        Some(Self {
            exact: at.to_string(),
            shown: at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        })
    }
}

/// A number of bytes for people.
pub fn bytes(number: u64) -> String {
    let tenths = u128::from(number) * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_and_keeps_its_direction() {
        let cut = plain(&"é".repeat(1 << 20), 3);
        assert_eq!(cut, "ééé… (1048573 more characters)");
        assert_eq!(plain("a\u{202e}b\u{0}c\n\td", 99), "a⟨U+202E⟩b⟨U+0000⟩c\n\td");
        assert_eq!(plain("עברית <b>", 99), "עברית <b>");
        assert_eq!(row("one\ntwo"), "one");
    }

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        assert_eq!(encoded("a/../b c?\"é"), "a%2F..%2Fb%20c%3F%22%C3%A9");
    }

    #[test]
    fn times_and_sizes_are_for_people() {
        let at = Moment::at(0).unwrap();
        assert_eq!(at.exact, "1970-01-01T00:00:00Z");
        assert_eq!(at.shown, "1970-01-01 00:00:00 UTC");
        assert_eq!(Moment::at(i64::MAX), None);
        assert_eq!(bytes(23_330_000), "22.2 MiB");
    }
}
