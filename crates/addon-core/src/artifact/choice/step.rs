//! How far it is from the version that runs to one that is wanted.

use std::fmt;

use crate::artifact::version::Version;

/// The kind of a change of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// One of the two versions is not known.
    Unknown,
    /// Back.
    Older,
    /// The same version, built again.
    Same,
    /// Only the patch level rises.
    Patch,
    /// To a version before a release, or to one of another minor version.
    Minor,
    /// To another major version.
    Major,
}

impl Step {
    /// The step from one version to another.
    pub fn between(from: Option<&Version>, to: Option<&Version>) -> Self {
        let (Some(from), Some(to)) = (from, to) else {
            return Self::Unknown;
        };
        match () {
            () if to < from => Self::Older,
            () if to == from => Self::Same,
            () if to.major() != from.major() => Self::Major,
            () if to.minor() != from.minor() || to.is_prerelease() => Self::Minor,
            () => Self::Patch,
        }
    }
}

impl fmt::Display for Step {
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
            ("1.4.2", "1.4.3", Step::Patch),
            ("1.4.2", "1.4.20", Step::Patch),
            ("0.4.2", "0.4.3", Step::Patch),
            ("1.4.2-rc.1", "1.4.2", Step::Patch),
            ("1.4.2", "1.4.3-rc.1", Step::Minor),
            ("1.4.2", "1.5.0", Step::Minor),
            ("1.4.2", "2.0.0", Step::Major),
            ("0.4.2", "1.0.0-rc.1", Step::Major),
            ("1.4.2", "1.4.2", Step::Same),
            ("1.4.2", "1.4.1", Step::Older),
            ("1.4.2", "1.4.2-rc.1", Step::Older),
            ("1.4.2", "0.9.9", Step::Older),
        ] {
            let [from, to] = [from, to].map(|text| Version::parse(text).unwrap());
            assert_eq!(Step::between(Some(&from), Some(&to)), step, "{from} to {to}");
            assert_eq!(Step::between(None, Some(&to)), Step::Unknown);
            assert_eq!(Step::between(Some(&from), None), Step::Unknown);
        }
    }
}
