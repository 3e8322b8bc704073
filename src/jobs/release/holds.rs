//! Who works on which release: never two of ours at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Who holds which release. Clones share the holds.
#[derive(Debug, Clone, Default)]
pub struct Holds(Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>);

impl Holds {
    /// Waits until nobody else holds the release.
    pub(super) async fn hold(&self, release: &str) -> OwnedMutexGuard<()> {
        let mutex = {
            let mut holds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(holds.entry(release.to_owned()).or_default())
        };
        mutex.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_release_is_held_by_one_at_a_time() {
        let holds = Holds::default();
        let first = holds.hold("one").await;
        let _other = holds.hold("two").await;
        let mut second = std::pin::pin!(holds.hold("one"));
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(first);
        assert!(futures::poll!(second).is_ready());
    }
}
