//! Escapes names for scrapers that do not read UTF-8: each rule replaces the characters that the older syntax lacks.
//!
//! The rules are those of Prometheus' own library. Must never change a name that is valid in the older syntax.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The rule by which names are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escaping {
    /// Names are not escaped. A name that is invalid in the older syntax is put into quotes.
    AllowUtf8,
    /// `_` replaces each invalid character.
    #[default]
    Underscores,
    /// `_dot_` replaces a dot, and `__` replaces an underscore and any other invalid character.
    Dots,
    /// `U__` comes first, and each invalid character is replaced by its number between underscores.
    Values,
}

impl Escaping {
    /// All rules.
    pub const ALL: [Self; 4] = [Self::AllowUtf8, Self::Underscores, Self::Dots, Self::Values];

    /// The rule's name in the headers `Accept` and `Content-Type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::AllowUtf8 => "allow-utf-8",
            Self::Underscores => "underscores",
            Self::Dots => "dots",
            Self::Values => "values",
        }
    }

    /// The escaping rule with the given name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|escaping| escaping.word() == word)
    }

    /// The name of a metric after escaping.
    pub fn metric(self, name: &str) -> Cow<'_, str> {
        self.escape(name, in_metric)
    }

    /// The name of a label after escaping.
    pub fn label(self, name: &str) -> Cow<'_, str> {
        self.escape(name, in_label)
    }

    fn escape(self, name: &str, has: fn(usize, char) -> bool) -> Cow<'_, str> {
        if self == Self::AllowUtf8 || plain(name, has) {
            return Cow::Borrowed(name);
        }
        let mut escaped = String::with_capacity(name.len() + 3);
        if self == Self::Values {
            escaped.push_str("U__");
        }
        for (at, char) in name.char_indices() {
            match (self, char) {
                (Self::Dots, '.') => escaped.push_str("_dot_"),
                (Self::Dots | Self::Values, '_') => escaped.push_str("__"),
                (_, char) if has(at, char) => escaped.push(char),
                (Self::Dots, _) => escaped.push_str("__"),
                (Self::Values, char) => {
                    let _ = write!(escaped, "_{:x}_", u32::from(char));
                }
                (Self::Underscores | Self::AllowUtf8, _) => escaped.push('_'),
            }
        }
        Cow::Owned(escaped)
    }
}

/// Whether a metric's name is valid in the older syntax.
pub(super) fn is_plain_metric(name: &str) -> bool {
    plain(name, in_metric)
}

/// Whether a label's name is valid in the older syntax.
pub(super) fn is_plain_label(name: &str) -> bool {
    plain(name, in_label)
}

fn plain(name: &str, has: fn(usize, char) -> bool) -> bool {
    !name.is_empty() && name.char_indices().all(|(at, char)| has(at, char))
}

fn in_metric(at: usize, char: char) -> bool {
    char == ':' || in_label(at, char)
}

/// Whether a character is valid in the name of a label. A colon is not valid: Prometheus' library does not escape it,
/// and then no scraper can read the page.
fn in_label(at: usize, char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || (at > 0 && char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn names_are_escaped_as_prometheus_library_does_it() {
        for line in include_str!("../../tests/oracles/metric_names.jsonl").lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let name = row["name"].as_str().unwrap();
            for escaping in Escaping::ALL {
                assert_eq!(escaping.metric(name), row[escaping.word()].as_str().unwrap(), "{name}");
                if !name.contains(':') {
                    assert_eq!(escaping.label(name), escaping.metric(name));
                }
            }
        }
    }

    #[test]
    fn a_colon_has_no_place_in_the_name_of_a_label() {
        let escaped = Escaping::ALL.map(|escaping| escaping.label("a:b").into_owned());
        assert_eq!(escaped, ["a:b", "a_b", "a__b", "U__a_3a_b"]);
        assert!(!is_plain_label("a:b") && is_plain_metric("a:b"));
    }
}
