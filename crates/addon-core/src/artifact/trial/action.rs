//! The actions of a trial: each is one request, and several replicas may do the same one without harm.
//!
//! Must never overwrite a state that its author has not seen: a write names the state that it replaces, a deletion the
//! object that it deletes.

use super::record::{Remembered, Trial};
use crate::artifact::choice::Target;
use crate::artifact::reference::{ImageDigest, Reference};
use crate::time::Tick;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sets this image in the Deployment if it names that one, and notes both. The same image twice notes only that it
    /// counts as ours.
    Pin {
        /// The image that it names.
        from: String,
        /// The same version by its digest.
        to: String,
    },
    /// The same with the image of a version that has passed.
    Promote {
        /// The image that it names.
        from: String,
        /// The image of the version that has passed.
        to: String,
    },
    /// Names this version, or none, as entitled in the lease. It is done when the election has it.
    Entitle(Option<ImageDigest>),
    /// Writes the record of the trial, or removes it, if it is as it was seen.
    Record {
        /// As it was seen; nothing if there was none.
        over: Option<Box<Trial>>,
        /// As it is to be; nothing if it is to go.
        trial: Option<Box<Trial>>,
    },
    /// Writes what is remembered, if it is as it was seen.
    Remember {
        /// As it was seen.
        over: Box<Remembered>,
        /// As it is to be.
        remembered: Box<Remembered>,
    },
    /// Makes the ReplicaSet of the trial unless there is one, if the record is as it was seen, read anew right before, and the
    /// pod template of the Deployment has the hash that stands there.
    MakeSet {
        /// The record: the ReplicaSet runs its version.
        trial: Box<Trial>,
        /// The image of its pod.
        image: String,
    },
    /// Deletes the ReplicaSet of the trial with its pod, if it is this one, and if the record is as it was seen, read anew right
    /// before: a record that was seen late must not cost the next trial its pod. It is there until the pod has ended.
    DropSet {
        /// The record as it was seen; nothing if there was none.
        over: Option<Box<Trial>>,
        /// Tells it from others of its name.
        uid: String,
    },
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// This, and pass in its outcome.
    Do(Action),
    /// Nothing before this tick, by which the world is to be looked at again, or before something else is seen.
    Wait(Tick),
    /// Nothing, before something else is seen.
    Rest,
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// The world is not as it was seen: nothing was done.
    Changed,
    /// It failed, or its outcome is unknown; a sentence that names the attempt.
    Failed(String),
}

/// The image of a version, by tag and digest, with the repository spelled as in the image that it replaces. A version without a
/// tag keeps the one that is there: it says which channel people have chosen.
pub fn image_of(replaced: &str, target: &Target) -> String {
    let tag = target.tag.clone().or_else(|| Reference::parse(replaced).ok()?.tag);
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    format!("{}{tag}@{}", repository_in(replaced), target.digest)
}

/// The image by its digest beside its tag.
pub(super) fn pinned(image: &str, digest: &ImageDigest) -> String {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    format!("{name}@{digest}")
}

/// The repository in the name of an image, unchanged.
fn repository_in(image: &str) -> &str {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    // A colon before a slash is that of a port.
    match name.rfind(':') {
        Some(colon) if !name[colon..].contains('/') => &name[..colon],
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::reference::Tag;

    #[test]
    fn an_image_keeps_the_spelling_of_its_repository() {
        let digest = |c: &str| ImageDigest::parse(&format!("sha256:{}", c.repeat(64))).unwrap();
        let check = |replaced: &str, tag: Option<&str>, wanted: &str| {
            let target = Target {
                tag: tag.map(|tag| Tag::parse(tag).unwrap()),
                digest: digest("b"),
                version: None,
            };
            let wanted = format!("{wanted}@{}", digest("b"));
            assert_eq!(image_of(replaced, &target), wanted, "{replaced}");
        };
        let a = digest("a");
        check("operator", Some("2"), "operator:2");
        check("operator:1", None, "operator:1");
        check(
            &format!("host:5000/x/operator:1@{a}"),
            Some("2"),
            "host:5000/x/operator:2",
        );
        check(&format!("host:5000/x/operator@{a}"), None, "host:5000/x/operator");
        check("host:5000/operator", Some("2"), "host:5000/operator:2");
        assert_eq!(pinned("host:5000/operator", &a), format!("host:5000/operator@{a}"));
        assert_eq!(pinned("operator:1", &a), format!("operator:1@{a}"));
    }
}
