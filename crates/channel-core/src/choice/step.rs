//! The step from the running version to another one.

use std::fmt;

use crate::version::Version;

/// The kind of a change of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionStep {
    /// The number of one of the two versions is not known.
    Unknown,
    /// The other version is lower than the running one.
    Older,
    /// Both versions have the same number: the other version was built again.
    Same,
    /// The other version differs by a higher patch level alone.
    Patch,
    /// Only the minor version changes, or the other version is a pre-release.
    Minor,
    /// The major version changes.
    Major,
}

impl VersionStep {
    /// The kind of change from version `from` to version `to`.
    pub fn between(from: Option<&Version>, to: Option<&Version>) -> Self {
        let (Some(from), Some(to)) = (from, to) else {
            return Self::Unknown;
        };
        if to < from {
            Self::Older
        } else if to == from {
            Self::Same
        } else if to.major() != from.major() {
            Self::Major
        } else if to.minor() != from.minor() || to.is_prerelease() {
            Self::Minor
        } else {
            Self::Patch
        }
    }
}

impl fmt::Display for VersionStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "it is not known how far this step goes",
            Self::Older => "this is an older version",
            Self::Same => "this is the same version, built again",
            Self::Patch => "only the patch level rises",
            Self::Minor => "more than the patch level rises",
            Self::Major => "the major version rises",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_apart() {
        for (from, to, step) in [
            ("1.4.2", "1.4.3", VersionStep::Patch),
            ("1.4.2", "1.4.20", VersionStep::Patch),
            ("0.4.2", "0.4.3", VersionStep::Patch),
            ("1.4.2-rc.1", "1.4.2", VersionStep::Patch),
            ("1.4.2", "1.4.3-rc.1", VersionStep::Minor),
            ("1.4.2", "1.5.0", VersionStep::Minor),
            ("1.4.2", "2.0.0", VersionStep::Major),
            ("0.4.2", "1.0.0-rc.1", VersionStep::Major),
            ("1.4.2", "1.4.2", VersionStep::Same),
            ("1.4.2", "1.4.1", VersionStep::Older),
            ("1.4.2", "1.4.2-rc.1", VersionStep::Older),
            ("1.4.2", "0.9.9", VersionStep::Older),
        ] {
            let [from, to] = [from, to].map(|text| Version::parse(text).unwrap());
            assert_eq!(VersionStep::between(Some(&from), Some(&to)), step, "{from} to {to}");
            assert_eq!(VersionStep::between(None, Some(&to)), VersionStep::Unknown);
            assert_eq!(VersionStep::between(Some(&from), None), VersionStep::Unknown);
        }
    }
}
