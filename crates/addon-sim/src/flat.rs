//! Documents of one level, a `key: number` on each line: the form of all sections in the simulated world.
//!
//! They are read and written here and not by the core, so that the model does not depend on the code that it checks.

use std::collections::BTreeMap;

/// A document of one level.
pub type Flat = BTreeMap<String, i64>;

/// Reads a section; `None` if it is broken. Only the global section may be empty.
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

/// Reads a flag; `None` if it is broken.
pub fn read_flag(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Reads a maintenance state; `None` if it is broken.
pub fn read_maintenance(text: &str) -> Option<bool> {
    match text {
        "" => Some(false),
        "NoResourceReconciliation" => Some(true),
        _ => None,
    }
}

/// Whether the text under this key of the `ConfigMap` can be used, apart from schemas.
pub fn is_sound(key: &str, text: &str) -> bool {
    if key.ends_with("Enabled") {
        read_flag(text).is_some()
    } else if key == crate::sources::SOURCES {
        crate::sources::read(text).is_some()
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
