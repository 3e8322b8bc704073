//! The platforms of images and nodes: `linux/amd64`, `linux/arm64/v8`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The error for a text that is no platform.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no platform, as linux/amd64 or linux/arm64/v8 are")]
pub struct NoPlatform(String);

/// An operating system, an architecture, and perhaps a variant of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

impl Platform {
    /// Reads `os/architecture[/variant]`.
    pub fn parse(text: &str) -> Result<Self, NoPlatform> {
        let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match *parts {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant.to_owned())),
            _ => return Err(NoPlatform(text.to_owned())),
        };
        if !parts.iter().all(is_word) {
            return Err(NoPlatform(text.to_owned()));
        }
        Ok(Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant,
        })
    }

    /// Whether both platforms have the same operating system and architecture. The variant counts only if both have one:
    /// nodes report none, and some images have none.
    pub fn fits(&self, other: &Self) -> bool {
        let is_same_variant = match (&self.variant, &other.variant) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        self.os == other.os && self.architecture == other.architecture && is_same_variant
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl TryFrom<String> for Platform {
    type Error = NoPlatform;

    fn try_from(text: String) -> Result<Self, NoPlatform> {
        Self::parse(&text)
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> Self {
        platform.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_is_not_told_fits_any() {
        let platform = |text: &str| Platform::parse(text).unwrap();
        for (one, other, fits) in [
            ("linux/amd64", "linux/amd64", true),
            ("linux/arm64", "linux/arm64/v8", true),
            ("linux/arm/v7", "linux/arm/v6", false),
            ("linux/amd64", "linux/arm64", false),
            ("windows/amd64", "linux/amd64", false),
        ] {
            assert_eq!(platform(one).fits(&platform(other)), fits, "{one} {other}");
            assert_eq!(platform(other).fits(&platform(one)), fits, "{other} {one}");
            assert_eq!(platform(other).to_string(), other);
        }
        for text in ["", "linux", "linux/", "linux/amd64/v1/x", "unknown//", "linux/am d64"] {
            assert!(Platform::parse(text).is_err(), "{text}");
        }
    }
}
