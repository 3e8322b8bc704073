//! Adds to the failure of a job the webhook that caused it. Must never turn a failure into a success, or hide its own text.

use addon_core::failure::Failure;
use tokio_util::sync::CancellationToken;

use super::Tools;
use crate::cluster::interception;

impl Tools {
    /// The outcome. A failure that names a webhook which the API server could not call gets its configuration, owner and
    /// server as hints, unless the job is cancelled.
    pub(super) async fn explained<T>(
        &self,
        outcome: Result<T, Failure>,
        cancel: &CancellationToken,
    ) -> Result<T, Failure> {
        let failure = match outcome {
            Err(failure) if !cancel.is_cancelled() => failure,
            other => return other,
        };
        let hints = tokio::select! {
            hints = interception::about_failed_webhook(&self.cluster, &failure.report) => hints,
            () = cancel.cancelled() => Vec::new(),
        };
        Err(hints.into_iter().fold(failure, Failure::hint))
    }

    /// Like [`Tools::explained`], for a job that is dropped as a whole when it is cancelled.
    pub(super) async fn explained_to_the_end<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.explained(outcome, &CancellationToken::new()).await
    }
}
