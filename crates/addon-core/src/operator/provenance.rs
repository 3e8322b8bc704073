//! The provenance of a ConfigMap: whether a program made it, with which contents, and whether people have edited it since.
//!
//! A ConfigMap that a program made removes nothing by omission: neither the chart that installs us nor a hook that saves
//! one section knows what people want. Texts that were applied before stay applied, key by key, until people write a text
//! under that key. Must never take a text of people for a text of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::values::section::ConfigDocument;

/// The annotation in which a program puts the digest of the data that it made the ConfigMap with.
pub const MADE_WITH: &str = "addon-operator/made-with";
/// The annotation in which a person confirms the number of modules that an edit removes by omission.
pub const CONFIRM_REMOVALS: &str = "addon-operator/confirm-removals";

/// The annotations and the uid of a ConfigMap, as far as the operator uses them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The uid, which differs for each ConfigMap of the same name.
    pub uid: String,
    /// The digest of the data with which a program made the ConfigMap; `None` if no program made it.
    pub made_with: Option<String>,
    /// The number of removals that the edit confirms.
    pub confirms: Option<String>,
}

/// A ConfigMap that a program made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The ConfigMap's uid.
    pub uid: String,
    /// Whether people have edited the ConfigMap since it was made.
    pub edited: bool,
    /// The keys that were applied before the ConfigMap was made, and that it has never contained.
    pub unsaid: BTreeSet<String>,
}

impl Provenance {
    /// The provenance from the uid and the annotations of a ConfigMap.
    pub fn read(uid: Option<&str>, annotations: Option<&BTreeMap<String, String>>) -> Self {
        let annotation = |key| annotations.and_then(|all| all.get(key)).cloned();
        Self {
            uid: uid.unwrap_or_default().to_owned(),
            made_with: annotation(MADE_WITH),
            confirms: annotation(CONFIRM_REMOVALS),
        }
    }

    /// Whether the ConfigMap still holds exactly the data with which a program made it.
    pub fn is_as_made(&self, data: &BTreeMap<String, String>) -> bool {
        self.made_with.as_ref().is_some_and(|made| *made == digest(data))
    }

    /// The facts to remember about this ConfigMap if a program made it. `known` are the facts that were remembered before.
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
        // The chart begins each section as an empty one, so an empty section does not count as content.
        unsaid.retain(|key| data.get(key).is_none_or(|text| means_the_same(key, text, "{}")));
        Some(Made {
            uid: self.uid.clone(),
            edited: known.is_some_and(|known| known.edited) || !self.is_as_made(data),
            unsaid,
        })
    }

    /// The number of confirmed removals, if this confirmation is new. A confirmation that was there before has counted.
    pub(super) fn confirmation_since(&self, before: Option<&str>) -> Option<usize> {
        let text = self.confirms.as_deref().filter(|text| before != Some(text))?;
        let number = text.trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..end].parse().ok()
    }
}

/// The digest of a ConfigMap's data: the sha256 of a text with a line `KEY=SHA256` for each key, sorted by key. The chart
/// computes the same digest.
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

/// Whether two texts of a key differ at most in comments and spelling.
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
        // The sum that `sha256sum` prints for the empty text.
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
