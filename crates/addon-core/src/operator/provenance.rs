//! Where a ConfigMap comes from: what it was made with by a program, and whether people have spoken in it since.
//!
//! A ConfigMap that a program made takes nothing back: neither the chart that installs us nor a hook that saves one section knows
//! the wishes of people. Texts that were in force before stay so, key by key, until people write something under that key.
//! Must never take a text that people wrote for that of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::values::section::ConfigDocument;

/// The annotation with which a program says what it made the ConfigMap of: the digest of its data.
pub const MADE_WITH: &str = "addon-operator/made-with";
/// The annotation by which an edit counts the modules that it removes by omission.
pub const CONFIRM_REMOVALS: &str = "addon-operator/confirm-removals";

/// The annotations of a ConfigMap that matter to us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Which one of all that ever bore its name.
    pub uid: String,
    /// The digest of the sections that a program made it with.
    pub made_with: Option<String>,
    /// How many removals the edit confirms.
    pub confirms: Option<String>,
}

/// A ConfigMap that a program made, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Which one.
    pub uid: String,
    /// People have spoken in it since.
    pub edited: bool,
    /// Keys that were in force before it and of which it has never said anything.
    pub unsaid: BTreeSet<String>,
}

impl Provenance {
    /// Of a ConfigMap with this uid and these annotations.
    pub fn read(uid: Option<&str>, annotations: Option<&BTreeMap<String, String>>) -> Self {
        let annotation = |key| annotations.and_then(|all| all.get(key)).cloned();
        Self {
            uid: uid.unwrap_or_default().to_owned(),
            made_with: annotation(MADE_WITH),
            confirms: annotation(CONFIRM_REMOVALS),
        }
    }

    /// It holds what a program made it with, neither more nor less.
    pub fn is_as_made(&self, data: &BTreeMap<String, String>) -> bool {
        self.made_with.as_ref().is_some_and(|made| *made == digest(data))
    }

    /// The knowledge to keep of it if a program made it, from the knowledge of the one before and the keys in force.
    pub(super) fn made<'a>(
        &self,
        data: &BTreeMap<String, String>,
        known: Option<&Made>,
        in_force: impl Iterator<Item = &'a String>,
    ) -> Option<Made> {
        self.made_with.as_ref()?;
        let known = known.filter(|known| known.uid == self.uid);
        let mut unsaid = match known {
            Some(known) => known.unsaid.clone(),
            None => in_force.cloned().collect(),
        };
        // A section that holds nothing is how the chart begins one.
        unsaid.retain(|key| data.get(key).is_none_or(|text| means_the_same(key, text, "{}")));
        Some(Made {
            uid: self.uid.clone(),
            edited: known.is_some_and(|known| known.edited) || !self.is_as_made(data),
            unsaid,
        })
    }

    /// How many removals this one confirms and the one before it did not. What stood there before has counted.
    pub(super) fn confirmation_since(&self, before: Option<&str>) -> Option<usize> {
        let text = self.confirms.as_deref().filter(|text| before != Some(text))?;
        let number = text.trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..end].parse().ok()
    }
}

/// The digest of a ConfigMap's data. The chart works it out, too: a line `KEY=SHA256` for each key, in their order, and
/// the sha256 of those lines.
pub fn digest(data: &BTreeMap<String, String>) -> String {
    let lines = data.iter().map(|(key, text)| format!("{key}={}\n", sha256(text)));
    sha256(&lines.collect::<String>())
}

fn sha256(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Two texts of one key differ at most in remarks and spelling.
pub(super) fn means_the_same(key: &str, one: &str, other: &str) -> bool {
    let parse = |text: &str| ConfigDocument::parse(&BTreeMap::from([(key.to_owned(), text.to_owned())]));
    one == other || parse(one) == parse(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_key_or_of_a_text_is_seen() {
        let data = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            pairs.collect()
        };
        let made = data(&[("global", "{}"), ("one", "size: 1")]);
        let provenance = Provenance {
            made_with: Some(digest(&made)),
            ..Provenance::default()
        };
        assert!(provenance.is_as_made(&made));
        for other in [
            data(&[]),
            data(&[("global", "{}")]),
            data(&[("global", "{}"), ("one", "size: 1\n")]),
            data(&[("global", "{}"), ("two", "size: 1")]),
            data(&[("global", "{}"), ("one", "size: 1"), ("twoEnabled", "false")]),
        ] {
            assert!(!provenance.is_as_made(&other), "{other:?}");
        }
        assert!(!Provenance::default().is_as_made(&data(&[])));
        // As `sha256sum` says it.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(&data(&[])), empty);
    }

    #[test]
    fn a_confirmation_counts_in_the_edit_that_writes_it() {
        let rows = [
            (Some("5"), None, Some(5)),
            (Some("5"), Some("5"), None),
            (Some("5, again"), Some("5"), Some(5)),
            (Some(" 12 as Ann said"), Some("5"), Some(12)),
            (Some("yes"), None, None),
            (Some(""), None, None),
            (Some("-3"), None, None),
            (None, Some("5"), None),
        ];
        for (text, before, number) in rows {
            let provenance = Provenance {
                confirms: text.map(str::to_owned),
                ..Provenance::default()
            };
            assert_eq!(
                provenance.confirmation_since(before),
                number,
                "{text:?} after {before:?}"
            );
        }
    }
}
