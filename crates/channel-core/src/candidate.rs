//! A version in the registry: its manifests, and the notes (annotations) that were put on its image at the build.
//!
//! Must never treat a note that cannot be read as an absent note.

use std::collections::{BTreeMap, BTreeSet};

use super::platform::Platform;
use super::reference::{ImageDigest, Tag};
use super::version::Version;
use crate::footing::{LOWEST_CHART_KEY, STATE_FORMATS_KEY};

/// The annotation that names the version.
pub const VERSION: &str = "org.opencontainers.image.version";
/// The notes on an image, from its annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// The version of the program in the image.
    pub version: Option<Version>,
    /// The lowest version of the chart that this version needs; `None` if any chart will do.
    pub lowest_chart: Option<Version>,
    /// The formats of the state Secret that this version can read.
    pub state_formats: BTreeSet<String>,
    /// Notes that cannot be read, a sentence for each.
    pub mistakes: Vec<String>,
}

impl Notes {
    /// Reads the annotations of an index or a manifest.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let mut notes = Self::default();
        let text = |name: &str| annotations.get(name).map(|text| text.trim());
        // Any text may be in this annotation. Only full versions are compared.
        notes.version = text(VERSION).and_then(Version::parse_full);
        if let Some(chart) = text(LOWEST_CHART_KEY) {
            notes.lowest_chart = Version::parse_full(chart);
            if notes.lowest_chart.is_none() {
                let wanted = "should be a version of the chart, as 0.3.0";
                notes
                    .mistakes
                    .push(format!("its annotation {LOWEST_CHART_KEY} is '{chart}' and {wanted}"));
            }
        }
        let formats = text(STATE_FORMATS_KEY)
            .into_iter()
            .flat_map(|text| text.split([' ', ',']));
        notes.state_formats = formats.filter(|word| !word.is_empty()).map(str::to_owned).collect();
        notes
    }
}

/// The result of the signature check with the configured keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// No keys are configured, so no signature was checked.
    NotAsked,
    /// A configured key has signed the image.
    Good,
    /// No configured key has signed the image, or the check failed. The reason follows "is not verified: ".
    Bad(String),
}

/// A version that the registry offers, with the facts about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The digest that the version's tag points to: of an index, or of the only manifest.
    pub digest: ImageDigest,
    /// The version's manifests by platform. Without an index, the digest itself is the manifest.
    pub manifests: BTreeMap<Platform, ImageDigest>,
    /// The notes on the image.
    pub notes: Notes,
    /// The result of the signature check.
    pub signature: Signature,
}

impl Candidate {
    /// The manifest for a platform.
    pub fn manifest_for(&self, platform: &Platform) -> Option<&ImageDigest> {
        let exact = self.manifests.get(platform);
        let fitting = || self.manifests.iter().find(|(made_for, _)| made_for.fits(platform));
        exact.or_else(|| fitting().map(|(_, digest)| digest))
    }

    /// All digests that identify this version on these platforms.
    pub fn digests<'a>(&'a self, platforms: &'a BTreeSet<Platform>) -> impl Iterator<Item = &'a ImageDigest> {
        let manifests = platforms.iter().filter_map(|platform| self.manifest_for(platform));
        std::iter::once(&self.digest).chain(manifests)
    }

    /// Whether these running digests are this version: the same index, or the same manifest on each of these platforms.
    pub fn is(&self, running: &BTreeSet<ImageDigest>, platforms: &BTreeSet<Platform>) -> bool {
        let runs = |platform| {
            self.manifest_for(platform)
                .is_some_and(|digest| running.contains(digest))
        };
        running.contains(&self.digest) || !platforms.is_empty() && platforms.iter().all(runs)
    }
}

/// The known facts about a repository. A fact that was not asked for is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The tags, with the digests that were asked for.
    pub tags: BTreeMap<Tag, Option<ImageDigest>>,
    /// The known candidates by digest.
    pub candidates: BTreeMap<ImageDigest, Candidate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(annotations: &[(&str, &str)]) -> Notes {
        let annotations = annotations
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Notes::read(&annotations.collect())
    }

    #[test]
    fn notes_are_read_from_annotations() {
        assert_eq!(notes(&[]), Notes::default());
        let read = notes(&[
            (VERSION, "1.4.2"),
            (LOWEST_CHART_KEY, "0.3.0"),
            (STATE_FORMATS_KEY, "1, 2"),
            ("other", "x"),
        ]);
        assert_eq!(read.version, Version::parse("1.4.2").ok());
        assert_eq!(read.lowest_chart, Version::parse("0.3.0").ok());
        assert_eq!(
            (read.state_formats, read.mistakes),
            (["1".to_owned(), "2".to_owned()].into(), vec![])
        );
        assert_eq!(
            notes(&[(VERSION, "nightly"), (STATE_FORMATS_KEY, "")]),
            Notes::default()
        );
    }

    #[test]
    fn a_note_that_cannot_be_read_is_told() {
        let read = notes(&[(LOWEST_CHART_KEY, "new")]);
        assert_eq!(
            read.mistakes,
            ["its annotation addon-operator/lowest-chart is 'new' and should be a version of the chart, as 0.3.0"]
        );
    }

    #[test]
    fn an_index_and_the_manifest_of_a_platform_count_as_one() {
        let digest = |c: &str| ImageDigest::parse(&format!("sha256:{}", c.repeat(64))).unwrap();
        let platform = |text: &str| Platform::parse(text).unwrap();
        let (amd, arm) = (platform("linux/amd64"), platform("linux/arm64"));
        let candidate = Candidate {
            digest: digest("a"),
            manifests: [(amd.clone(), digest("b")), (platform("linux/arm64/v8"), digest("c"))].into(),
            notes: Notes::default(),
            signature: Signature::NotAsked,
        };
        let is = |running: &[&str], platforms: &[&Platform]| {
            let running = running.iter().map(|c| digest(c)).collect();
            candidate.is(
                &running,
                &platforms.iter().map(|platform| (*platform).clone()).collect(),
            )
        };
        assert!(is(&["a"], &[]) && is(&["a", "f"], &[&amd, &arm]));
        assert!(is(&["b"], &[&amd]) && is(&["c"], &[&arm]) && is(&["b", "c"], &[&amd, &arm]));
        assert!(!is(&["b"], &[]) && !is(&["b"], &[&arm]) && !is(&["b"], &[&amd, &arm]));
        assert_eq!(candidate.digests(&[arm].into()).count(), 2);
    }
}
