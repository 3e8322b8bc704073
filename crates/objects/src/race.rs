//! Changes that must not overwrite the change of another writer: after a conflict they are repeated on the new object.

use std::future::Future;
use std::time::Duration;

use addon_core::failure::Failure;
use kube_access::error::{NAMESPACE_ENDS, RequestError};

/// The pauses before the first, the second and the third repetition of an operation.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Lost {
    /// Another writer was faster; a repetition may succeed.
    Race(RequestError),
    /// The server refused the request, or could not be reached.
    Request(RequestError),
    /// The operation failed before any request.
    Before(Failure),
}

impl From<RequestError> for Lost {
    fn from(error: RequestError) -> Self {
        if reason(&error) == Some("Conflict") {
            Self::Race(error)
        } else {
            Self::Request(error)
        }
    }
}

impl Lost {
    /// The failure of a request for an object that was there a moment ago. If it was deleted since, another writer was faster.
    pub(super) fn on_existing(error: RequestError) -> Self {
        if is_missing(&error) {
            Self::Race(error)
        } else {
            error.into()
        }
    }
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Race(error) | Lost::Request(error) => Self::from(error),
            Lost::Before(failure) => failure,
        }
    }
}

/// Makes up to four attempts.
pub(super) async fn run<T, F: Future<Output = Result<T, Lost>>>(attempt: impl Fn() -> F) -> Result<T, Lost> {
    for pause in PAUSES {
        match attempt().await {
            Err(Lost::Race(_)) => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
    attempt().await
}

/// The server's message about the conflict.
fn reason(error: &RequestError) -> Option<&str> {
    error.status().map(|status| status.reason.as_str())
}

/// Whether an object with this name exists already.
pub(super) fn is_taken(error: &RequestError) -> bool {
    reason(error) == Some("AlreadyExists")
}

/// Whether the object was refused because its namespace is being deleted.
pub(super) fn is_ending(error: &RequestError) -> bool {
    error.has_cause(NAMESPACE_ENDS)
}

/// Whether other field managers own fields that were to be applied.
pub(super) fn has_other_managers(error: &RequestError) -> bool {
    error.has_cause("FieldManagerConflict")
}

/// Whether the object does not exist. An unknown path gives the same status without an object's name, and does not
/// count.
pub(super) fn is_missing(error: &RequestError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    error.is_not_found() && details.is_some_and(|details| !details.name.is_empty())
}
