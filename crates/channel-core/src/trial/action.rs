//! The actions of a trial. Each is one request, and several replicas may do the same action without harm.
//!
//! Must never overwrite a state that the writer has not seen: a write names the state that it replaces, and a deletion
//! names the object by its uid.

use clock::Tick;

use super::record::{Remembered, Trial};
use crate::choice::Target;
use crate::reference::{ImageDigest, Reference};

/// A request to the API server that a trial needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replaces the Deployment's image `from` by `to`, and writes down both in annotations. If both are equal, the
    /// action only notes that the image counts as ours.
    Pin {
        /// The image that the Deployment has.
        from: String,
        /// The image of the same version with its digest.
        to: String,
    },
    /// Replaces the Deployment's image by that of a version that has passed its trial.
    Promote {
        /// The image that the Deployment has.
        from: String,
        /// The image of the passed version.
        to: String,
    },
    /// Makes this version, or none, entitled to the lease. The action is done when the election has taken over the
    /// order.
    Entitle(Option<ImageDigest>),
    /// Writes or deletes the record of the trial, if the stored record equals `over`.
    Record {
        /// The stored record as it was seen; `None` if there was none.
        over: Option<Box<Trial>>,
        /// The new record of the trial; `None` to delete the record.
        trial: Option<Box<Trial>>,
    },
    /// Writes the memory of trials, if the stored one equals `over`.
    Remember {
        /// The stored memory of trials as it was seen before the write.
        over: Box<Remembered>,
        /// The new memory of trials.
        remembered: Box<Remembered>,
    },
    /// Creates the ReplicaSet of the trial unless it exists. Right before, the record is read again and must equal
    /// `trial`, and the pod template of the Deployment must have the hash that `trial` names.
    MakeSet {
        /// The record of the trial. The ReplicaSet runs the version that it names.
        trial: Box<Trial>,
        /// The image of the trial's pod.
        image: String,
    },
    /// Deletes the ReplicaSet of the trial with its pod, if the ReplicaSet has this uid. Right before, the record is
    /// read again and must equal `over`: an outdated record must not cost the next trial its pod. The ReplicaSet exists
    /// until the pod has ended.
    DropSet {
        /// The record as it was seen; `None` if there was none.
        over: Option<Box<Trial>>,
        /// The uid, which differs from those of other `ReplicaSet`s with this name.
        uid: String,
    },
}

/// The next step of the state machine of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Do the action, and report its outcome.
    Do(Action),
    /// Wait until the given tick, then look at the cluster again. Another `Sight` ends the wait.
    Wait(Tick),
    /// Wait until another `Sight` of the cluster comes.
    Rest,
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The action was done.
    Done,
    /// The cluster differed from the sight, so nothing was done.
    Changed,
    /// The action failed, or its outcome is unknown. The sentence names the attempt.
    Failed(String),
}

/// The image of a version by tag and digest, with the repository as the replaced image spells it. If the version has no
/// tag, the tag of the replaced image stays, because it shows which channel people have chosen.
pub fn image_of(replaced: &str, target: &Target) -> String {
    let tag = target.tag.clone().or_else(|| Reference::parse(replaced).ok()?.tag);
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    format!("{}{tag}@{}", repository_in(replaced), target.digest)
}

/// The image's name with this digest behind its tag.
pub(super) fn pinned(image: &str, digest: &ImageDigest) -> String {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    format!("{name}@{digest}")
}

/// The repository in an image's name, unchanged.
fn repository_in(image: &str) -> &str {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    // A colon before a slash belongs to a port.
    match name.rfind(':') {
        Some(colon) if !name[colon..].contains('/') => &name[..colon],
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Tag;

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
