//! The version of a helm binary, as far as we tell versions apart.

use std::fmt;

/// A version of helm, without what stands behind the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// The first `v1.2.3` of a text.
    pub(super) fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let numbers = word.strip_prefix('v')?;
            let numbers = numbers.split(['-', '+']).next()?;
            let mut parts = numbers.split('.').map(str::parse);
            let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
                return None;
            };
            let patch = parts.next().and_then(Result::ok).unwrap_or(0);
            Some(Self { major, minor, patch })
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
