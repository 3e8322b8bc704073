//! A channel: the tag, the range of versions or the digest that names the wanted version.
//!
//! Must never read a text as a tag if it was meant as a range.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::range::Range;
use super::reference::{ImageDigest, Tag};
use super::version::Version;

/// The error for a text that is no channel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{text}' is neither a tag nor a range of versions nor a digest: write a tag as stable or 1.4.2, a range as 1.4.x or \
     '>=1.4 <2', or sha256: and 64 digits; without the key the tag of the operator's own image counts ({fault})"
)]
pub struct NoChannel {
    /// The text that is no channel.
    pub text: String,
    /// The reason why the text is not the kind of channel that it looks like.
    pub fault: String,
}

/// The text that says which version is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Channel {
    /// The version that the given tag points to.
    Tag(Tag),
    /// The highest version in the given range.
    Range(Range),
    /// The version with the given digest.
    Digest(ImageDigest),
}

impl Channel {
    /// Reads a channel. A full version is a tag. A part of a version (`1.4`) and a text with signs or wildcards are ranges.
    pub fn parse(text: &str) -> Result<Self, NoChannel> {
        let text = text.trim();
        let refused = |fault: String| NoChannel {
            text: text.to_owned(),
            fault,
        };
        if ImageDigest::is_meant(text) {
            return ImageDigest::parse(text)
                .map(Self::Digest)
                .map_err(|fault| refused(fault.to_string()));
        }
        let tag = Tag::parse(text);
        if let Ok(tag) = &tag
            && (Version::parse_full(text).is_some() || has_suffix_of_its_own(text))
        {
            return Ok(Self::Tag(tag.clone()));
        }
        match (Range::parse_mask(text), tag) {
            (Ok(range), _) => Ok(Self::Range(range)),
            (Err(_), Ok(tag)) => Ok(Self::Tag(tag)),
            (Err(error), Err(_)) => Err(refused(error.fault.to_string())),
        }
    }
}

/// Whether the text is a part of a version with a word behind it, as in `1.4-alpine`, which is a usual name for a moving tag.
fn has_suffix_of_its_own(text: &str) -> bool {
    text.contains('-') && Version::parse(text).is_ok()
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl TryFrom<String> for Channel {
    type Error = NoChannel;

    fn try_from(text: String) -> Result<Self, NoChannel> {
        Self::parse(&text)
    }
}

impl From<Channel> for String {
    fn from(channel: Channel) -> Self {
        channel.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_tag_a_range_or_a_digest() {
        let kind = |text: &str| match Channel::parse(text) {
            Ok(Channel::Tag(_)) => "tag",
            Ok(Channel::Range(_)) => "range",
            Ok(Channel::Digest(_)) => "digest",
            Err(_) => "none",
        };
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, expected) in [
            ("stable", "tag"),
            (" stable\n", "tag"),
            ("1.4.2", "tag"),
            ("v1.4.2", "tag"),
            ("1.4.2-rc.1", "tag"),
            ("1.4-alpine", "tag"),
            ("edge-1.4", "tag"),
            ("version1", "tag"),
            ("12x", "tag"),
            ("1.4.x", "range"),
            ("1.x-alpine", "range"),
            ("1.2.*", "range"),
            ("v1.*.*", "range"),
            ("v1.x.x", "range"),
            ("1.*.0", "range"),
            ("1.2.*-rc.*", "range"),
            ("1.2.*-*", "range"),
            ("release-*", "none"),
            ("1.2.*.*", "none"),
            ("1.2.*-rc.*.", "none"),
            ("1.4", "range"),
            ("1", "range"),
            ("*", "range"),
            ("=1.4.2", "range"),
            (">=1.4 <2", "range"),
            ("~1.2", "range"),
            ("^1", "range"),
            ("1 - 2", "range"),
            ("1.2.x || 1.4.x", "range"),
            (&digest, "digest"),
            ("", "none"),
            ("sha256:12", "none"),
            ("stable || 1.4.x", "none"),
            (">=1.4<2", "none"),
            ("ghcr.io/team/app:1", "none"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
            if let Ok(channel) = Channel::parse(text) {
                assert_eq!(Channel::parse(&channel.to_string()), Ok(channel), "{text}");
            }
        }
    }

    #[test]
    fn a_bad_channel_is_told_with_what_to_write() {
        assert_eq!(
            Channel::parse(">=1.4<2").unwrap_err().to_string(),
            "'>=1.4<2' is neither a tag nor a range of versions nor a digest: write a tag as stable or 1.4.2, a range as \
             1.4.x or '>=1.4 <2', or sha256: and 64 digits; without the key the tag of the operator's own image counts \
             (a blank or a comma should stand before '<2')"
        );
    }
}
