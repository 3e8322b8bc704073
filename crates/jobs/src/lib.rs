//! The means that all jobs share: the programs of modules and hooks, their temporary files, and the account that a job
//! acts as. A *job* is work that takes time, from its start to its outcome.
//!
//! A job never decides a next step and never retries; the core does both. Nothing here knows what a job is for.
//!
//! ```text
//!   effect StartJob --> the program's table of jobs
//!                          |          |           |
//!                        hooks     releases    config-map      each with tools of its own, and with:
//!                          +----------+-----------+
//!                                     v
//!                                  Ground --> catalogue   paths of hooks, scripts and charts
//!                                         --> tmp         files for child processes
//!                                         --> acting      the rights of the operator or of a module's account
//! ```
//!
//! Begin with `Ground`, then read `acting.rs`.

pub mod acting;
pub mod catalogue;
pub mod editions;
pub mod tmp;

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use child::Spawner;
use futures::future::BoxFuture;
use kube_access::Cluster;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::catalogue::Catalogue;
use self::tmp::TmpDir;

/// Finds remedies for a failure whose text names a webhook that the API server could not call; none for another
/// failure.
pub type Remedies = for<'a> fn(&'a Cluster, &'a str) -> BoxFuture<'a, Vec<String>>;

/// The means that all jobs share. Clones share them.
#[derive(Clone)]
pub struct Ground {
    /// The cluster, with the operator's own rights.
    pub cluster: Cluster,
    /// Starts hooks and scripts.
    pub spawner: Spawner,
    /// The paths of hooks, scripts and charts, and the hooks that executables have listed.
    pub catalogue: watch::Sender<Arc<Catalogue>>,
    /// Temporary files for child processes.
    pub tmp: Arc<TmpDir>,
    /// The environment of hooks and scripts: the operator's own, with a `KUBECONFIG` for its cluster.
    pub environment: Vec<(OsString, OsString)>,
    pub remedies: Remedies,
}

impl fmt::Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ground")
            .field("cluster", &self.cluster)
            .field("tmp", &self.tmp)
            .finish_non_exhaustive()
    }
}

impl Ground {
    /// The same means with a catalogue of its own.
    #[must_use]
    pub fn with(&self, catalogue: Catalogue) -> Self {
        Self {
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            ..self.clone()
        }
    }

    /// The outcome of a job. A failure that names a webhook which the API server could not call gets its configuration,
    /// owner and server as hints, unless the job is cancelled.
    pub async fn explained<T>(&self, outcome: Result<T, Failure>, cancel: &CancellationToken) -> Result<T, Failure> {
        let failure = match outcome {
            Err(failure) if !cancel.is_cancelled() => failure,
            other => return other,
        };
        let hints = tokio::select! {
            hints = (self.remedies)(&self.cluster, &failure.report) => hints,
            () = cancel.cancelled() => Vec::new(),
        };
        Err(hints.into_iter().fold(failure, Failure::hint))
    }

    /// Like [`Ground::explained`], for a job that is dropped as a whole when it is cancelled.
    pub async fn explained_to_the_end<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.explained(outcome, &CancellationToken::new()).await
    }
}

/// Does the work unless it is cancelled before.
pub async fn unless<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        outcome = work => outcome,
        () = cancel.cancelled() => Err(Failure::new(Class::Cancelled, "the job was cancelled")),
    }
}
