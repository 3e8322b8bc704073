//! The jobs that work on releases: the operator never runs two on one release, and observes the helms of others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use crate::revisions::Revision;
use crate::revisions::vigil::Vigil;

/// The releases that jobs hold. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Holds {
    ours: Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Past>>>>>,
    others: Arc<Mutex<Vigil>>,
}

/// This process's memory about a release, for the job that holds it.
#[derive(Debug, Default)]
pub struct Past {
    /// The number of jobs that have held the release, the present one included.
    jobs: u32,
    /// Whether the last helm failed without leaving a revision, so that its changes are recorded nowhere. This happens
    /// if the store is restored to an earlier time while helm works.
    pub(super) torn: bool,
    /// Objects of kinds that are no longer served, which were taken out of helm's record and not reported yet.
    pub(super) amended: Vec<String>,
    /// Damaged records that were repaired and not reported yet.
    pub(super) repaired: Vec<String>,
    /// Objects that were replaced and not reported yet.
    pub(super) replaced: Vec<String>,
}

impl Past {
    /// Whether no other job of this process has worked on the release.
    pub(super) fn is_first(&self) -> bool {
        self.jobs <= 1
    }
}

impl Holds {
    /// How long the newest revision of a release has been unfinished and unchanged, by the operator's own observation.
    pub(super) fn unchanged(&self, release: &str, newest: Option<&Revision>) -> Duration {
        let mut vigil = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        vigil.see(release, newest, Instant::now())
    }

    /// Waits until no other job holds the release, and holds it.
    pub(super) async fn hold(&self, release: &str) -> OwnedMutexGuard<Past> {
        let mutex = {
            let mut holds = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(holds.entry(release.to_owned()).or_default())
        };
        let mut past = mutex.lock_owned().await;
        past.jobs = past.jobs.saturating_add(1);
        past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_release_is_held_by_one_at_a_time() {
        let holds = Holds::default();
        let first = holds.hold("one").await;
        assert!(first.is_first());
        let _other = holds.hold("two").await;
        let mut second = std::pin::pin!(holds.hold("one"));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(!second.await.is_first());
    }
}
