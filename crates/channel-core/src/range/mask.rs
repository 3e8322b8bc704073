//! Masks of versions that ranges cannot express: `1.*.0`, `1.2.*-rc.*`, `1.2.*-*`.
//!
//! Must never hold a pre-release that the mask does not ask for.

use crate::version::{Version, number};

/// A version of which parts are open.
#[derive(Debug, Clone)]
pub(super) struct Mask {
    /// The parts; `None` for an open one.
    parts: [Option<u64>; 3],
    suffix: Suffix,
}

/// The pre-releases that a mask asks for.
#[derive(Debug, Clone)]
enum Suffix {
    /// None.
    Released,
    /// Any, beside the released versions.
    Any,
    /// Pre-releases with these words. `None` is an open word. An open word at the end stands for one word or more.
    Words(Vec<Option<String>>),
}

impl Mask {
    /// Reads a mask that is no range: a part behind an open one is a number, or a word of the suffix is open. `None` for any
    /// other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().strip_prefix('v').unwrap_or(text.trim());
        let (parts, suffix) = match text.split_once('-') {
            Some((parts, suffix)) => (parts, Some(suffix)),
            None => (text, None),
        };
        let mut read = [None; 3];
        let words: Vec<&str> = parts.split('.').collect();
        for (at, word) in words.iter().enumerate() {
            *read.get_mut(at)? = match *word {
                "*" | "x" | "X" => None,
                digits => Some(number(digits).filter(|_| !digits.is_empty())?),
            };
        }
        let first_open = read.iter().position(Option::is_none)?;
        let has_number_behind = read[first_open..].iter().any(Option::is_some);
        let has_open_word = suffix.is_some_and(|suffix| suffix.split('.').any(|word| word == "*"));
        let suffix = match suffix {
            None => Suffix::Released,
            Some("*") => Suffix::Any,
            Some(suffix) => Suffix::Words(words_of(suffix)?),
        };
        (has_number_behind || has_open_word).then_some(Self { parts: read, suffix })
    }

    /// Whether a version fits the mask.
    pub(super) fn holds(&self, version: &Version) -> bool {
        let parts = [version.major(), version.minor(), version.patch()];
        let fits = self
            .parts
            .iter()
            .zip(parts)
            .all(|(wanted, part)| wanted.is_none_or(|wanted| wanted == part));
        fits && self.suffix.holds(version.prerelease())
    }
}

impl Suffix {
    fn holds(&self, prerelease: &str) -> bool {
        match self {
            Self::Released => prerelease.is_empty(),
            Self::Any => true,
            Self::Words(wanted) => {
                let words: Vec<&str> = prerelease.split('.').collect();
                let is_open_at_end = wanted.last().is_some_and(Option::is_none);
                let is_long_enough = words.len() == wanted.len() || is_open_at_end && words.len() > wanted.len();
                let fits =
                    |(wanted, word): (&Option<String>, &&str)| wanted.as_deref().is_none_or(|wanted| wanted == *word);
                !prerelease.is_empty() && is_long_enough && wanted.iter().zip(&words).all(fits)
            }
        }
    }
}

fn words_of(suffix: &str) -> Option<Vec<Option<String>>> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let word = |word: &str| match word {
        "*" => Some(None),
        word => (!word.is_empty() && word.chars().all(is_of_word)).then(|| Some(word.to_owned())),
    };
    suffix.split('.').map(word).collect()
}
