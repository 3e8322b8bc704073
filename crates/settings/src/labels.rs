//! The labels of every object of the operator's releases: `key=value`, separated by commas. Never knows where they are
//! used.

use std::collections::BTreeMap;

/// The label by which released objects are found again; it cannot be removed.
const OURS: (&str, &str) = ("heritage", "addon-operator");

/// The labels; none if one of them is invalid.
pub(super) fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(parse_one)
        .collect()
}

pub(super) fn with_ours(mut labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.entry(OURS.0.to_owned()).or_insert_with(|| OURS.1.to_owned());
    labels
}

fn parse_one(part: &str) -> Option<(String, String)> {
    let (key, value) = part.split_once('=')?;
    let fits = is_key(key) && is_label_text(value);
    fits.then(|| (key.to_owned(), value.to_owned()))
}

/// Whether the text is a valid key of a label, with or without a prefix.
pub(super) fn is_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(super::said::is_object_name) && !name.is_empty() && is_label_text(name)
}

/// Whether a text has up to 63 letters, digits, dashes, dots and underscores, and a letter or digit at both ends.
fn is_label_text(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= 63 && bytes.iter().all(|c| inner(*c)) && ends.iter().flatten().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_or_refused() {
        let rows = [
            ("", Some("")),
            ("a=b", Some("a=b")),
            ("a=b, c.d/e=", Some("a=b c.d/e=")),
            ("a=b,", Some("a=b")),
            ("a", None),
            ("=b", None),
            ("/a=b", None),
            ("a=b=c", None),
            ("a=-b", None),
            ("a_=b", None),
            ("a b=c", None),
        ];
        for (text, expected) in rows {
            let read = parse(text).map(|labels| {
                labels
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
    }
}
