//! Whether watches bring all changes, as far as is known.

use std::time::Duration;

use tokio::time::Instant;

use super::super::StaleWatch;
use super::{Feed, Key, Ledger};

/// The last moment at which no change was missing, and the error since then.
pub(super) struct Health {
    pub(super) proven: Instant,
    pub(super) error: Option<String>,
    /// Whether the kind is no longer served.
    pub(super) unserved: bool,
}

impl Health {
    pub(super) fn proven() -> Self {
        Self {
            proven: Instant::now(),
            error: None,
            unserved: false,
        }
    }
}

impl Ledger {
    /// Whether every watch of a target is without an error, and has shown within the bound that no change is missing.
    pub(crate) fn brings_all(&self, key: Key, bound: Duration) -> bool {
        let is_its = |feed: &&Feed| feed.subscribers.iter().any(|subscriber| subscriber.key == key);
        let mut feeds = self.feeds.values().filter(is_its);
        feeds.all(|feed| feed.health.error.is_none() && feed.health.proven.elapsed() <= bound)
    }

    /// Stale watches of hooks.
    pub(crate) fn stale(&self, bound: Duration) -> Vec<StaleWatch> {
        let stale = self
            .feeds
            .values()
            .filter(|feed| feed.is_of_hooks())
            .filter_map(|feed| {
                let since = feed.health.proven.elapsed();
                (since > bound).then(|| StaleWatch {
                    kind: feed.selection.resource.kind.clone(),
                    namespace: feed.selection.namespace.clone().unwrap_or_default(),
                    since,
                    error: feed.health.error.clone(),
                })
            });
        stale.collect()
    }
}
