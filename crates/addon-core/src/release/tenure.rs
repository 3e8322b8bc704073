//! The replica whose helm may be working on a release: ours, or an earlier leader that may not have ended yet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::records::OtherHelm;
use super::{Facts, Newest};
use crate::failure::{Class, Failure};

/// The identity of one time as leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The holder's name in the lease.
    pub identity: String,
    /// How often the lease had changed its holder when this time as leader began.
    pub transitions: u32,
}

/// Our own time as leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenure {
    /// The identity of the replica's time as leader.
    pub holder: Holder,
    /// The time for which a process of an earlier leader may still run.
    pub overlap: Duration,
}

impl Facts {
    /// Whether another helm may be working on the release.
    pub fn other_helm(&self) -> OtherHelm {
        let unfinished = self.newest.as_ref().filter(|newest| newest.status.is_unfinished());
        let is_left = |newest: &Newest| {
            let is_ours = self.intent.as_ref().is_some_and(|intent| intent.explains(newest));
            is_ours || self.unchanged >= self.helm_timeout
        };
        if unfinished.is_none_or(is_left) {
            OtherHelm::Excluded
        } else {
            OtherHelm::Possible
        }
    }

    /// The failure that tells that another helm may be at work.
    pub(super) fn at_work(&self, newest: &Newest) -> Failure {
        let (age, rest) = (
            self.unchanged.as_secs(),
            (self.helm_timeout.saturating_sub(self.unchanged)).as_secs(),
        );
        let Self { release, .. } = self;
        Failure::new(
            Class::Unavailable,
            format!(
                "release '{release}' is being changed by another helm: revision {} is {}, unchanged since we have looked for {age} s",
                newest.revision, newest.status
            ),
        )
        .hint(format!(
            "if no helm is at work, it is taken over in {rest} s, when the helm timeout has passed"
        ))
    }

    /// The reason to leave the release alone, while a process of an earlier leader may still work on it.
    pub(super) fn left_to_another(&self) -> Option<Failure> {
        let (theirs, ours) = (self.intent.as_ref()?.holder.as_ref()?, self.tenure.as_ref()?);
        if *theirs == ours.holder || ours.overlap.is_zero() {
            return None;
        }
        let Self { release, .. } = self;
        let (identity, rest) = (&theirs.identity, ours.overlap.as_secs() + 1);
        Some(Failure::new(
            Class::Unavailable,
            format!(
                "release '{release}' is left to '{identity}', which led before us and may still have a helm at work on it: {rest} s more"
            ),
        ))
    }
}
