//! Documents of one level, `key: number`, one a line: all that sections of the simulated world hold.
//!
//! Read and written here and not by the core, so that the model does not depend on what it checks.

use std::collections::BTreeMap;

/// A document of one level.
pub type Flat = BTreeMap<String, i64>;

/// Reads a section; nothing if it is broken. An empty text is an answer for the global section only.
pub fn read(text: &str, global: bool) -> Option<Flat> {
    let text = text.trim();
    match text {
        "{}" => return Some(Flat::new()),
        "" => return global.then(Flat::new),
        _ => {}
    }
    let entry = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        plain.then(|| Some((key.to_owned(), value.trim().parse().ok()?)))?
    };
    text.lines().map(entry).collect()
}

/// Writes a section.
pub fn write(flat: &Flat) -> String {
    if flat.is_empty() {
        return "{}\n".to_owned();
    }
    let lines: Vec<String> = flat.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    lines.join(
        "
",
    ) + "
"
}

/// Reads a flag; nothing if it is broken.
pub fn read_flag(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Reads a maintenance state; nothing if it is broken.
pub fn read_maintenance(text: &str) -> Option<bool> {
    match text {
        "" => Some(false),
        "NoResourceReconciliation" => Some(true),
        _ => None,
    }
}

/// `true` if the text under this key of the `ConfigMap` can be used, but for what schemas say.
pub fn is_sound(key: &str, text: &str) -> bool {
    if key.ends_with("Enabled") {
        read_flag(text).is_some()
    } else if key.ends_with("Maintenance") {
        read_maintenance(text).is_some()
    } else {
        read(text, key == "global").is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for flat in [Flat::new(), Flat::from([("k0".to_owned(), 5), ("k1".to_owned(), -3)])] {
            assert_eq!(read(&write(&flat), false), Some(flat));
        }
    }

    #[test]
    fn broken_texts_are_broken() {
        for text in ["k0: [1", "7", "k0 1", "- 1", "k0: x"] {
            assert_eq!(read(text, false), None, "{text}");
        }
        assert_eq!(read("", false), None);
        assert_eq!(read("", true), Some(Flat::new()));
    }
}
