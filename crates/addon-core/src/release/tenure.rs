//! The helm that may be at work on a release: ours, or that of a replica that led before us and may not have ended yet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Facts;
use crate::failure::{Class, Failure};

/// The identity of one time as leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The holder as the lease names it.
    pub identity: String,
    /// How often the lease had changed its holder by then.
    pub transitions: u32,
}

/// Our own time as leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenure {
    /// Its identity.
    pub holder: Holder,
    /// How much longer a process of an earlier leader may run.
    pub overlap: Duration,
}

impl Facts {
    /// The reason why the release is left alone while a process of an earlier leader may still work on it.
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
