//! The version of a package that a text asks for, among the tags of a repository.
//!
//! Packages such as application bundles are followed by a tag, a mask or a range, without a policy of their own. Must
//! never select a lower version because a registry shows fewer tags.

use super::channel::{Channel, NoChannel};
use super::range::Range;
use super::reference::Tag;
use super::version::Version;

/// The selected version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The version of this tag.
    Tag {
        /// The tag.
        tag: Tag,
        /// The number of the version, if the tag is one.
        version: Option<Version>,
    },
    /// The running version, because the registry shows only lower ones now.
    Kept {
        /// The highest version that the registry shows; `None` if it shows none of the range.
        shown: Option<Version>,
    },
    /// No tag is in the range, and no running version is in the range.
    Nothing,
}

/// Reads a text that names a version of a package. Every text that may be a tag is one, also `1.4` and `20240101`, except
/// a version with open parts (`1.4.x`). Other texts are read as channels.
pub fn wish(text: &str) -> Result<Channel, NoChannel> {
    let text = text.trim();
    match Tag::parse(text) {
        Ok(tag) if !has_open_part(text) => Ok(Channel::Tag(tag)),
        Ok(_) | Err(_) => Channel::parse(text),
    }
}

/// Whether a text that may be a tag is a version with an open part.
fn has_open_part(text: &str) -> bool {
    let parts = text.split('-').next().unwrap_or_default();
    parts.contains('.') && parts.split('.').any(|part| part == "x" || part == "X")
}

/// Selects a version. The tag of the running version is needed for ranges only: if the running version is in the range, no
/// lower one is selected. A person who wants a lower version writes a range without the running one.
pub fn select<'t>(range: &Range, running: Option<&Tag>, tags: impl IntoIterator<Item = &'t Tag> + Clone) -> Selection {
    let runs = running.and_then(|tag| Some((tag, Version::parse_full(tag.as_str())?)));
    let runs = runs.filter(|(_, version)| range.holds(version));
    match (range.highest(tags.clone()), runs) {
        (None, None) => Selection::Nothing,
        (None, Some(_)) => Selection::Kept { shown: None },
        (Some((_, shown)), Some((_, runs))) if shown < runs => Selection::Kept { shown: Some(shown) },
        // If two tags name one version, the running tag stays.
        (Some((_, shown)), Some((tag, runs))) if shown == runs && tags.into_iter().any(|one| one == tag) => {
            Selection::Tag {
                tag: tag.clone(),
                version: Some(shown),
            }
        }
        (Some((tag, version)), _) => Selection::Tag {
            tag: tag.clone(),
            version: Some(version),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn tag(text: &str) -> Tag {
        Tag::parse(text).unwrap()
    }

    fn selected(text: &str, running: Option<&str>, tags: &[&str]) -> String {
        let Channel::Range(range) = wish(text).unwrap() else {
            panic!("{text} is no range");
        };
        let tags: BTreeSet<Tag> = tags.iter().map(|text| tag(text)).collect();
        match select(&range, running.map(tag).as_ref(), &tags) {
            Selection::Tag { tag, .. } => tag.to_string(),
            Selection::Kept { shown: Some(shown) } => format!("kept above {shown}"),
            Selection::Kept { shown: None } => "kept".to_owned(),
            Selection::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn a_text_that_may_be_a_tag_is_one() {
        for (text, is_tag) in [
            ("latest", true),
            ("1.4.2", true),
            ("v1.4", true),
            ("1.4", true),
            ("20240101", true),
            ("x", true),
            ("1.4-alpine", true),
            ("1.4.x", false),
            ("v1.x", false),
            ("1.x.3-rc.1", false),
            ("1.2.*", false),
            ("v1.*.*", false),
            (">=1.4 <2", false),
            ("~1.2", false),
        ] {
            assert_eq!(matches!(wish(text), Ok(Channel::Tag(_))), is_tag, "{text}");
            assert!(wish(text).is_ok(), "{text}");
        }
        assert!(wish("").is_err() && wish("stable || 1.x").is_err());
    }

    #[test]
    fn the_highest_version_is_selected_and_never_a_lower_one_than_runs() {
        let all = &["1.2.3", "1.2.4", "1.3.0", "1.4.0-rc.1", "latest"][..];
        for (text, running, tags, wanted) in [
            ("1.2.*", None, all, "1.2.4"),
            ("1.*.*", Some("1.2.4"), all, "1.3.0"),
            // The registry shows fewer tags.
            ("1.*.*", Some("1.3.0"), &["1.2.3"], "kept above 1.2.3"),
            ("1.*.*", Some("1.3.0"), &["latest"], "kept"),
            ("1.*.*", Some("1.3.0"), &[], "kept"),
            ("1.*.*", None, &[], "nothing"),
            // A person asks for a lower version.
            ("1.2.*", Some("1.3.0"), all, "1.2.4"),
            ("2.*.*", Some("1.3.0"), all, "nothing"),
            // A tag that is no version says nothing about the running one.
            ("1.*.*", Some("latest"), &["1.2.3"], "1.2.3"),
            // The same version under two tags.
            ("1.2.*", Some("v1.2.4"), &["1.2.4", "v1.2.4"], "v1.2.4"),
            ("1.2.*", Some("v1.2.4"), &["1.2.4"], "1.2.4"),
            (">=1.4.0-0", None, all, "1.4.0-rc.1"),
        ] {
            assert_eq!(
                selected(text, running, tags),
                wanted,
                "{text} with {running:?} of {tags:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_missing_the_running_version_is_not_undercut(
            tags in prop::collection::btree_set("[0-2]\\.[0-2]\\.[0-2](-rc\\.1)?", 0..9),
            running in "[0-2]\\.[0-2]\\.[0-2](-rc\\.1)?",
            text in prop::sample::select(vec!["1.*.*", "*", "1.x-*", "~1.1", ">=0.1.0-0", "*.1.*"]),
        ) {
            let Channel::Range(range) = wish(text).unwrap() else { unreachable!() };
            let tags: BTreeSet<Tag> = tags.iter().map(|text| tag(text)).collect();
            let runs = Version::parse(&running).unwrap();
            if let Selection::Tag { version: Some(version), .. } = select(&range, Some(&tag(&running)), &tags) {
                prop_assert!(range.holds(&version));
                prop_assert!(version >= runs || !range.holds(&runs));
            }
        }
    }
}
