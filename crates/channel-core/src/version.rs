//! Versions in tags and labels.
//!
//! They are read as leniently as by Masterminds' library for Go: `v1.4`, `1`, `01.2`. Must never order versions of equal
//! precedence: the build metadata does not count.

use std::cmp::Ordering;
use std::fmt;

use semver::{BuildMetadata, Prerelease};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The length up to which texts are read.
const LONGEST: usize = 256;

/// The error for a text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no version, as 1.4.2 or v1.5.0-rc.1 are")]
pub struct NoVersion(String);

/// A version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(semver::Version);

impl Version {
    /// Reads a version number. Missing components are zero.
    pub fn parse(text: &str) -> Result<Self, NoVersion> {
        let read = Written::read(text).filter(|_| text.len() <= LONGEST);
        let version = read.and_then(|written| {
            let part = |at: usize| written.parts[at].map_or(Some(0), number);
            Self::new([part(0)?, part(1)?, part(2)?], written.pre)
        });
        version.ok_or_else(|| NoVersion(text.to_owned()))
    }

    /// Reads a version with all three parts; `None` for any other text.
    pub fn parse_full(text: &str) -> Option<Self> {
        let written = Written::read(text)?;
        written.parts[2]?;
        Self::parse(text).ok()
    }

    /// The version in a label `helm.sh/chart`: the text behind the chart's name, with `_` in place of `+`.
    pub fn of_chart_label(label: &str) -> Option<Self> {
        let label = label.replace('_', "+");
        let mut behind_dashes = label.match_indices('-').map(|(at, _)| &label[at + 1..]);
        behind_dashes.find_map(Self::parse_full)
    }

    pub(super) fn new([major, minor, patch]: [u64; 3], pre: &str) -> Option<Self> {
        Some(Self(semver::Version {
            pre: Prerelease::new(pre).ok()?,
            build: BuildMetadata::EMPTY,
            ..semver::Version::new(major, minor, patch)
        }))
    }

    /// The major version.
    pub fn major(&self) -> u64 {
        self.0.major
    }

    /// The minor version.
    pub fn minor(&self) -> u64 {
        self.0.minor
    }

    /// The patch level.
    pub fn patch(&self) -> u64 {
        self.0.patch
    }

    /// Whether the version is a pre-release.
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }

    /// The pre-release; empty if there is none.
    pub(super) fn prerelease(&self) -> &str {
        self.0.pre.as_str()
    }

    /// Whether both versions have the same pre-release, or none.
    pub(super) fn has_prerelease_of(&self, other: &Self) -> bool {
        self.0.pre == other.0.pre
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Version {
    type Error = NoVersion;

    fn try_from(text: String) -> Result<Self, NoVersion> {
        Self::parse(&text)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

/// The pieces of a version's text. In a range they may be wildcards.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'t> {
    /// The parts from the first on; `None` for missing ones.
    pub(super) parts: [Option<&'t str>; 3],
    /// The text behind the dash; empty if there is none.
    pub(super) pre: &'t str,
}

impl<'t> Written<'t> {
    /// Reads a whole text.
    fn read(text: &'t str) -> Option<Self> {
        Self::split(text)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(written, _)| written)
    }

    /// Reads the beginning of a text that is a version, and returns the rest, too.
    pub(super) fn split(text: &'t str) -> Option<(Self, &'t str)> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (first, mut rest) = piece(text, is_of_part)?;
        let mut parts = [Some(first), None, None];
        for part in &mut parts[1..] {
            let next = rest.strip_prefix('.').and_then(|rest| piece(rest, is_of_part));
            let Some((text, behind)) = next else { break };
            (*part, rest) = (Some(text), behind);
        }
        let (pre, rest) = suffix(rest, '-')?;
        let (_, rest) = suffix(rest, '+')?;
        Some((Self { parts, pre }, rest))
    }
}

/// Whether the character may be in a part: a digit or a wildcard.
fn is_of_part(c: char) -> bool {
    c.is_ascii_digit() || "xX*".contains(c)
}

/// Reads a number; `None` if it is too large.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Splits off the longest beginning that has only these characters; `None` if that is empty.
fn piece(text: &str, is_of: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_of(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits off a suffix: the sign, and identifiers with dots between them. `None` if there is no identifier behind the sign.
fn suffix(text: &str, sign: char) -> Option<(&str, &str)> {
    let Some(words) = text.strip_prefix(sign) else {
        return Some(("", text));
    };
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let (words, rest) = piece(words, is_of_word)?;
    words.split('.').all(|word| !word.is_empty()).then_some((words, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_a_chart_tells_its_version() {
        for (label, version) in [
            ("addon-operator-0.3.0", Some("0.3.0")),
            ("addon-operator-1.0.0-rc.1", Some("1.0.0-rc.1")),
            ("my-2-charts-1.0.0_build.5", Some("1.0.0")),
            ("addon-operator", None),
            ("addon-operator-1.0", None),
            ("", None),
        ] {
            let found = Version::of_chart_label(label).map(|version| version.to_string());
            assert_eq!(found.as_deref(), version, "{label}");
        }
    }

    #[test]
    fn only_three_parts_make_a_full_version() {
        for (text, is_full) in [
            ("1.4.2", true),
            ("v1.4.2-rc.1", true),
            ("1.4.2+build", true),
            ("1.4", false),
            ("20240101", false),
            ("1.4.x", false),
            ("1.4.2.1", false),
            ("latest", false),
            ("1.4.2-", false),
        ] {
            assert_eq!(Version::parse_full(text).is_some(), is_full, "{text}");
        }
        assert_eq!(Version::parse("1.4.2+a"), Version::parse("v1.4.2+b"));
        assert!(Version::parse(&format!("1.4.2-{}", "a".repeat(260))).is_err());
    }
}
