//! Ranges of versions by the rules of Masterminds' library for Go, which Helm and its charts use.
//!
//! A range has groups of rules with `||` between them. A version is in the range if all rules of one group allow it. A
//! pre-release is in the range only if a rule of that group names a pre-release. Must never choose between two tags by
//! chance.

mod grammar;
mod mask;

use std::cmp::Reverse;
use std::fmt;

use thiserror::Error;

use super::reference::Tag;
use super::version::Version;
use mask::Mask;

/// The error for a text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is no range of versions: {fault}")]
pub struct RangeError {
    /// The text that is no range.
    pub text: String,
    /// The mistake in the text.
    pub fault: Fault,
}

/// A mistake in a range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The text is longer than any sensible one.
    #[error("it is longer than {} characters", grammar::LONGEST)]
    Long,
    /// The text has more groups than any sensible one.
    #[error("it has more than {} parts with || between them", grammar::MOST_GROUPS)]
    Groups,
    /// There is another text in the place of a rule.
    #[error("'{0}' should begin with a rule, as 1.4.x, >=1.4, ~1.2, ^1 or 1.2 - 1.4")]
    NoRule(String),
    /// There is no separator between a rule and the next.
    #[error("a blank or a comma should stand before '{0}'")]
    NotApart(String),
    /// There is a sign before one of the two versions of a span (`1.2 - 1.4`).
    #[error("'{0}' should be two versions with ' - ' between them, and a comma before the first if a rule precedes it")]
    Span(String),
    /// A part of a version is neither a number nor a wildcard.
    #[error("'{0}' should be a version, of which parts may be x or left out")]
    Version(String),
}

/// A range of versions.
#[derive(Debug, Clone)]
pub struct Range {
    text: String,
    rules: Rules,
}

/// The versions that are in a range.
#[derive(Debug, Clone)]
enum Rules {
    /// The versions that all rules of a group allow.
    Groups(Vec<Group>),
    /// The versions that fit a mask.
    Mask(Mask),
}

/// Rules that a version must fulfil all together.
#[derive(Debug, Clone)]
struct Group {
    rules: Vec<Rule>,
    /// Whether a rule names a pre-release, so that pre-releases may be in the range.
    names_prerelease: bool,
}

/// A rule of a range: a sign and a version.
#[derive(Debug, Clone)]
struct Rule {
    sign: Sign,
    version: Version,
    open: Open,
}

/// The comparison that a rule demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Equal,
    NotEqual,
    Above,
    Below,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

/// The first part of the rule's version that is a wildcard or left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Major,
}

impl Range {
    /// Reads a range.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let groups = grammar::groups(text).map_err(|fault| RangeError {
            text: text.to_owned(),
            fault,
        })?;
        Ok(Self {
            text: text.trim().to_owned(),
            rules: Rules::Groups(groups),
        })
    }

    /// Reads a range or a mask. A mask is a version with open parts, such as `v1.*.*`. Most masks are also ranges. The
    /// other masks (`1.*.0`, `1.2.*-rc.*`) are read as masks, because a range would ignore the parts behind the first
    /// open part.
    pub fn parse_mask(text: &str) -> Result<Self, RangeError> {
        match Mask::parse(text) {
            None => Self::parse(text),
            Some(mask) => Ok(Self {
                text: text.trim().to_owned(),
                rules: Rules::Mask(mask),
            }),
        }
    }

    /// Whether a version is in the range.
    pub fn holds(&self, version: &Version) -> bool {
        match &self.rules {
            Rules::Groups(groups) => groups.iter().any(|group| group.holds(version)),
            Rules::Mask(mask) => mask.holds(version),
        }
    }

    /// The tag of the highest version in the range. Only tags that are full versions count: tags like `1.4` or
    /// `20240101` may be moved at any time. If two tags name one version, the tag that is written like the range (with
    /// or without `v`) comes first. After that the alphabet decides.
    pub fn highest<'t>(&self, tags: impl IntoIterator<Item = &'t Tag>) -> Option<(&'t Tag, Version)> {
        let versions = tags
            .into_iter()
            .filter_map(|tag| Some((tag, Version::parse_full(tag.as_str())?)));
        let held = versions.filter(|(_, version)| self.holds(version));
        let is_other = |tag: &Tag| tag.as_str().starts_with('v') != self.text.starts_with('v');
        held.max_by_key(|(tag, version)| (version.clone(), Reverse((is_other(tag), *tag))))
    }
}

impl Group {
    fn new(rules: Vec<Rule>) -> Self {
        Self {
            names_prerelease: rules.iter().any(|rule| rule.version.is_prerelease()),
            rules,
        }
    }

    fn holds(&self, version: &Version) -> bool {
        (self.names_prerelease || !version.is_prerelease()) && self.rules.iter().all(|rule| rule.allows(version))
    }
}

impl Rule {
    fn allows(&self, version: &Version) -> bool {
        let bound = &self.version;
        match self.sign {
            Sign::Equal if self.open == Open::Nothing => version == bound,
            Sign::Equal | Sign::Tilde => self.is_near(version),
            Sign::NotEqual => self.differs(version),
            Sign::Above => self.is_above(version),
            Sign::Below => version < bound,
            Sign::AtLeast => version >= bound,
            Sign::AtMost if self.open == Open::Nothing => version <= bound,
            Sign::AtMost => {
                let is_above = version.minor() > bound.minor() && self.open != Open::Minor;
                version.major() < bound.major() || version.major() == bound.major() && !is_above
            }
            Sign::Caret => self.is_compatible(version),
        }
    }

    fn is_above(&self, version: &Version) -> bool {
        let bound = &self.version;
        let major = version.major().cmp(&bound.major());
        match self.open {
            Open::Nothing => version > bound,
            Open::Minor => major.is_gt(),
            Open::Patch => major.is_gt() || major.is_eq() && version.minor() > bound.minor(),
            Open::Major => major.is_gt() || major.is_eq() && version > bound,
        }
    }

    /// Whether the version is at least that of the rule and has the same major and minor version, or the same major
    /// version if the minor one is open. A wildcard alone is read as 0.0.0, to which all versions are near.
    fn is_near(&self, version: &Version) -> bool {
        let bound = &self.version;
        let is_zero = (bound.major(), bound.minor(), bound.patch()) == (0, 0, 0);
        let is_any = is_zero && matches!(self.open, Open::Nothing | Open::Major);
        let is_of_minor = self.open == Open::Minor || version.minor() == bound.minor();
        version >= bound && (is_any || version.major() == bound.major() && is_of_minor)
    }

    /// Whether the version is at least that of the rule, and equal up to the first part that is not zero.
    fn is_compatible(&self, version: &Version) -> bool {
        let bound = &self.version;
        let is_same = if bound.major() > 0 || self.open == Open::Minor {
            true
        } else if bound.minor() > 0 || self.open == Open::Patch {
            version.minor() == bound.minor()
        } else {
            (version.minor(), version.patch()) == (bound.minor(), bound.patch())
        };
        version >= bound && version.major() == bound.major() && is_same
    }

    fn differs(&self, version: &Version) -> bool {
        let bound = &self.version;
        let has_other_major = version.major() != bound.major();
        let has_other_minor = version.minor() != bound.minor();
        match self.open {
            Open::Nothing | Open::Major => version != bound,
            Open::Minor => has_other_major,
            Open::Patch => has_other_major || has_other_minor || !version.has_prerelease_of(bound),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Two ranges are equal if their texts are equal.
impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Range {}

#[cfg(test)]
mod tests;
