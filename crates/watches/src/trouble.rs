//! The failures of a watch, classified for metrics, and the pause after each.
//!
//! Must never give up: a watch ends only when no monitor needs it.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use addon_core::failure::Failure;
use kube_access::error::RequestError;

/// The kinds of failures that the contract counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchError {
    /// The version has expired; everything is listed again.
    Expired,
    /// The server ended a watch as soon as it had begun.
    Eof,
    /// The connection ended in the middle of an answer.
    UnexpectedEof,
    /// Anything else.
    Fail,
}

impl WatchError {
    /// The label value.
    pub fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Eof => "eof",
            Self::UnexpectedEof => "unexpected-eof",
            Self::Fail => "fail",
        }
    }
}

/// A failed request of a watch.
#[derive(Debug)]
pub struct Trouble {
    pub error: Box<RequestError>,
    pub(super) kind: WatchError,
    /// The pause that the server asks for.
    pub(super) retry_after: Option<Duration>,
}

/// The server's code for an expired resource version.
const GONE: u16 = 410;
/// The codes with which an API server refuses an unknown streaming list.
const NO_STREAMING: [u16; 2] = [400, 422];

impl Trouble {
    pub(super) fn of(error: RequestError) -> Self {
        let kind = match error.code() {
            Some(GONE) => WatchError::Expired,
            _ if is_cut(&error) => WatchError::UnexpectedEof,
            _ => WatchError::Fail,
        };
        Self {
            kind,
            error: Box::new(error),
            retry_after: None,
        }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.kind == WatchError::Expired
    }

    /// Whether the path of the objects was not found. A watch never asks for a single object, so "not found" never
    /// means a missing object.
    pub(super) fn finds_nothing(&self) -> bool {
        self.error.is_not_found()
    }

    pub(super) fn refuses_streaming(&self) -> bool {
        self.error.code().is_some_and(|code| NO_STREAMING.contains(&code))
    }

    /// The error as a failure that people read.
    pub fn failure(&self) -> Failure {
        Failure::from(&*self.error)
    }

    pub(super) fn into_failure(self) -> Failure {
        (*self.error).into()
    }
}

/// Whether the answer broke off.
fn is_cut(error: &RequestError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        let http = error.downcast_ref::<hyper::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof)
            || http.is_some_and(hyper::Error::is_incomplete_message)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two attempts, and so the delay until a returned API server is noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause that a server can ask for.
const LONGEST_ASKED: Duration = Duration::from_mins(1);

/// The pauses between attempts: each longer than the one before, with a random part so that clients do not act in step.
#[derive(Debug, Default)]
pub struct Pause {
    failures: u32,
}

impl Pause {
    /// The pause after another failure.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let full = (FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(16))).min(LONGEST_PAUSE);
        self.failures += 1;
        jittered(full).max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    pub fn is_first(&self) -> bool {
        self.failures == 0
    }
}

/// A random duration between half of `full` and all of it.
pub(super) fn jittered(full: Duration) -> Duration {
    // The seed of a new hasher is the only randomness that is needed here.
    let dice = u32::try_from(RandomState::new().hash_one(()) % 1024).unwrap_or(0);
    full / 2 + full / 2 * dice / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_listen_to_the_server() {
        let mut pause = Pause::default();
        assert!(pause.is_first());
        let waits: Vec<Duration> = (0..40).map(|_| pause.next(None)).collect();
        assert!(waits[0] >= FIRST_PAUSE / 2 && waits[0] <= FIRST_PAUSE, "{waits:?}");
        assert!(waits[39] >= LONGEST_PAUSE / 2, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST_PAUSE), "{waits:?}");
        assert_eq!(pause.next(Some(Duration::from_secs(20))), Duration::from_secs(20));
        assert_eq!(pause.next(Some(Duration::from_hours(1))), LONGEST_ASKED);
        pause.reset();
        assert!(pause.next(None) <= FIRST_PAUSE);
    }
}
