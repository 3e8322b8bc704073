//! The known secrets, and their masking in texts.
//!
//! The output of a program or hook may quote its input. So every text is searched for the secrets of this moment: as
//! they are, in JSON, in base64, and line by line. Must never be printed itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::MASK;

/// The length from which on secrets are searched for. A shorter one would mask texts that are not secret.
pub const SHORTEST: usize = 6;

/// The length from which on the lines of a longer secret are searched for. A shorter line occurs in many texts.
const SHORTEST_LINE: usize = 16;

type Start = [u8; SHORTEST];

/// The texts to mask.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Known {
    by_start: BTreeMap<Start, BTreeSet<String>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl<'a> FromIterator<&'a str> for Known {
    fn from_iter<I: IntoIterator<Item = &'a str>>(secrets: I) -> Self {
        let mut known = Self::default();
        for secret in secrets {
            known.add(secret);
        }
        known
    }
}

impl Known {
    fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST || MASK.contains(secret) {
            return;
        }
        let quoted = Value::from(secret).to_string();
        let inner = &quoted[1..quoted.len() - 1];
        // The secret in base64, as it is, and with the line break that an editor adds at the end.
        let packed = [secret.to_owned(), format!("{secret}\n")].map(|text| STANDARD.encode(text));
        // The last characters depend on the text behind the secret.
        let packed = packed.iter().map(|text| text.trim_end_matches('='));
        let lines = secret.lines().map(str::trim);
        let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
        for text in [secret, inner].into_iter().chain(packed).chain(lines) {
            if let Some(start) = text.as_bytes().first_chunk::<SHORTEST>() {
                self.by_start.entry(*start).or_default().insert(text.to_owned());
            }
        }
    }

    /// Whether no secrets are known.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The text with its secrets masked. Overlapping secrets are replaced together.
    pub fn masked<'text>(&self, text: &'text str) -> Cow<'text, str> {
        if self.is_empty() || text.len() < SHORTEST {
            return Cow::Borrowed(text);
        }
        let mut shown = String::new();
        // Everything before this place has been masked or copied.
        let mut done = 0;
        let mut hidden = false;
        for (at, length) in self.found(text) {
            if at >= done {
                shown.push_str(&text[done..at]);
                shown.push_str(MASK);
                hidden = true;
            }
            done = done.max(at + length);
        }
        if !hidden {
            return Cow::Borrowed(text);
        }
        shown.push_str(&text[done..]);
        Cow::Owned(shown)
    }

    /// The places at which a secret begins, each with the length of the longest secret there.
    fn found<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        let windows = text.as_bytes().windows(SHORTEST).enumerate();
        windows.filter_map(move |(at, window)| {
            let start: &Start = window.try_into().ok()?;
            let candidates = self.by_start.get(start)?;
            let rest = &text.as_bytes()[at..];
            let fits = candidates.iter().filter(|text| rest.starts_with(text.as_bytes()));
            let longest = fits.map(String::len).max()?;
            Some((at, longest))
        })
    }

    /// Masks all texts of a document. Keys stay, because programs depend on them.
    pub fn mask(&self, document: &mut Value) {
        if self.is_empty() {
            return;
        }
        match document {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.mask(value)),
            Value::Number(number) => {
                if let Cow::Owned(masked) = self.masked(&number.to_string()) {
                    *document = masked.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(secrets: &[&str], text: &str) -> String {
        secrets.iter().copied().collect::<Known>().masked(text).into_owned()
    }

    #[test]
    fn a_secret_vanishes_wherever_it_stands() {
        let rows = [
            (&["hunter22"][..], "a hunter22 b hunter22", "a <masked> b <masked>"),
            (&["hunter22"], "hunter22", "<masked>"),
            (&["hunter22"], "hunter2", "hunter2"),
            (&["abcdefgh", "efghijkl"], "-abcdefghijkl-", "-<masked>-"),
            (&["abcdef", "abcdefgh"], "abcdefgh abcdef", "<masked> <masked>"),
            (&["abcdef"], "abcdefabcdef", "<masked><masked>"),
            (&["größer"], "es ist größer.", "es ist <masked>."),
            (&["short"], "a short text", "a short text"),
            (&["masked"], "<masked>", "<masked>"),
        ];
        for (secrets, text, expected) in rows {
            assert_eq!(shown(secrets, text), expected, "{text}");
        }
    }

    #[test]
    fn its_other_forms_vanish_too() {
        let key = "-----BEGIN X-----\nMIIBfirstline1234\nMIIBsecondline123\n-----END X-----";
        let quoted = json!({ "a": key }).to_string();
        assert_eq!(shown(&[key], &quoted), "{\"a\":\"<masked>\"}");
        assert_eq!(shown(&[key], "  MIIBsecondline123"), "  <masked>");
        assert_eq!(shown(&["hunter22"], "x: aHVudGVyMjI="), "x: <masked>=");
        assert_eq!(shown(&["a\"b\"c\"d"], r#""a\"b\"c\"d""#), "\"<masked>\"");
    }

    #[test]
    fn of_a_document_the_keys_stay() {
        let known: Known = ["hunter22", "1234567"].into_iter().collect();
        let mut document = json!({"hunter22": ["x hunter22", 1_234_567, 12], "b": {"c": true}});
        known.mask(&mut document);
        assert_eq!(
            document,
            json!({"hunter22": ["x <masked>", "<masked>", 12], "b": {"c": true}})
        );
    }

    #[test]
    fn what_is_known_is_not_printed() {
        let known: Known = ["hunter22"].into_iter().collect();
        assert_eq!(format!("{known:?}"), "Known { .. }");
    }

    proptest! {
        #[test]
        fn no_known_text_is_left(
            secrets in prop::collection::vec("[a-c]{6,9}", 1..6),
            parts in prop::collection::vec("[a-cx ]{0,12}", 0..6),
        ) {
            let known: Known = secrets.iter().map(String::as_str).collect();
            let text = parts.iter().zip(secrets.iter().cycle()).map(|(part, secret)| format!("{part}{secret}"));
            let text: String = text.collect();
            let masked = known.masked(&text).into_owned();
            for secret in &secrets {
                prop_assert!(!masked.contains(secret.as_str()), "{} in {}", secret, masked);
            }
            prop_assert_eq!(known.masked(&masked), masked.as_str());
        }

        #[test]
        fn a_text_without_secrets_stays_as_it_is(text in "\\PC*") {
            let known: Known = ["~~~never~~~"].into_iter().collect();
            prop_assume!(!text.contains("~~~"));
            prop_assert_eq!(known.masked(&text), text.as_str());
        }
    }
}
