//! The revisions of a release that helm keeps, for people. Only labels and annotations are read.

use std::time::Duration;

use kube_access::Cluster;
use tokio::time::timeout;

use crate::revisions;

/// The longest wait for the answer of the API server.
const PATIENCE: Duration = Duration::from_secs(2);

/// A revision that helm keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The number.
    pub revision: u32,
    /// The status in the word of helm.
    pub status: &'static str,
    /// The time of helm's last write, in seconds since 1970.
    pub written: u64,
    /// The digest of the section of the ConfigMap with which the revision was made.
    pub config: Option<String>,
}

/// The revisions of a release by number. Without an answer in time there are none.
pub async fn history(cluster: &Cluster, release: &str) -> Vec<Kept> {
    let found = timeout(PATIENCE, revisions::history(cluster, release)).await;
    let Ok(Ok(mut found)) = found else {
        return Vec::new();
    };
    found.sort_by_key(|revision| revision.newest.revision);
    let kept = found.into_iter().map(|revision| Kept {
        revision: revision.newest.revision,
        status: revision.newest.status.word(),
        written: revision.written,
        config: revision.config,
    });
    kept.collect()
}
