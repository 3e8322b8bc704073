//! Requests that are refused before a hook is asked. All are counted, but only some are logged, because a refused
//! client may repeat at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use telling::meters::{Meters, table};
use tokio::time::Instant;
use tracing::warn;

use super::Reviews;

/// The interval of log records.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The path belongs to no hook.
    UnknownPath,
    /// The body did not come in time.
    Slow,
    /// The body does not have the announced form.
    Broken,
    /// The body is longer than the limit.
    TooLarge,
    /// The parsed body would need too much memory.
    TooManyParts,
    /// Other bodies use all the memory.
    NoRoom,
}

impl Reason {
    fn label(self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::Slow => "slow",
            Self::Broken => "broken",
            Self::TooLarge => "too_large",
            Self::TooManyParts => "too_many_parts",
            Self::NoRoom => "no_room",
        }
    }
}

pub(super) struct Refusals {
    reviews: Reviews,
    meters: Arc<Meters>,
    told: Mutex<Option<Instant>>,
}

impl Refusals {
    pub(super) fn new(reviews: Reviews, meters: Arc<Meters>) -> Self {
        Self {
            reviews,
            meters,
            told: Mutex::default(),
        }
    }

    pub(super) fn count(&self, reason: Reason) {
        let (reviews, reason) = (self.reviews.label(), reason.label());
        self.meters
            .add(&table::cluster::REVIEWS_REFUSED, [reviews, reason], 1.0);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            warn!(
                reviews,
                reason, "Requests for reviews are refused before a hook is asked; this record may stand for several"
            );
        }
    }
}
